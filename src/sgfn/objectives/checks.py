"""Checks of objectives that are not ours: one finite loss for each trajectory, with a gradient."""

from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.config.importing import function_label
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.parts import Explained, checked_parts
from sgfn.objectives.scores import Objective, Scores

_FIELDS = tuple(field.name for field in fields(Episodes))


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
        found = teller(scores, without_states(batch))
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
