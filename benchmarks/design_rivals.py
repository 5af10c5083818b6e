"""Other people's code at the design game: flexs's AdaLead, BoTorch's Gaussian process, the package cma.

They are no dependencies of sgfn. An environment of their own that has sgfn too gets them by `pip install --no-deps` of
flexs, cma, botorch, gpytorch, linear_operator and what these import: pyro-ppl, pyro-api, opt_einsum, multipledispatch,
scikit-learn, joblib, threadpoolctl, pyre_extensions, typing_inspect, mypy_extensions. Each is a method by name:
`--methods benchmarks.design_rivals:flexs_adalead`.
"""

import importlib
import random
import sys
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.playing import fit_history
from sgfn.design.rivals import History, Mean, Player, fill
from sgfn.design.search import LARGEST_EXACT
from sgfn.design.space import OrderSpace

BLOCK = 4096
"""Sequences that a Gaussian process is asked about at once."""
HOPEFUL = 3000
"""Orders, those with the highest mean plus two standard deviations, over which functions are drawn jointly."""


# flexs


def flexs_explorer() -> Any:
    """The class `Adalead` of flexs, imported without its landscapes and models, which need TensorFlow."""
    spec = find_spec("flexs") if "flexs" not in sys.modules else None
    if spec is not None and spec.origin is not None:
        package = ModuleType("flexs")
        package.__path__ = [str(Path(spec.origin).parent)]
        sys.modules["flexs"] = package
        for name, parts in (("landscape", ["Landscape"]), ("model", ["Model"]), ("explorer", ["Explorer"])):
            for part in parts:
                setattr(package, part, getattr(importlib.import_module(f"flexs.{name}"), part))
        for name in ("baselines", "baselines.explorers"):
            inner = ModuleType(f"flexs.{name}")
            inner.__path__ = [str(Path(spec.origin).parent.joinpath(*name.split(".")))]
            sys.modules[f"flexs.{name}"] = inner
    return importlib.import_module("flexs.baselines.explorers.adalead").Adalead


@dataclass(eq=False)
class FlexsPlayer:
    """AdaLead as flexs has it, 2,000 questions to the proxy for each plate, recombination as in its paper."""

    space: OrderSpace
    proxy: str
    queries: int = 2000
    recombination: float = 0.2

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        explorer = flexs_explorer()
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 -- flexs draws from the global generators
        texts = self.space.decode(history.tokens)
        model = _model(fit_history(self.space, self.proxy, history, seed).predict)
        made = explorer(
            model=model,
            rounds=1,
            sequences_batch_size=count + 1,  # it gives one less
            model_queries_per_batch=self.queries,
            starting_sequence=texts[0],
            alphabet=self.space.alphabet,
            rho=1,
            recomb_rate=self.recombination,
        )
        table = pd.DataFrame({"sequence": texts, "true_score": history.scores.double().numpy()})
        found, _ = made.propose_sequences(table)
        rows = self.space.parse(list(found))
        return fill(rows, history, count, self.space, torch.Generator().manual_seed(seed))


def _model(predict: Any) -> Any:
    """A fitted proxy as a model of flexs, which counts what it is asked."""
    base = sys.modules["flexs"].Model

    class FittedModel(base):
        def __init__(self) -> None:
            super().__init__("proxy")

        def train(self, sequences: Any, labels: Any) -> None:
            """Nothing: it is fitted."""

        def _fitness_function(self, sequences: Any) -> Any:
            return predict(list(sequences)).mean

    return FittedModel()


def flexs_adalead(space: OrderSpace, proxy: str) -> Player:
    """AdaLead by its authors. Sinai et al. (2020), arXiv:2010.02141; package flexs."""
    return FlexsPlayer(space, proxy)


# BoTorch


@dataclass(eq=False)
class BotorchPlayer:
    """Thompson sampling with a one-hot Gaussian process: each well follows another draw of the posterior."""

    space: OrderSpace

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate; all are listed, and the hopeful ones drawn jointly."""
        models, fits = importlib.import_module("botorch.models"), importlib.import_module("botorch.fit")
        standard = importlib.import_module("botorch.models.transforms").Standardize(1)
        likelihood = importlib.import_module("gpytorch.mlls").ExactMarginalLogLikelihood
        torch.manual_seed(seed)
        inputs, targets = self.inputs(history.tokens), history.scores.double()[:, None]
        model = models.SingleTaskGP(inputs, targets, outcome_transform=standard)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits.fit_gpytorch_mll(likelihood(model.likelihood, model))
        everything = self.space.everything()
        with torch.no_grad():
            parts = [model.posterior(self.inputs(part)) for part in everything.split(BLOCK)]
            upper = torch.cat([(part.mean + 2 * part.variance.sqrt())[:, 0] for part in parts])
            hopeful = everything[upper.topk(min(HOPEFUL, len(upper))).indices]
            drawn = model.posterior(self.inputs(hopeful)).rsample(torch.Size([count]))[..., 0]
        ranked = drawn.topk(min(4 * count, len(hopeful)), 1).indices.T.flatten()  # each draw's best, then its second
        return fill(hopeful[ranked], history, count, self.space, torch.Generator().manual_seed(seed))

    def inputs(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N F"]:
        """One-hot letters."""
        return torch.nn.functional.one_hot(tokens, self.space.vocab).flatten(1).double()


def botorch_thompson(space: OrderSpace, proxy: str) -> Player:
    """Thompson sampling with BoTorch's Gaussian process in the place of the proxy; all orders are listed."""
    if space.varies or space.size > LARGEST_EXACT:
        raise ValueError("botorch_thompson lists all orders of one length")
    return BotorchPlayer(space)


# cma


@dataclass(eq=False)
class CmaPlayer:
    """CMA-ES of the package cma over weights of letters, of which the largest at each place wins."""

    space: OrderSpace
    proxy: str
    generations: int = 60
    population: int = 64

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate: the best that it visited by the proxy's mean."""
        mean: Mean = fit_history(self.space, self.proxy, history, seed).mean_tokens
        cma = importlib.import_module("cma")
        start = torch.nn.functional.one_hot(history.tokens[history.scores.argmax()], self.space.vocab).flatten().numpy()
        options = {"popsize": self.population, "seed": seed + 1, "verbose": -9}
        strategy, visited = cma.CMAEvolutionStrategy(start.astype(float), 0.5, options), []
        for _ in range(self.generations):
            points = strategy.ask()
            rows = torch.tensor(np.array(points)).view(len(points), -1, self.space.vocab).argmax(-1)
            visited.append(rows)
            strategy.tell(points, (-mean(rows)).tolist())
        found = torch.cat(visited).unique(dim=0)
        ranked = found[mean(found).argsort(descending=True)]
        return fill(ranked, history, count, self.space, torch.Generator().manual_seed(seed))


def cma_package(space: OrderSpace, proxy: str) -> Player:
    """CMA-ES by its authors. Hansen (2016), arXiv:1604.00772; package cma."""
    if space.varies:
        raise ValueError("cma_package is for sequences of one length")
    return CmaPlayer(space, proxy)
