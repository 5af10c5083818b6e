"""Design in rounds, in memory: fit a proxy to measurements, propose a plate of orders, be told what came of it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.config import NoiseConfig
from sgfn.config.checks import shorten, whole_number
from sgfn.design.acquisition import acquisition_used
from sgfn.design.failures import avoiding
from sgfn.design.measured import MEASURED, RoundTable, Source, read_round, with_round
from sgfn.design.proposal import Choice, Proposal, choose, outlook_of
from sgfn.design.sampler import Weights
from sgfn.design.settings import DesignConfig
from sgfn.design.space import OrderSpace
from sgfn.design.units import UserUnits
from sgfn.design.wells import describe, plate_frame
from sgfn.envs.constraints import Constraints
from sgfn.landscapes.proxies import Proxy, ProxyReport, fit_proxy
from sgfn.landscapes.proxies.honesty import HeldOut, ToldLaw
from sgfn.landscapes.proxies.pool import Pool
from sgfn.landscapes.score_cells import with_commas, without_score
from sgfn.landscapes.transforms import ScoreTransform
from sgfn.noise import NOISES, Noise, make_noise
from sgfn.runs.parts import describe_noise
from sgfn.runs.spaces import as_noise
from sgfn.runs.trust import Trust

MOST_ORDERS = 10_000
NOISE = "noise.kind"
"""The field by which a folder names the code of a noise."""
WEAK, FEW = 0.2, 30
"""Rank correlation in cross-validation, and number of sequences, below which a proxy is said to know little."""
SAME, SHARE = 1e-9, 0.1
"""Relative difference up to which a told score is the predicted one, and share of such rows that is refused."""
FAR = 100.0
"""Distance from the median, in ranges of the middle half of the scores, from which on a score is told as an outlier."""
Figures = Float64[np.ndarray, " N"]


class Designer:
    """From measured sequences to orders, round after round.

    `noise` is a rate, an object of `sgfn.noise`, its settings, or the name `module:name` of what makes it, by which a
    folder can keep one of your own; `constraints` is an object of `sgfn.envs.constraints`; the other arguments are
    fields of `DesignConfig`. A plate's orders are pending until `tell` brings their scores: they are not
    proposed again, and the acquisition believes what the proxy predicts of them. What is told of the proxy and of a
    plate comes from measurements alone.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"sequence": ["AAC", "ACC", "CCC", "CAC", "AAA", "CCA"], "score": [2, 1, 0, 1, 3, 1]})
    >>> plate = Designer("AC", proxy="ridge").fit(table).propose(2)
    >>> plate.how, len(plate)
    ('exact', 2)
    """

    def __init__(
        self,
        alphabet: str = "dna",
        *,
        length: int | None = None,
        noise: float | Noise | NoiseConfig | str | None = None,
        constraints: Constraints | None = None,
        **settings: Any,
    ) -> None:
        if length is not None:
            if {"min_length", "max_length"} & settings.keys():
                raise ValueError("length is for sequences of one length: leave it out, or min_length and max_length")
            settings |= {"min_length": length, "max_length": length}
        self.config = DesignConfig(alphabet=alphabet, **settings)
        noise = NoiseConfig(kind=noise) if isinstance(noise, str) and ":" in noise else noise
        self.noise = as_noise(None if isinstance(noise, NoiseConfig) else noise)
        self.noise_settings = noise if isinstance(noise, NoiseConfig) else None
        """What the noise is made from when there are data, which tell the longest sequence; None where it was given."""
        self.constraints = constraints
        self.measured = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in MEASURED.items()})
        self.pending: dict[str, tuple[float, float]] = {}
        """Orders that were proposed and not measured yet, with expected score and standard deviation."""
        self.foretold: dict[str, float] = {}
        """Predicted score of each order of the last plate if it comes out intact, as its table has it."""
        self.round = 0
        """Number of plates proposed so far."""
        self.ignored: tuple[str, ...] = ()
        """Columns of the last table that were not read."""
        self.notices: tuple[str, ...] = ()
        """What to know of the last table that was told: wells that failed, sequences that were not ordered."""
        self.weights: Weights | None = None
        self.proxy: Proxy | None = None

    # what is known

    @property
    def noise(self) -> Noise:
        """What happens to an order; one that is set is kept, whatever the design was made with."""
        return self._noise

    @noise.setter
    def noise(self, noise: Noise) -> None:
        self._noise, self.noise_settings = noise, None

    def make_noise(self, settings: NoiseConfig) -> None:
        """Make the noise for the letters and the longest sequence of the data; a folder keeps the name of its code."""
        self._noise = make_noise(settings, self.config.alphabet, self.space.max_length)
        self.noise_settings = settings

    @property
    def code(self) -> dict[str, str]:
        """Code that a folder of this design names and nobody has registered here, by field."""
        kind = "" if self.noise_settings is None else self.noise_settings.kind
        made = len(self.measured) > 0 and describe_noise(self.noise)["kind"] != "own"  # one of ours, by whatever code
        return self.config.code | ({NOISE: kind} if ":" in kind and kind not in NOISES and not made else {})

    @property
    def sign(self) -> float:
        """-1 where low scores are good, else 1."""
        return -1.0 if self.config.minimise else 1.0

    @property
    def space(self) -> OrderSpace:
        """The sequences that may be ordered: their lengths are those of the first table where they are not set."""
        self._need_data()
        lengths = self.measured.sequence[self.measured["round"] == 0].str.len()
        found = self.config.space((int(lengths.min()), int(lengths.max())), self.noise, self.constraints)
        if not self.noise.changes_length:
            return found
        worst = float(self.transform.values(self.measured.score.to_numpy(dtype=float)).min())
        return replace(found, failed=worst)  # what comes out too short is taken to be as bad as the worst

    @property
    def best(self) -> tuple[str, float]:
        """The best sequence measured, and its score."""
        self._need_data()
        place = int(np.argmax(self.sign * self.measured.score.to_numpy()))
        return str(self.measured.sequence.iloc[place]), float(self.measured.score.iloc[place])

    def fit(self, data: Source, *, flags: bool = False) -> "Designer":
        """Begin with measurements: a table, or the name of its file; whatever was known before is forgotten.

        `flags`: messages name flags of the command line, not parameters of Python.
        """
        found = read_round(data, self.config, flags=flags)
        self.ignored, self.notices = found.ignored, (*self._read_as(found), *_unmeasured(found))
        self.measured = with_round(found.rows, 0)
        self.pending, self.foretold, self.round, self.weights, self.proxy = {}, {}, 0, None, None
        if self.noise_settings is not None:
            self.make_noise(self.noise_settings)
        self.space  # noqa: B018 -- lengths and constraints are checked now
        self.transform  # noqa: B018 -- and whether scores have logarithms
        return self

    def tell(self, data: Source, *, flags: bool = False) -> "Designer":
        """Add measurements of the last plate, or of anything else; their orders are no longer pending.

        A column `order` says what was ordered where the column of sequences says what came out; without it the two
        are the same. Columns must be those of the first table. Rows whose score is empty or NA were not measured: their
        orders stay pending. What was not ordered is taken, and told in `notices`, unless its length is a new one.
        """
        self._need_data()
        found = read_round(data, self.config, told=True, flags=flags)
        self._refuse_lengths(found, flags)
        self._refuse_predictions(found, flags)
        self.ignored, self.notices = found.ignored, self._notices(found)
        unknown, rows = (np.nan, np.nan), found.rows
        predicted = [self.pending.get(order, unknown) for order in rows.order]
        rows["predicted"], rows["predicted_sd"] = zip(*predicted, strict=True)
        self.measured = pd.concat([self.measured, with_round(rows, max(self.round, 1))], ignore_index=True)
        done = {*rows.order}
        self.pending = {order: figures for order, figures in self.pending.items() if order not in done}
        self.proxy = None
        return self

    def _refuse_lengths(self, found: RoundTable, flags: bool) -> None:
        """Raise for a sequence that was not ordered and has a length that neither data nor settings have."""
        sizes, space = self.measured.sequence.str.len(), self.space
        least, most = min(sizes.min(), space.min_length), max(sizes.max(), space.max_length)
        for row, order in enumerate(found.rows.order):
            if order not in self.pending and not least <= len(order) <= most:
                setting = "min_length" if len(order) < least else "max_length"
                allow = f"--{setting.replace('_', '-')} {len(order)}" if flags else f"{setting}={len(order)}"
                seen = f"{least}" if least == most else f"{least} to {most}"
                what = f"{shorten(order)!r} has {len(order)} letters and was not ordered, and all before have {seen}"
                fix = f"correct or remove the row, or allow it with {allow}"
                raise found.table.problem(f"{what}; {fix}", row, found.order_column)

    def _refuse_predictions(self, found: RoundTable, flags: bool) -> None:
        """Raise where scores are those that the plate's own table predicted: nobody measured them."""
        ours = [self.foretold.get(order, np.nan) for order in found.rows.order]
        same = np.flatnonzero(np.isclose(found.rows.score.to_numpy(dtype=float), ours, rtol=SAME, atol=0.0))
        if len(same) < max(2, SHARE * len(ours)):
            return
        what = f"{len(same)} rows have the scores that were predicted of their orders, not measured ones"
        chosen = "--score-column" if flags else "score_column="
        fix = f"write what was measured there, nothing where nothing was, or choose its column with {chosen}"
        raise found.table.problem(f"{what}; {fix}", int(same[0]), self.config.score_parts[0][0])

    def _notices(self, found: RoundTable) -> tuple[str, ...]:
        """What to know of a table that was told."""
        table, made = found.table, self._read_as(found)
        made += _unmeasured(found, "not measured, orders among them stay pending")
        known = {*self.pending, *self.measured.order, *self.measured.sequence}
        strange = [row for row, order in enumerate(found.rows.order) if order not in known]
        if strange and self.round:
            rows = "1 row was" if len(strange) == 1 else f"{len(strange)} rows were"
            where = f"the first on {table.unit} {table.lines[strange[0]]}: {shorten(found.rows.order[strange[0]])}"
            made.append(f"{rows} not ordered ({where}): learned from all the same")
        return tuple(made)

    def _read_as(self, found: RoundTable) -> list[str]:
        """Notices of decimal commas, and of letters of DNA in a table of RNA or the other way round."""
        commas = [with_commas(found.commas)] if found.commas else []
        if not (lines := found.respelled):
            return commas
        own, other = ("T", "U") if "T" in self.config.alphabet else ("U", "T")
        rows = "1 row writes" if len(lines) == 1 else f"{len(lines)} rows write"
        return [*commas, f"{rows} {other} (the first on {found.table.unit} {lines[0]}): read as {own}"]

    def propose(self, count: int = 96) -> Proposal:
        """A plate of orders; they are pending from now on."""
        whole_number("orders", count, 1, MOST_ORDERS)
        began = time.perf_counter()
        space = self.space
        whole_number("distance", self.config.distance, 1, space.max_length)
        space.automaton  # noqa: B018 -- constraints that nothing satisfies are refused before a proxy is fitted
        proxy = self.fitted()
        measured, barred = self._best_first(), self._barred(space)
        members = self._with_pending(proxy).member_tokens
        choice = choose(
            self._without_failures(space),
            members,
            self.config,
            count,
            self._inside(space, measured),
            barred,
            self._seed(1),
            self.weights,
            proxy.report.spearman,
            self._improved(),
        )
        self.weights = choice.weights
        self.round += 1
        units = self.units(proxy)
        orders = self._orders(space, units, choice)
        figures = zip(orders.expected.astype(float), orders.sd.astype(float), strict=True)
        self.pending |= dict(zip(orders.order, figures, strict=True))
        self.foretold = dict(zip(orders.order, orders.score.astype(float), strict=True))
        self.proxy = None  # each round has its own seed
        return Proposal(
            round=self.round,
            orders=orders,
            how=choice.found.how,
            note=self._note(choice, count, proxy.report),
            acquisition=acquisition_used(self.config.acquisition, searched=choice.found.how == "search"),
            kappa=self.config.kappa,
            noise="no noise" if space.silent else space.channel.noise_summary,
            outlook=outlook_of(
                space,
                units.members,
                choice,
                proxy.tokens(measured),
                self.best[1],
                float(orders.expected.mean()),
                units.score,
                self._seed(2),
            ),
            proxy=report_of(proxy) | {"asked": self.config.proxy},
            validation=units.validation(),
            held_out=HeldOut.of(proxy.report, self.transform),
            beyond=units.beyond(choice.tokens),
            asked=count,
            scored=choice.found.scored,
            seconds=time.perf_counter() - began,
        )

    def predict(self, sequences: Sequence[str]) -> pd.DataFrame:
        """Predicted score of sequences if they come out intact, and its standard deviation, as the proxy gives them.

        A plate tells less of its orders, which were chosen because predictions are high (`landscapes.proxies.honesty`).
        """
        found = UserUnits(self.fitted(), self.transform).predict(list(sequences))
        return pd.DataFrame({"sequence": list(sequences), "score": found.mean, "sd": found.sd})

    # folders

    def save(self, folder: Path | str, *, overwrite: bool = False) -> None:
        """Write what is known to a folder, as JSON, CSV and safetensors; `load` and the command line read it."""
        from sgfn.design.rounds import save_round  # it makes designers

        save_round(Path(folder), self, overwrite=overwrite)

    @classmethod
    def load(cls, folder: Path | str, *, trust: Trust = False) -> "Designer":
        """The designer of a round's folder; code that it names is run only where `trust` names it again."""
        from sgfn.design.rounds import read_round_folder

        return read_round_folder(Path(folder), trust).designer

    # the proxy

    def fitted(self) -> Proxy:
        """The proxy of all measurements."""
        if self.proxy is None:
            self._need_data()
            self.proxy = self._fit(self.config.proxy, *self._training())
        return self.proxy

    def _with_pending(self, proxy: Proxy) -> Proxy:
        """A proxy fitted anew with pending orders at what it predicts of them, so that their neighbours attract less.

        For the acquisition alone: its cross-validation is over values that the proxy made up itself.
        """
        sequences, values, sd, weights = self._training()
        known = set(sequences)
        if not (waiting := [order for order in self.pending if order not in known]):
            return proxy
        believed = proxy.predict(waiting)
        spread = None if sd is None else np.concatenate([sd, believed.sd])
        counted = None if weights is None else np.concatenate([weights, np.full(len(waiting), weights.mean())])
        return self._fit(proxy.kind, [*sequences, *waiting], np.concatenate([values, believed.mean]), spread, counted)

    @property
    def transform(self) -> ScoreTransform:
        """From scores to what is maximised, by what was measured so far."""
        scores = self.measured.score.to_numpy(dtype=float)
        return ScoreTransform.of(scores, self.config.transform, minimise=self.config.minimise)

    def units(self, proxy: Proxy) -> UserUnits:
        """Predictions of a proxy in the units of the scores, as they are told (`landscapes.proxies.honesty`)."""
        return UserUnits(proxy, self.transform, ToldLaw.of(proxy))

    def _fit(
        self, kind: str, sequences: list[str], scores: Figures, sd: Figures | None, weights: Figures | None
    ) -> Proxy:
        config = self.config
        longest = max(self.space.max_length, *map(len, sequences))
        return fit_proxy(
            sequences,
            scores,
            alphabet=config.alphabet,
            sd=sd,
            weights=weights,
            kind=kind,
            seed=self._seed(0),
            max_length=longest,
        )

    def _training(self) -> tuple[list[str], Figures, Figures | None, Figures | None]:
        """Sequences with what is maximised, its standard deviations if all rows have them, and weights if any has.

        Rows without a weight count as 1.
        """
        scores, sd, weight = (self.measured[name].to_numpy(dtype=float) for name in ("score", "sd", "weight"))
        if scores.min() == scores.max():
            raise ValueError(
                f"every score is {scores[0]:g}: nothing can be learned from that; choose another score column"
            )
        spread = None if np.isnan(sd).any() else self.transform.value_sd(scores, sd)
        counted = None if np.isnan(weight).all() else np.nan_to_num(weight, nan=1.0)
        return self.measured.sequence.tolist(), self.transform.values(scores), spread, counted

    # parts of a proposal

    def _best_first(self) -> list[str]:
        """Measured sequences, each once, best first."""
        ordered = self.measured.assign(good=self.sign * self.measured.score).sort_values("good", ascending=False)
        return ordered.sequence.drop_duplicates().tolist()

    def _improved(self) -> list[bool]:
        """Whether each plate that was measured brought a better score than all before it."""
        best = self.measured.assign(good=self.sign * self.measured.score).groupby("round").good.max()
        return [bool(after > before) for before, after in pairwise(best.cummax())]

    def _barred(self, space: OrderSpace) -> Int[Tensor, "B L"]:
        """What may not be ordered: what was measured or ordered before, unless repeats are asked for."""
        before = [] if self.config.repeat else [*self.measured.sequence, *self.measured.order, *self.pending]
        return self._inside(space, list(dict.fromkeys(before)))

    def _inside(self, space: OrderSpace, texts: list[str]) -> Int[Tensor, "N L"]:
        fits = [text for text in texts if space.min_length <= len(text) <= space.max_length]
        return space.parse(fits)

    def _without_failures(self, space: OrderSpace) -> OrderSpace:
        """The space in which a search avoids what only failed sequences have."""
        sequences, values, *_ = self._training()
        inside = [space.min_length <= len(text) <= space.max_length for text in sequences]
        kept = torch.tensor(values)[torch.tensor(inside, dtype=torch.bool)]
        return avoiding(space, self.config.failures, self._inside(space, sequences), kept)

    def _orders(self, space: OrderSpace, units: UserUnits, choice: Choice) -> pd.DataFrame:
        measured = self.measured.sequence.drop_duplicates().tolist()
        return plate_frame(describe(space, units, space.decode(choice.tokens), measured, self._seed(3)))

    def _note(self, choice: Choice, count: int, report: ProxyReport) -> str:
        short = count - len(choice.tokens)
        weak = report.spearman < WEAK or len(report.sequences) < FEW
        known = f"{len(report.sequences)} sequences, rank correlation {report.spearman:.2f}"
        doubt = f"; the proxy knows little ({known}): take the plate as a first look{self._outlier()}" if weak else ""
        fewer = (
            f"; {short} of {count} wells stay empty: nothing more is left to order at this distance" if short else ""
        )
        idle = "; no flow network takes part where all orders are ranked"
        unread = idle if self.config.sampler == "on" and choice.found.how == "exact" else ""
        return choice.found.note + unread + fewer + doubt

    def _outlier(self) -> str:
        """A remark on the score farthest from the others, where it is so far that nothing else can be learned."""
        scores = self.measured.score.to_numpy(dtype=float)
        low, middle, high = np.quantile(scores, (0.25, 0.5, 0.75))
        far = int(np.abs(scores - middle).argmax())
        if self.config.transform == "rank" or abs(scores[far] - middle) <= FAR * max(high - low, 1e-300):
            return ""
        whose = shorten(str(self.measured.sequence.iloc[far]), 40)
        return f"; {scores[far]:g} of {whose} is far from all others: correct it, or take transform rank"

    # checks

    def _need_data(self) -> None:
        if not len(self.measured):
            raise ValueError("there are no measurements yet: call fit(table) first")

    def _seed(self, purpose: int) -> int:
        """A seed for each round and purpose."""
        return (self.config.seed * 1_000_003 + 101 * self.round + purpose) % (2**31 - 1)


def _unmeasured(found: RoundTable, what: str = "left out") -> list[str]:
    """A notice of rows without a score."""
    return [without_score(found.unmeasured, found.table.unit, what)] if found.unmeasured else []


def report_of(proxy: Proxy) -> dict[str, Any]:
    """What the proxy's cross-validation says, as plain data."""
    names = ("kind", "rows", "folds", "spearman", "rmse", "coverage")
    kinds = {"kinds": [*proxy.model.models]} if isinstance(proxy.model, Pool) else {}
    return {name: getattr(proxy.report, name) for name in names} | kinds
