"""Metrics of samples and of forecasts: pure functions of arrays."""
