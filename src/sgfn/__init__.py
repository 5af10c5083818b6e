"""sgfn: Stochastic Generative Flow Networks, checked against the exact answer.

The verbs of the command line as functions on the same configuration:

>>> import sgfn
>>> facts = sgfn.describe("tfbind8", sgfn.TrainConfig().with_(noise__alpha=0.5))
>>> round(facts["tv_floor"], 3), round(facts["tv_blind"], 3)
(0.046, 0.206)
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path and any(word.split(".")[0] == "sgfn" for word in sys.orig_argv):
    del sys.path[0]  # the current folder, where a json.py beside a stranger's run would pass for Python's own

from typing import TYPE_CHECKING

from sgfn.compare import compare  # bound now: the package of that name must not take the function's place later
from sgfn.config import VERSION, TrainConfig
from sgfn.config.lazy import lazy_attributes
from sgfn.config.presets import PRESETS

if TYPE_CHECKING:
    from sgfn.compare.comparison import Comparison
    from sgfn.design.channel import fit_channel
    from sgfn.design.designer import Designer
    from sgfn.design.libraries.designing import design_library
    from sgfn.design.ordering import order
    from sgfn.envs.constraints import Constraints
    from sgfn.evaluation.task_facts import catalogue, describe
    from sgfn.landscapes.tasks import function_config, make_task, register_task, task_names
    from sgfn.landscapes.tfbind8 import fetch
    from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Indel, Mixtures, UniformSlip
    from sgfn.noise.making import preset_noise
    from sgfn.runs.evaluate import evaluate
    from sgfn.runs.fit import fit
    from sgfn.runs.folder import Run
    from sgfn.runs.load import load
    from sgfn.runs.model import Model, Samples
    from sgfn.runs.sampling import sample
    from sgfn.runs.shards import sample_shards
    from sgfn.runs.spaces import Grid, Sequences
    from sgfn.runs.train import train
    from sgfn.series.forecaster import Forecaster

__version__ = VERSION
__all__ = [
    "PRESETS",
    "ByPosition",
    "Comparison",
    "ConfusionMatrix",
    "Constraints",
    "Designer",
    "Forecaster",
    "Grid",
    "HiddenRate",
    "Indel",
    "Mixtures",
    "Model",
    "Run",
    "Samples",
    "Sequences",
    "TrainConfig",
    "UniformSlip",
    "catalogue",
    "compare",
    "describe",
    "design_library",
    "evaluate",
    "fetch",
    "fit",
    "fit_channel",
    "function_config",
    "load",
    "make_task",
    "order",
    "preset_noise",
    "register_task",
    "sample",
    "sample_shards",
    "task_names",
    "train",
]

HOMES = {
    "ByPosition": "sgfn.noise",
    "Comparison": "sgfn.compare.comparison",
    "ConfusionMatrix": "sgfn.noise",
    "Designer": "sgfn.design.designer",
    "Constraints": "sgfn.envs.constraints",
    "Forecaster": "sgfn.series.forecaster",
    "Grid": "sgfn.runs.spaces",
    "HiddenRate": "sgfn.noise",
    "Indel": "sgfn.noise",
    "Mixtures": "sgfn.noise",
    "Model": "sgfn.runs.model",
    "Run": "sgfn.runs.folder",
    "Samples": "sgfn.runs.model",
    "Sequences": "sgfn.runs.spaces",
    "UniformSlip": "sgfn.noise",
    "catalogue": "sgfn.evaluation.task_facts",
    "describe": "sgfn.evaluation.task_facts",
    "design_library": "sgfn.design.libraries.designing",
    "evaluate": "sgfn.runs.evaluate",
    "fetch": "sgfn.landscapes.tfbind8",
    "fit": "sgfn.runs.fit",
    "fit_channel": "sgfn.design.channel",
    "function_config": "sgfn.landscapes.tasks",
    "load": "sgfn.runs.load",
    "make_task": "sgfn.landscapes.tasks",
    "order": "sgfn.design.ordering",
    "preset_noise": "sgfn.noise.making",
    "register_task": "sgfn.landscapes.tasks",
    "sample": "sgfn.runs.sampling",
    "sample_shards": "sgfn.runs.shards",
    "task_names": "sgfn.landscapes.tasks",
    "train": "sgfn.runs.train",
}
"""Where what is imported on first use lives: `import sgfn` and `sgfn --help` do not wait for torch."""


__getattr__ = lazy_attributes(__name__, HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
