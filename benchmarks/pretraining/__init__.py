"""Training of the forecasting network that comes with the package, on series that a programme draws."""
