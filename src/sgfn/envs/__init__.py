"""Environments: noise kernels and deterministic moves."""

from sgfn.envs.automaton import Automaton
from sgfn.envs.base import Enumerable, Env
from sgfn.envs.constraints import Constraints
from sgfn.envs.forecast import ForecastEnv
from sgfn.envs.grid import GridEnv
from sgfn.envs.indel import IndelEnv
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv, tabulate

__all__ = [
    "Automaton",
    "Constraints",
    "Enumerable",
    "Env",
    "ForecastEnv",
    "GridEnv",
    "IndelEnv",
    "SequenceEnv",
    "TabulatedEnv",
    "tabulate",
]
