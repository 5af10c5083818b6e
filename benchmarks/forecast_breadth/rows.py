"""Conversions of R's data frames to rows of the long format: unique_id, ds, y."""

import numpy as np
import pandas as pd

FREQUENCIES = {"A": "YS", "Q": "QS", "M": "MS", "W": "7D", "D": "D", "B": "B", "H": "h", "T": "30min"}
"""Step of each frequency letter, as pandas names it; T is the half hour."""
EARLIEST = 1700
"""Years before are left out: time stamps in nanoseconds begin in 1678."""


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
    return pd.to_datetime(pd.to_datetime(stamps).dt.strftime("%Y-%m-01"))


def quarters_of(labels: pd.Series) -> pd.Series:
    """The first day of quarters such as 1998 Q1."""
    years, quarters = labels.str[:4], labels.str[-1].astype(int)
    return pd.to_datetime(pd.DataFrame({"year": years.astype(int), "month": 3 * quarters - 2, "day": 1}))


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
    return rows[stamps >= pd.Timestamp("1999-10-01")]


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
    years = years_of(source["date"] // 1)
    return counted(pd.Series("disasters", index=years.index), years, "A")
