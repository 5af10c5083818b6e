"""Comparisons: methods, noise levels and seeds as cells, the processes that work on them, and what they found."""

from sgfn.compare.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
