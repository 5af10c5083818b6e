"""sgfn: Stochastic Generative Flow Networks, checked against the exact answer.

The verbs of the command line as functions on the same configuration:

>>> import sgfn
>>> facts = sgfn.describe("tfbind8", sgfn.TrainConfig().with_(noise__alpha=0.5))
>>> round(facts["tv_floor"], 3), round(facts["tv_blind"], 3)
(0.046, 0.206)
"""

from sgfn.compare.comparison import Comparison, compare
from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.evaluation.measure import catalogue, describe
from sgfn.landscapes.tasks import function_config, make_task, task_names
from sgfn.landscapes.tfbind8 import fetch
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, UniformSlip
from sgfn.runs.evaluate import evaluate
from sgfn.runs.fit import fit
from sgfn.runs.folder import Run
from sgfn.runs.load import load
from sgfn.runs.model import Model, Samples
from sgfn.runs.sampling import sample
from sgfn.runs.spaces import Grid, Sequences
from sgfn.runs.train import train
from sgfn.series.forecaster import Forecaster

__version__ = "0.1.0"
__all__ = [
    "PRESETS",
    "ByPosition",
    "Comparison",
    "ConfusionMatrix",
    "Forecaster",
    "Grid",
    "HiddenRate",
    "Model",
    "Run",
    "Samples",
    "Sequences",
    "TrainConfig",
    "UniformSlip",
    "catalogue",
    "compare",
    "describe",
    "evaluate",
    "fetch",
    "fit",
    "function_config",
    "load",
    "make_task",
    "sample",
    "task_names",
    "train",
]
