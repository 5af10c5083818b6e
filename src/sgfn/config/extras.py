"""Packages that not everybody needs: imported where they are used, each from an extra of sgfn."""

from importlib import import_module
from typing import Any

EXTRAS = {
    "pyarrow": "parquet",
    "pyarrow.parquet": "parquet",
    "openpyxl": "excel",
    "holidays": "holidays",
    "botorch": "gp",
    "gpytorch": "gp",
    "ray": "ray",
    "ray.job_config": "ray",
}
"""Which extra of sgfn installs a module."""


def optional(module: str, what: str, otherwise: str = "") -> Any:
    """An imported module of an extra; raises, naming the extra, where it is not installed.

    `what` begins the error and says what needs the module; `otherwise` is another way out.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        fix = f"install it with pip install 'sgfn[{EXTRAS[package]}]'{f', or {otherwise}' if otherwise else ''}"
        raise ValueError(f"{what} needs {package}; {fix}") from None
