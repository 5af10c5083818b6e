"""Checks of objectives that are not ours: one finite loss for each trajectory, with a gradient."""

from collections.abc import Sequence
from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.config.checks import nearest
from sgfn.config.importing import function_label
from sgfn.config.user_code import brief, in_user_code
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.parts import Explained, checked_parts
from sgfn.objectives.scores import Objective, Scores

_FIELDS = tuple(field.name for field in fields(Episodes))
_OF_TRAJECTORIES = (*_FIELDS, "final", "length")


def without_states(batch: Episodes) -> Episodes:
    """The batch without its states, whose form differs between backends."""
    return Episodes(**{name: getattr(batch, name) for name in _FIELDS})


class CheckedObjective:
    """A user's objective whose losses are checked: one for each trajectory, with a gradient.

    It may return the losses alone, or a pair of losses and of named tensors whose means are logged.
    """

    def __init__(self, function: Objective, name: str | None = None) -> None:
        self.function, self.name = function, function_label(function) if name is None else name

    def __call__(self, scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
        """Losses of a batch; raises with one line where they have another shape or no gradient."""
        return self.explain(scores, batch).loss

    def explain(self, scores: Scores, batch: Episodes) -> Explained:
        """Losses, and the parts of a function that returns a pair (losses, parts by name)."""
        teller = getattr(self.function, "explain", self.function)
        try:
            found = teller(scores, without_states(batch))
        except (AttributeError, TypeError) as error:
            if why := absent_reason(error, scores):
                raise ValueError(f"objective {self.name} {why}") from error
            raise
        loss, parts = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
        told = parts if isinstance(found, Explained) else checked_parts(self.name, parts)
        return Explained(self._checked(loss, batch.valid.shape[0]), told)

    def _checked(self, loss: object, count: int) -> Float[Tensor, " B"]:
        if not isinstance(loss, Tensor) or loss.shape != (count,):
            got = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise ValueError(f"objective {self.name} must return a tensor of shape [{count}], one loss each, got {got}")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise ValueError(f"objective {self.name} returned losses without a gradient: compute them from the scores")
        return loss

    def refuse_unfinite(self, scores: Scores, batch: Episodes, loss: Float[Tensor, " B"]) -> None:
        """Raise where a batch that is all finite has losses that are not; waits for the device."""
        known = [batch.log_reward, scores.log_pf, scores.log_pb, scores.log_flow, scores.log_dynamics]
        if not all(bool(values.isfinite().all()) for values in known if values is not None):
            return
        if not bool(loss.isfinite().all()):
            wrong = loss[~loss.isfinite()][0].item()
            raise ValueError(f"objective {self.name} gave a loss of {wrong} for finite scores: losses must be finite")


def absent_reason(error: AttributeError | TypeError, scores: Scores) -> str:
    """How an objective's error came of a score that is not there, with those that are; empty where it did not."""
    there = {field.name: getattr(scores, field.name) is not None for field in fields(Scores)}
    known, place = [name for name in there if there[name]], in_user_code(error)
    owner = error.obj if isinstance(error, AttributeError) else None
    if isinstance(error, AttributeError) and isinstance(owner, Scores):
        return f"reads scores.{error.name}{place}, {_choices(str(error.name), known)}"
    if isinstance(error, AttributeError) and isinstance(owner, Episodes):
        return f"reads trajectories.{error.name}{place}, {_choices(str(error.name), _OF_TRAJECTORIES)}"
    if len(known) < len(there) and "NoneType" in str(error):
        none = ", ".join(name for name in there if not there[name])
        return f"failed{place} ({brief(error)}): of the scores, {none} are None; those there are {', '.join(known)}"
    return ""


def _choices(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f"which is not there: choose from {', '.join(known)}" + (f"; did you mean {near}?" if near else "")
