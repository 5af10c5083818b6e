"""What one `sgfn design propose` works on: a table to begin with, or a round's folder to carry on from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.designer import Designer
from sgfn.design.measured import shown_alphabet
from sgfn.design.proposal import Proposal
from sgfn.design.rounds import read_round_folder, save_round
from sgfn.envs.constraints import Constraints
from sgfn.landscapes.tasks import make_constraints
from sgfn.noise import Noise, make_noise
from sgfn.runs.trust import Trust

LENGTHS = ("min_length", "max_length")


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """A designer that is ready to propose, the proposals before, and what its user should be told."""

    designer: Designer
    history: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def begin(table: Path, settings: Mapping[str, Any], noise: NoiseConfig, constraints: ConstraintsConfig) -> Session:
    """The first round, from a table; lengths among the constraints are those of the orders."""
    lengths = {name: value for name in LENGTHS if (value := getattr(constraints, name)) is not None}
    shown = shown_alphabet(table, settings.get("sequence_column", "sequence"))
    designer = Designer(**{"alphabet": shown, **settings, **lengths}).fit(table)
    designer.noise = _noise(designer, noise)
    designer.constraints = _constraints(constraints)
    designer.space  # noqa: B018 -- noise and constraints are checked before anything is fitted
    found = [] if "alphabet" in settings or shown == "dna" else [f"{table}: letters of {shown}; choose by --alphabet"]
    return Session(designer=designer, notices=found + _ignored(table, designer))


def carry_on(
    folder: Path,
    measured: Path | None,
    settings: Mapping[str, Any],
    noise: NoiseConfig | None = None,
    constraints: ConstraintsConfig | None = None,
    *,
    trust: Trust = False,
) -> Session:
    """The round after that of a folder, with what came of its plate; settings that are given replace its own.

    Code that the folder names must be named again in the settings, or by `trust`.
    """
    found = read_round_folder(folder, trust, replaced=settings.keys())
    designer = found.designer
    if "alphabet" in settings:
        raise ValueError(f"{folder} has its alphabet already ({designer.config.alphabet}): leave --alphabet out")
    designer.config = replace(designer.config, **settings)
    if noise is not None:
        designer.noise = _noise(designer, noise)
    if constraints is not None and constraints != ConstraintsConfig():
        lengths = {name: value for name in LENGTHS if (value := getattr(constraints, name)) is not None}
        designer.config = replace(designer.config, **lengths)
        designer.constraints = _constraints(constraints)
    notices = [f"{len(designer.pending)} orders of {folder} were not measured yet: they are not proposed again"]
    if measured is not None:
        designer.tell(measured)
        notices = [*_ignored(measured, designer), f"{len(designer.pending)} orders are still not measured"]
    return Session(designer=designer, history=found.history, notices=notices if designer.pending else notices[:-1])


def write_round(
    out: Path, session: Session, proposal: Proposal, *, overwrite: bool, page: Callable[[Path], object] | None
) -> Path:
    """Write the folder of a session's round."""
    return save_round(out, session.designer, proposal, session.history, overwrite=overwrite, page=page)


def _noise(designer: Designer, config: NoiseConfig) -> Noise:
    return make_noise(config, designer.config.alphabet, designer.space.max_length)


def _constraints(config: ConstraintsConfig) -> Constraints | None:
    """The constraints but for lengths, which are settings of the design."""
    return make_constraints(replace(config, **dict.fromkeys(LENGTHS)))


def _ignored(table: Path, designer: Designer) -> list[str]:
    names = designer.ignored
    return [f"{table}: columns not read: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"] if names else []
