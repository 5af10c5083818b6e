"""Predictions in the user's units from a proxy that was fitted to transformed scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.landscapes.proxies import Proxy, ProxyReport
from sgfn.landscapes.proxies.base import Prediction
from sgfn.landscapes.proxies.honesty import ToldLaw
from sgfn.landscapes.transforms import ScoreTransform

Scores = tuple[tuple[str, float], ...]
"""Columns of scores with their weights in the sum that is designed for."""


@dataclass(frozen=True, eq=False)
class UserUnits:
    """A proxy of what is maximised, and the transform that leads back to scores."""

    proxy: Proxy
    transform: ScoreTransform
    law: ToldLaw | None = None
    """What is told of predictions; without it they are told as the proxy gives them."""

    def predict(self, sequences: Sequence[str]) -> Prediction:
        """Expected score and its uncertainty of each sequence."""
        found = self.values(sequences)
        mean, sd = self.transform.predictions(found.mean, found.sd)
        return Prediction(mean=mean, sd=sd)

    def values(self, sequences: Sequence[str]) -> Prediction:
        """Expectation and uncertainty of what is maximised, as they are told."""
        found = self.proxy.predict(sequences)
        mean, sd = (found.mean, found.sd) if self.law is None else self.law(found.mean, found.sd)
        return Prediction(mean=mean, sd=sd)

    def members(self, tokens: Int[Tensor, "N L"]) -> Float64[Tensor, "M N"]:
        """Members' values of what is maximised, as their mean is told."""
        found = self.proxy.member_tokens(tokens)
        return found if self.law is None else self.law.mean(found)

    def beyond(self, tokens: Int[Tensor, "N L"]) -> float | None:
        """The score beyond which half is told, where a sequence is predicted to lie there; None where none is."""
        if self.law is None or not bool((self.proxy.mean_tokens(tokens) > self.law.top).any()):
            return None
        return self.score(self.law.top)

    def validation(self) -> ProxyReport:
        """The report of the proxy's cross-validation with measured and predicted scores in their own units."""
        return self.proxy.report.told(self.transform)

    def score(self, value: float) -> float:
        """The score of a value that is maximised."""
        return self.transform.score(value)


def score_weights(given: Mapping[str, float] | Sequence[tuple[str, float]] | str) -> Scores:
    """Columns with weights, from a mapping or from text such as `activity=1,toxicity=-0.5`.

    >>> score_weights("activity=1,toxicity=-0.5")
    (('activity', 1.0), ('toxicity', -0.5))
    """
    fix = "write columns with weights, like activity=1,toxicity=-0.5"
    if isinstance(given, str):
        pairs = [part.rpartition("=")[::2] for part in given.split(",")]
    else:
        pairs = list(given.items() if isinstance(given, Mapping) else given)
    found = []
    for pair in pairs:
        try:
            name, weight = pair
            value = float(weight)
        except (TypeError, ValueError):
            raise ValueError(f"scores {given!r} cannot be read; {fix}") from None
        if not name or not isinstance(name, str) or not np.isfinite(value) or value == 0.0:
            raise ValueError(f"scores must be names with finite weights other than 0, got {given!r}; {fix}")
        found.append((name.strip(), value))
    if len({name for name, _ in found}) < len(found):
        raise ValueError(f"scores {given!r} names a column twice; {fix}")
    return tuple(found)
