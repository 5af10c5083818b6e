"""Forecasts of many public data sets of different kinds, by sgfn and by classical methods, in one table."""
