"""Contestants of `benchmarks.speed`, one per file, each in an environment of its own (see `contest`)."""
