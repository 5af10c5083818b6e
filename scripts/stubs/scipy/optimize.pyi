"""What is used of scipy.optimize."""

from collections.abc import Callable
from typing import Any

import numpy as np

class OptimizeResult:
    success: bool
    message: str
    x: Any
    fun: Any

def linprog(
    c: np.ndarray, A_ub: Any, b_ub: np.ndarray, A_eq: Any, b_eq: np.ndarray, *, method: str = ...
) -> OptimizeResult: ...
def linear_sum_assignment(cost_matrix: np.ndarray, maximize: bool = ...) -> tuple[np.ndarray, np.ndarray]: ...
def minimize_scalar(fun: Callable[..., Any], **options: Any) -> OptimizeResult: ...
