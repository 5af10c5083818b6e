"""What one `sgfn design propose` works on: a table to begin with, or a round's folder to carry on from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.designer import NOISE, Designer
from sgfn.design.measured import shown_alphabet
from sgfn.design.orders import OrderValue
from sgfn.design.proposal import Proposal
from sgfn.design.rounds import read_round_folder, save_round
from sgfn.design.settings import plain_noise
from sgfn.envs.constraints import Constraints
from sgfn.landscapes.measurements import columns_not_read
from sgfn.landscapes.task import constraint_values, make_constraints
from sgfn.noise.indel import Indel
from sgfn.noise.making import changed_indel
from sgfn.runs.spaces import noise_config
from sgfn.runs.trust import Trust

ORDERS = 96
"""Orders of the first plate."""
LOG_FROM = 3.0
"""Highest score by the lowest from which on logarithms are designed for where low scores are good."""
SHEET = ("plate", "well", *(part.name for part in fields(OrderValue)))
"""Columns of a plate's table."""
OWN = {"expected", "intact", "violates"}
"""Those of them that tell it from other tables."""
LENGTHS = ("min_length", "max_length")


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """A designer that is ready to propose, the proposals before, and what its user should be told."""

    designer: Designer
    history: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def orders(self) -> int:
        """Orders of a plate where nothing else is said: as many as were asked for in the round before."""
        last = self.history[-1] if self.history else {}
        return last.get("asked", last.get("orders", ORDERS))


def begin(table: Path, settings: Mapping[str, Any], noise: NoiseConfig, constraints: ConstraintsConfig) -> Session:
    """The first round, from a table; lengths among the constraints are those of the orders."""
    lengths = {name: value for name in LENGTHS if (value := getattr(constraints, name)) is not None}
    shown = shown_alphabet(table, settings.get("sequence_column", "sequence"))
    designer = Designer(**{"alphabet": shown, **settings, **lengths}).fit(table, flags=True)
    _make_noise(designer, noise)
    designer.constraints = _constraints(constraints)
    designer.space  # noqa: B018 -- noise and constraints are checked before anything is fitted
    found = [] if "alphabet" in settings or shown == "dna" else [f"{table}: letters of {shown}; choose by --alphabet"]
    found += [f"{table}: {notice}" for notice in designer.notices] + _ignored(table, designer)
    found += [designer.noise.notice] if designer.noise.notice else []
    if "transform" not in settings and (folds := _spread(designer)) > LOG_FROM:
        designer.config = replace(designer.config, transform="log")
        what = f"scores are above 0 and span {folds:.2g}-fold, and low ones are good: logarithms are designed for"
        found.append(
            f"{table}: {what}, so that expected scores stay above 0; --transform none takes scores as they are"
        )
    return Session(designer=designer, notices=found)


def carry_on(
    folder: Path,
    measured: Path | None,
    settings: Mapping[str, Any],
    noise: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
    *,
    trust: Trust = False,
) -> Session:
    """The round after that of a folder, with what came of its plate; what is given replaces its own, one by one.

    `noise` and `constraints` are fields of `NoiseConfig` and `ConstraintsConfig`, None for a constraint that is lifted.
    Code that the folder names must be named again in the settings, or by `trust`.
    """
    replaced = {*settings, *([NOISE] if "kind" in (noise or {}) else [])}
    found = read_round_folder(folder, trust, replaced=replaced)
    designer = found.designer
    if "alphabet" in settings:
        raise ValueError(f"{folder} has its alphabet already ({designer.config.alphabet}): leave --alphabet out")
    designer.config = replace(designer.config, **settings)
    if constraints:
        lengths = {name: constraints[name] for name in LENGTHS if name in constraints}
        designer.config = replace(designer.config, **lengths)
        designer.constraints = _replaced_constraints(designer.constraints, constraints)
    if noise:
        _change_noise(designer, noise)
    elif designer.noise_settings is not None:
        designer.make_noise(designer.noise_settings)  # for the lengths as they are now
    designer.space  # noqa: B018 -- noise and constraints are checked before anything is fitted
    notices = [f"orders of {folder} that were not measured yet: {len(designer.pending)}; they are not proposed again"]
    if measured is not None:
        designer.tell(measured, flags=True)
        told = [f"{measured}: {notice}" for notice in designer.notices]
        notices = [*_ignored(measured, designer), *told, f"orders still not measured: {len(designer.pending)}"]
    notices = notices if designer.pending else notices[:-1]
    if noise and designer.noise.notice:
        notices = [designer.noise.notice, *notices]
    return Session(designer=designer, history=found.history, notices=notices)


def write_round(
    out: Path, session: Session, proposal: Proposal, *, overwrite: bool, page: Callable[[Path], object] | None
) -> Path:
    """Write the folder of a session's round."""
    return save_round(out, session.designer, proposal, session.history, overwrite=overwrite, page=page)


def _spread(designer: Designer) -> float:
    """Highest score divided by the lowest where low ones are good and all are above 0; else 1."""
    scores = designer.measured.score
    return float(scores.max() / scores.min()) if designer.config.minimise and scores.min() > 0 else 1.0


def _make_noise(designer: Designer, config: NoiseConfig) -> None:
    """Make the noise of a design, which its folder must be able to keep."""
    designer.make_noise(config)
    plain_noise(designer.noise, config)


def _change_noise(designer: Designer, given: Mapping[str, Any]) -> None:
    """Put the fields that are given in the place of those of a round's noise."""
    if isinstance(designer.noise, Indel) and (made := changed_indel(designer.noise, designer.config.alphabet, given)):
        designer.noise, designer.noise_settings = made, None
        return
    own = designer.noise_settings or noise_config(designer.noise) or NoiseConfig(alpha=0.0)
    kind = {"kind": "indel"} if given.get("preset") else {}
    _make_noise(designer, replace(own, **{**kind, **given}))


def _constraints(config: ConstraintsConfig) -> Constraints | None:
    """The constraints but for lengths, which are settings of the design."""
    return make_constraints(replace(config, **dict.fromkeys(LENGTHS)))


def _replaced_constraints(own: Constraints | None, given: Mapping[str, Any]) -> Constraints | None:
    """Constraints of a round with those that are given in the place of its own; None where none is left."""
    values, none = constraint_values(ConstraintsConfig(**given)), Constraints()
    changed = {name: values.get(name, getattr(none, name)) for name in given if name not in LENGTHS}
    found = replace(own or none, **changed)
    return None if found == none else found


def _ignored(table: Path, designer: Designer) -> list[str]:
    """A notice of columns that were not read, and how to read one that looks like errors; FASTA has names."""
    ours = {*SHEET} if designer.round and {*SHEET} & {*designer.ignored} >= OWN else set()  # a plate's table filled in
    names = [name for name in designer.ignored if name not in ours]
    words = columns_not_read(table, names, None if designer.config.sd_column else "--sd-column")
    return [f"{table}: {words}"] if words else []
