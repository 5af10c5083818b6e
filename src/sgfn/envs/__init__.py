"""Environments: noise kernels and deterministic moves."""

from sgfn.envs.base import Env
from sgfn.envs.forecast import ForecastEnv
from sgfn.envs.grid import GridEnv
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv, tabulate

__all__ = ["Env", "ForecastEnv", "GridEnv", "SequenceEnv", "TabulatedEnv", "tabulate"]
