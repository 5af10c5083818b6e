"""Time series: panels of observed values, their windows, and forecasts of what comes next."""
