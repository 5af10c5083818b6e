"""Evaluation of policies: exact laws, best reachable laws, likelihoods, orders, metrics of samples and forecasts."""
