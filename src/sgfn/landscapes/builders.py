"""Builders of tasks; the first line of each docstring is what the list of tasks says where one cannot be built yet."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import Any

import torch

from sgfn.config import TrainConfig
from sgfn.config.importing import find
from sgfn.config.tasks import GridConfig, TableConfig
from sgfn.envs import GridEnv
from sgfn.landscapes import tfbind8
from sgfn.landscapes.bits import Bits
from sgfn.landscapes.ehrlich import Ehrlich
from sgfn.landscapes.function import FunctionLandscape, letters, load_function
from sgfn.landscapes.hypergrid import DeceptiveHypergrid, Hypergrid
from sgfn.landscapes.measured import MeasuredLandscape, Rule
from sgfn.landscapes.measurements import Measurements, measurements_of, resolve_alphabet
from sgfn.landscapes.motif import Motif
from sgfn.landscapes.proxies import Proxy, fit_proxy
from sgfn.landscapes.proxies.files import read_proxy
from sgfn.landscapes.rna import ALPHABET as RNA_LETTERS
from sgfn.landscapes.rna import Rna
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.task import Task, assemble, sequences
from sgfn.landscapes.words import Words
from sgfn.noise import make_noise

CORNERS = "peaks in the corners (Bengio et al. 2021)"
PROXY_FROM = 20
"""Measured sequences from which on a proxy is fitted to them, unless another rule is asked for."""


def tfbind8_task(name: str, config: TrainConfig) -> Task:
    """DNA 8-mers, binding to a transcription factor (Barrera et al. 2016)"""
    table = name.partition("-")[2] or tfbind8.DEFAULT
    env = sequences(config, length=tfbind8.LENGTH, alphabet=tfbind8.ALPHABET)
    landscape = TableLandscape(torch.from_numpy(tfbind8.load_scores(table)), vocab=env.vocab, mode_level=0.9)
    return assemble(name, config, env, landscape, 3.0, f"DNA 8-mers, binding to {table.upper()} (Barrera et al. 2016)")


def grid_task(name: str, config: TrainConfig) -> Task:
    """hypergrid, peaks in the corners (Bengio et al. 2021)"""
    ndim, side = config.grid.ndim, config.grid.side
    env = GridEnv(ndim=ndim, side=side, noise=make_noise(config.noise, None, ndim * (side - 1) + 1))
    r0, least = config.grid.r0, config.reward.minimum
    if r0 < least and config.grid != GridConfig(ndim=ndim, side=side):
        raise ValueError(f"grid.r0 {r0:g} lies below reward.minimum {least:g}, which would hide it: lower that one too")
    deceptive = config.grid.shape == "deceptive"
    landscape = DeceptiveHypergrid(side=side, r0=r0, r1=0.1) if deceptive else Hypergrid(side=side, r0=r0)
    where = "peaks in the corners, a lure in the middle (Kim et al. 2025)" if deceptive else CORNERS
    return assemble(name, config, env, landscape, 1.0, f"hypergrid, {ndim} coordinates of {side} cells, {where}")


def words_task(name: str, config: TrainConfig) -> Task:
    """DNA strings of 1 to 7 letters near three hidden words: variable length"""
    env = sequences(config, length=7, alphabet="ACGT", min_length=1)
    summary = "DNA strings of 1 to 7 letters near three hidden words: variable length"
    return assemble(name, config, env, Words(alphabet=env.alphabet), 1.0, summary)


def motif_task(name: str, config: TrainConfig) -> Task:
    """DNA that a transcription factor of JASPAR CORE binds, R = exp(score)"""
    chosen, factor = config.motif, name.partition("-")[2] or config.motif.factor
    with _naming("motif", chosen):
        landscape = Motif.named(factor, length=chosen.length, score=chosen.score)
    env = sequences(config, length=chosen.length, alphabet=tfbind8.ALPHABET)
    which = "mean" if chosen.score == "sum" else "best"
    summary = f"DNA of {chosen.length} letters, {which} PWM score of {landscape.name} (JASPAR 2024)"
    return assemble(name, config, env, landscape, 3.0, summary)


def bits_task(name: str, config: TrainConfig) -> Task:
    """bit strings near hidden modes (Malkin et al. 2022)"""
    with _naming("bits", config.bits):
        landscape = Bits(**vars(config.bits))
    env = sequences(config, length=landscape.tokens, alphabet=landscape.alphabet)
    summary = (
        f"{landscape.length} bits, {landscape.k} at a time, near {len(landscape.modes)} modes (Malkin et al. 2022)"
    )
    return assemble(name, config, env, landscape, 3.0, summary)


def ehrlich_task(name: str, config: TrainConfig) -> Task:
    """motifs with spacings and forbidden neighbours (Stanton et al. 2024)"""
    with _naming("ehrlich", config.ehrlich):
        landscape = Ehrlich(**vars(config.ehrlich))
    env = sequences(config, length=landscape.length, alphabet=landscape.alphabet)
    summary = (
        f"Ehrlich function, {len(landscape.motifs)} motifs of {landscape.motif_length} in {env.length} letters "
        "(Stanton et al. 2024)"
    )
    return assemble(name, config, env, landscape, 1.0, summary)


def rna_task(name: str, config: TrainConfig) -> Task:
    """RNA that binds a target or folds stably, by ViennaRNA (Lorenz et al. 2011)"""
    with _naming("rna", config.rna):
        landscape = Rna(**vars(config.rna))
    env = sequences(config, length=landscape.length, alphabet=RNA_LETTERS)
    aim = f"binding to {config.rna.target}" if config.rna.mode == "bind" else "folding"
    return assemble(name, config, env, landscape, 3.0, f"RNA of {env.length} letters, {aim}, by ViennaRNA")


def table_task(name: str, config: TrainConfig) -> Task:
    """your own measurements: a CSV of sequences and scores"""
    chosen = config.table
    if chosen.file is None:
        raise ValueError("task 'table' needs a CSV of sequences and scores: name it with --table.file")
    found = measurements_of(chosen)
    _check_sign(found, chosen)
    shortest, longest = found.min_length, found.max_length
    env = sequences(config, length=longest, alphabet=found.alphabet, min_length=shortest)
    rule, proxy = _unseen(found, config)
    landscape = MeasuredLandscape(found, length=longest, unseen=rule, decay=chosen.decay, proxy=proxy)
    _check_range(landscape, config)
    size = f"{shortest} to {longest}" if env.stop else str(longest)
    summary = f"{len(found.sequences):,} measured sequences of {size} letters in {chosen.file.name}"
    summary += f", others by {proxy.kind}" if proxy is not None else ""
    return assemble(name, config, env, landscape, 1.0, summary)


def callable_task(name: str, config: TrainConfig) -> Task:
    """any Python function from strings to scores"""
    chosen = config.callable
    if chosen.function is None:
        raise ValueError("task 'callable' needs a function: name it with --callable.function module:function")
    with _naming("callable", chosen):
        function = load_function(chosen.function)
    alphabet = resolve_alphabet(chosen.alphabet, "callable.alphabet")
    env = sequences(config, length=chosen.length, alphabet=alphabet, min_length=chosen.min_length)
    known = math.inf if chosen.maximum is None else 0.9 * chosen.maximum
    level = known if chosen.mode_level is None else chosen.mode_level
    names = ("on_error", "retries", "keep_scores", "workers", "timeout")
    options: dict[str, Any] = {name: getattr(chosen, name) for name in names}
    options |= {"made_by": partial(find, chosen.function, "function")}
    decode = letters(alphabet)
    landscape = FunctionLandscape(function, decode, chosen.maximum, level, name=chosen.function, **options)
    return assemble(name, config, env, landscape, 1.0, f"strings scored by {chosen.function}")


@contextmanager
def _naming(section: str, config: Any) -> Iterator[None]:
    """Errors that begin with a field's name get the section's before it, as the flag has."""
    try:
        yield
    except ValueError as error:
        known = {field.name for field in fields(config)}
        prefix = f"{section}." if str(error).partition(" ")[0] in known else ""
        raise ValueError(f"{prefix}{error}") from error.__cause__


def _unseen(found: Measurements, config: TrainConfig) -> tuple[Rule, Proxy | None]:
    """The rule for what was not measured, and the proxy where that is the rule: one that was kept, or a new one."""
    rule = config.table.unseen
    if rule == "auto":
        rule = "proxy" if len(found.sequences) >= PROXY_FROM else "nearest"
    if rule != "proxy":
        return rule, None
    if config.proxy.file is not None:
        return rule, read_proxy(config.proxy.file, found)
    options = {"kind": config.proxy.kind, "folds": config.proxy.folds, "seed": config.proxy.seed}
    return rule, fit_proxy(found.sequences, found.values, alphabet=found.alphabet, sd=found.value_sd, **options)


def _check_sign(found: Measurements, chosen: TableConfig) -> None:
    """Rewards are zero or above."""
    if (lowest := float(found.values.min())) < 0:
        which = "minimise" if chosen.minimise else f"transform {chosen.transform}"
        raise ValueError(
            f"table.{which} makes the values of {chosen.file} negative, down to {lowest:g}: "
            "add --table.scale minmax, which maps them to 0..1"
        )


def _check_range(landscape: MeasuredLandscape, config: TrainConfig) -> None:
    """Scores that are all clipped to the same reward teach nothing."""
    if landscape.highest <= float(torch.tensor(config.reward.minimum)):  # rounded as the scores are
        raise ValueError(
            f"{config.table.file}: no score is above --reward.minimum ({config.reward.minimum:g}), the highest is "
            f"{landscape.highest:g}; lower --reward.minimum, or scale with --table.scale minmax"
        )
