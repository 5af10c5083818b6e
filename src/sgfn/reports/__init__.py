"""Reports: figures and pages of runs, comparisons and forecasts."""
