"""Data sets of the forecasting panel: where each comes from, what kind it is, and how its rows are made.

All are members of one published archive of R's data sets, of which nothing but dates, names of series and values is
used. Births, on which sgfn's defaults were chosen, are not among them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from benchmarks.forecast_breadth.rows import (
    by_group,
    calls,
    counted,
    dated,
    decimal_time,
    departures,
    disasters,
    diseases,
    employment,
    from_start,
    months_of,
    most,
    quarters_of,
    regions,
    rodents,
    soi,
    years_of,
)

Rows = Callable[[pd.DataFrame], pd.DataFrame]
"""From a data frame of R to rows unique_id, ds, y."""
SEASONS = {"A": (1,), "Q": (4,), "M": (12,), "W": (52,), "D": (7,), "B": (5,), "H": (24, 168), "T": (48, 336)}
"""Seasons in steps that classical methods are given, the one for seasonal naive first."""
HORIZONS = {"A": 5, "Q": 8, "M": 12, "W": 13, "D": 14, "B": 10, "H": 48, "T": 48}
SHORT_HORIZONS = {"A": 4, "Q": 4, "M": 6}
"""Horizon of short series, where the usual one would leave too little to learn from."""
LICENCES = {
    "AER": "GPL-2 or GPL-3",
    "MASS": "GPL-2 or GPL-3",
    "DAAG": "GPL-3",
    "Ecdat": "GPL-2 or later",
    "HistData": "GPL",
    "Stat2Data": "GPL-3",
    "boot": "unlimited",
    "carData": "GPL-2 or later",
    "causaldata": "MIT",
    "datasets": "part of R, GPL-2 or GPL-3",
    "dslabs": "Artistic-2.0",
    "forecast": "GPL-3",
    "fpp2": "GPL-3",
    "fpp3": "GPL-3",
    "ggplot2": "MIT",
    "gt": "MIT",
    "modeldata": "MIT",
    "mosaicData": "GPL-2 or later",
    "nycflights13": "CC0",
    "openintro": "GPL-3",
    "plm": "GPL-2 or later",
    "quantreg": "GPL-2 or later",
    "ratdat": "CC0",
    "robustbase": "GPL-2 or later",
    "stevedata": "GPL-2 or later",
}
"""Licence of each R package that a member comes from; the values themselves are published facts."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One data set: member of the archive, conversion to rows, frequency, horizon, and what is special about it."""

    member: str
    rows: Rows
    freq: str
    about: str
    kind: str
    """One of trend, season, seasons, counts, intermittent, price, proportion, rate."""
    horizon: int

    @property
    def licence(self) -> str:
        """Licence of the R package."""
        return LICENCES[self.member.split("/")[0]]


def _recipe(member: str, rows: Rows, freq: str, kind: str, about: str, *, short: bool = False) -> Recipe:
    horizon = SHORT_HORIZONS[freq] if short else HORIZONS[freq]
    return Recipe(member=member, rows=rows, freq=freq, kind=kind, about=about, horizon=horizon)


def plain_series(member: str, freq: str, kind: str, about: str, *, short: bool = False) -> Recipe:
    """Recipe of a member that is one plain series of R."""
    steps = {"A": 1, "Q": 4, "M": 12}[freq]
    rows = partial(decimal_time, name=member.split("/")[1], steps=steps)
    return _recipe(member, rows, freq, kind, about, short=short)


_ts = plain_series

RECIPES: dict[str, Recipe] = {
    # yearly
    "lynx": _ts("datasets/lynx", "A", "counts", "lynx trapped in Canada"),
    "sunspot_years": _ts("datasets/sunspot.year", "A", "season", "sunspot numbers, a cycle of about 11 years"),
    "nile": _ts("datasets/Nile", "A", "trend", "flow of the Nile, with a break"),
    "tourists_austa": _ts("fpp2/austa", "A", "trend", "visitors to Australia, 36 values", short=True),
    "women_murdered": _ts("fpp2/wmurders", "A", "rate", "women murdered in the United States, rate"),
    "marathon_times": _ts("fpp2/marathon", "A", "trend", "winning times in Boston"),
    "coal_disasters": _recipe("boot/coal", disasters, "A", "counts", "coal-mining disasters"),
    "measles_london": _ts("DAAG/measles", "A", "counts", "measles deaths in London, a fifth of them missing"),
    "rain_regions": _recipe("DAAG/bomregions2021", partial(regions, ending="Rain"), "A", "rate", "rain, 14 regions"),
    "warmth_regions": _recipe(
        "DAAG/bomregions2021", partial(regions, ending="AVt"), "A", "trend", "temperature, 14 regions"
    ),
    "populations": _recipe(
        "gt/countrypops",
        lambda f: by_group(f, "country_code_3", years_of(f["year"]), "population"),
        "A",
        "trend",
        "population of 215 countries",
    ),
    "cigarettes": _recipe(
        "plm/Cigar",
        lambda f: by_group(f, "state", years_of(f["year"] + 1900), "sales"),
        "A",
        "trend",
        "packs a head in 46 states, 30 values each",
        short=True,
    ),
    "attacks": _recipe(
        "Ecdat/incidents.byCountryYr",
        lambda f: most(by_group(f, "country_txt", years_of(f["iyear"]), "Freq"), 90),
        "A",
        "intermittent",
        "terrorist attacks in 90 countries, one year missing",
    ),
    "hepatitis": _recipe(
        "dslabs/us_contagious_diseases",
        partial(diseases, disease="Hepatitis A", least=0),
        "A",
        "counts",
        "cases of hepatitis A in 51 states",
    ),
    "rubella": _recipe(
        "dslabs/us_contagious_diseases",
        partial(diseases, disease="Rubella", least=1),
        "A",
        "intermittent",
        "cases of rubella in 40 states, dying out",
    ),
    # quarterly
    "beer": _ts("fpp2/ausbeer", "Q", "season", "beer made in Australia"),
    "gas_uk": _ts("datasets/UKgas", "Q", "season", "gas consumption, growing season"),
    "cement": _ts("fpp2/qcement", "Q", "season", "cement made in Australia"),
    "retail_euro": _ts("fpp2/euretail", "Q", "trend", "retail index, 64 values"),
    "approval": _ts("datasets/presidents", "Q", "proportion", "approval of presidents, with gaps"),
    "nights": _recipe(
        "fpp2/visnights",
        lambda f: from_start(f, {c: c for c in f.columns[1:]}, "1998-01-01", "Q"),
        "Q",
        "season",
        "nights of visitors, 20 regions",
    ),
    "prisoners": _recipe(
        "fpp2/prison",
        lambda f: from_start(f, {c: c.strip() for c in f.columns[1:]}, "2005-01-01", "Q"),
        "Q",
        "counts",
        "prisoners in 32 groups, 48 values each",
    ),
    "occupancy": _recipe(
        "fpp3/aus_accommodation",
        lambda f: by_group(f, "State", quarters_of(f["Date"]), "Occupancy"),
        "Q",
        "proportion",
        "rooms that were taken, per cent, 8 states",
    ),
    "arrivals": _recipe(
        "fpp3/aus_arrivals",
        lambda f: by_group(f, "Origin", quarters_of(f["Quarter"]), "Arrivals"),
        "Q",
        "season",
        "arrivals from 4 countries",
    ),
    "growth_us": _recipe(
        "fpp3/us_change",
        lambda f: from_start(f, {c: c for c in f.columns[2:]}, "1970-01-01", "Q"),
        "Q",
        "rate",
        "changes of 5 economic figures, per cent",
    ),
    # monthly
    "drugs_a10": _ts("fpp2/a10", "M", "season", "sales of antidiabetic drugs"),
    "drugs_h02": _ts("fpp2/h02", "M", "season", "sales of corticosteroids"),
    "cafes": _ts("fpp2/auscafe", "M", "season", "spending in cafes"),
    "equipment": _ts("fpp2/elecequip", "M", "season", "orders of electrical equipment"),
    "electricity_us": _ts("fpp2/usmelec", "M", "season", "electricity made in the United States"),
    "debit_cards": _ts("fpp2/debitcards", "M", "season", "use of debit cards in Iceland"),
    "wine": _ts("forecast/wineind", "M", "season", "wine sold in Australia"),
    "gas_australia": _ts("forecast/gas", "M", "season", "gas made in Australia"),
    "nottingham": _ts("datasets/nottem", "M", "season", "air temperature in Nottingham"),
    "accident_deaths": _ts("datasets/USAccDeaths", "M", "season", "accidental deaths, 72 values"),
    "sunspot_months": _ts("datasets/sunspot.month", "M", "season", "sunspot numbers, a cycle of about 132 months"),
    "river_manaus": _ts("boot/manaus", "M", "season", "height of the Rio Negro"),
    "souvenirs": _recipe(
        "fpp3/souvenirs",
        lambda f: from_start(f, {"Sales": "souvenirs"}, "1987-01-01", "M"),
        "M",
        "season",
        "sales of a shop, 84 values",
    ),
    "road_casualties": _recipe(
        "datasets/Seatbelts",
        lambda f: from_start(f, {c: c for c in ("DriversKilled", "front", "rear", "VanKilled")}, "1969-01-01", "M"),
        "M",
        "counts",
        "people killed or hurt on roads, 4 groups",
    ),
    "departures_australia": _recipe(
        "fpp2/departures",
        lambda f: from_start(f, {c: c for c in f.columns[1:]}, "1976-01-01", "M"),
        "M",
        "season",
        "people who leave, 5 groups",
    ),
    "houses_texas": _recipe(
        "ggplot2/txhousing",
        lambda f: by_group(f, "city", pd.to_datetime(f[["year", "month"]].assign(day=1)), "sales"),
        "M",
        "counts",
        "houses sold in 46 cities, with gaps",
    ),
    "employment": _recipe("fpp3/us_employment", employment, "M", "season", "employees in 148 industries"),
    "commodities": _recipe(
        "stevedata/commodity_prices",
        lambda f: dated(f, {c: c for c in f.columns[2:]}, "date"),
        "M",
        "price",
        "prices of 10 commodities",
    ),
    "heating_oil": _recipe(
        "Stat2Data/HeatingOil",
        lambda f: from_start(f, {"FuelOil": "oil"}, "1983-01-01", "M"),
        "M",
        "season",
        "heating oil used",
    ),
    "warming": _recipe(
        "stevedata/LOTI", lambda f: dated(f, {"value": "anomaly"}, "date"), "M", "trend", "global temperature anomaly"
    ),
    "oscillation": _recipe("DAAG/bomsoi", soi, "M", "rate", "southern oscillation index"),
    "drinks": _recipe(
        "modeldata/drinks",
        lambda f: dated(f, {f.columns[2]: "drinks"}, "date"),
        "M",
        "season",
        "sales of alcoholic drinks",
    ),
    "rodents": _recipe("ratdat/surveys", rodents, "M", "intermittent", "rodents caught, 20 species, months missing"),
    "murders_london": _recipe(
        "openintro/london_murders",
        lambda f: counted(f["borough"], months_of(f["date"]), "M").query("ds < '2011-09-01'"),
        "M",
        "intermittent",
        "murders in 32 boroughs, 68 values each",
        short=True,
    ),
    # weekly
    "gasoline": _recipe(
        "fpp2/gasoline",
        lambda f: from_start(f, {"value": "gasoline"}, "1991-02-04", "W"),
        "W",
        "season",
        "gasoline supplied",
    ),
    "gas_price": _recipe(
        "quantreg/gasprice",
        lambda f: from_start(f, {"value": "price"}, "1990-02-19", "W"),
        "W",
        "price",
        "price of gasoline",
    ),
    "flights_weekly": _recipe(
        "fpp2/melsyd",
        lambda f: from_start(f, {c: c for c in ("First.Class", "Economy.Class")}, "1987-06-29", "W"),
        "W",
        "counts",
        "passengers between two cities, a strike in between",
    ),
    "avocados": _recipe(
        "causaldata/avocado",
        lambda f: dated(f, {"AveragePrice": "price"}, "Date"),
        "W",
        "price",
        "price of avocados, 169 values",
    ),
    # daily
    "electricity_days": _recipe(
        "fpp2/elecdaily",
        lambda f: from_start(f, {"Demand": "demand"}, "2014-01-01", "D"),
        "D",
        "season",
        "electricity demand of a year",
    ),
    "page_views": _recipe(
        "fpp2/hyndsight",
        lambda f: from_start(f, {"value": "views"}, "2014-04-30", "D"),
        "D",
        "counts",
        "views of a page",
    ),
    "deaths_puerto_rico": _recipe(
        "dslabs/pr_death_counts", lambda f: dated(f, {"deaths": "deaths"}, "date"), "D", "counts", "deaths a day"
    ),
    "trains": _recipe(
        "modeldata/Chicago",
        lambda f: dated(f.iloc[-1500:], {c: c for c in f.columns[2:22]}, "date"),
        "D",
        "season",
        "passengers at 20 stations",
    ),
    "clemson": _recipe(
        "stevedata/clemson_temps", lambda f: dated(f, {"tmax": "tmax"}, "date"), "D", "season", "highest temperature"
    ),
    "melbourne": _recipe(
        "quantreg/MelTemp",
        lambda f: from_start(f, {"value": "temperature"}, "1981-01-01", "D"),
        "D",
        "season",
        "highest temperature",
    ),
    "nitrogen_oxides": _recipe(
        "robustbase/ambientNOxCH",
        lambda f: dated(f, {c: c for c in f.columns[2:]}, "date"),
        "D",
        "rate",
        "nitrogen oxides at 13 places, with gaps",
    ),
    "pizzas": _recipe(
        "gt/pizzaplace",
        lambda f: counted(f["name"], pd.to_datetime(f["date"]), "D"),
        "D",
        "counts",
        "pizzas sold, 32 kinds, closed days as zeros",
    ),
    "pizzas_by_size": _recipe(
        "gt/pizzaplace",
        lambda f: counted(f["name"] + " " + f["size"], pd.to_datetime(f["date"]), "D"),
        "D",
        "intermittent",
        "pizzas sold, 91 kinds and sizes",
    ),
    "force": _recipe(
        "openintro/mn_police_use_of_force",
        lambda f: counted(
            "precinct " + f.loc[f["precinct"] > 0, "precinct"].astype(str),
            pd.to_datetime(f["response_datetime"]).dt.normalize()[f["precinct"] > 0],
            "D",
        ),
        "D",
        "intermittent",
        "uses of force by the police, 5 precincts",
    ),
    "cholera": _recipe(
        "HistData/CholeraDeaths1849",
        lambda f: by_group(f, "cause_of_death", pd.to_datetime(f["date"]), "deaths"),
        "D",
        "counts",
        "deaths of an epidemic",
    ),
    "humidity": _recipe(
        "mosaicData/Weather",
        lambda f: by_group(f, "city", pd.to_datetime(f["date"]), "avg_humidity"),
        "D",
        "proportion",
        "relative humidity, per cent, 5 cities",
    ),
    # working days
    "stocks_europe": _recipe(
        "datasets/EuStockMarkets",
        lambda f: from_start(f, {c: c for c in f.columns[1:]}, "1991-07-01", "B"),
        "B",
        "price",
        "4 indices",
    ),
    "gold": _recipe(
        "forecast/gold",
        lambda f: from_start(f, {"value": "gold"}, "1985-01-01", "B"),
        "B",
        "price",
        "price of gold, with gaps",
    ),
    "google": _recipe(
        "fpp2/goog",
        lambda f: from_start(f, {"value": "close"}, "2013-02-25", "B"),
        "B",
        "price",
        "price of a share",
    ),
    "dow_jones": _recipe(
        "stevedata/DJIA",
        lambda f: dated(f.iloc[-5000:], {"value": "index"}, "date"),
        "B",
        "price",
        "Dow Jones, true trading days",
    ),
    "sterling": _recipe(
        "stevedata/ukg_eeri",
        lambda f: dated(f, {"value": "rate"}, "date"),
        "B",
        "price",
        "exchange rate of the pound, true trading days",
    ),
    # hourly and half-hourly
    "stops": _recipe(
        "carData/MplsStops",
        lambda f: counted(f["problem"], pd.to_datetime(f["date"]).dt.tz_localize(None).dt.floor("h"), "H"),
        "H",
        "counts",
        "stops by the police, 2 reasons",
    ),
    "flights_hourly": _recipe("nycflights13/flights", departures, "H", "seasons", "flights that leave, 3 airports"),
    "water": _recipe(
        "Stat2Data/KeyWestWater",
        lambda f: dated(f, {"WaterTemp": "water"}, "DateTime"),
        "H",
        "season",
        "water temperature, a quarter of the hours missing",
    ),
    "electricity_half_hours": _recipe(
        "fpp2/elecdemand",
        lambda f: from_start(f, {"Demand": "demand"}, "2014-01-01", "T"),
        "T",
        "seasons",
        "electricity demand of a year",
    ),
    "taylor": _recipe(
        "forecast/taylor",
        lambda f: from_start(f, {"x": "demand"}, "2000-06-05", "T"),
        "T",
        "seasons",
        "electricity demand of 12 weeks",
    ),
    "bank_calls": _recipe("fpp3/bank_calls", calls, "T", "seasons", "calls to a bank, closed at night"),
}
