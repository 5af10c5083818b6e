"""Metrics: pure functions."""
