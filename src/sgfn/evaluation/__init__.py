"""Evaluation: exact laws, floors, likelihoods, what orders give, and metrics of samples and forecasts."""
