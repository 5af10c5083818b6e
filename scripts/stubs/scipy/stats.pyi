"""What is used of scipy.stats."""

from typing import Any

import numpy as np

class _Law:
    def cdf(self, x: Any, *parameters: Any) -> Any: ...
    def ppf(self, q: Any, *parameters: Any) -> Any: ...

beta: _Law
nbinom: _Law
norm: _Law
poisson: _Law
t: _Law

def rankdata(a: Any) -> np.ndarray: ...
