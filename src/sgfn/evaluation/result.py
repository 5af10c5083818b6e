"""What `evaluate` finds: figures with names and types, which can be read by name as JSON has them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar


class Figures(Mapping[str, Any]):
    """A dataclass that is also a mapping from its fields' names to their values, which is its JSON object.

    Fields named in `seldom` have no place in the mapping while they are None.
    """

    seldom: ClassVar[frozenset[str]] = frozenset()

    def __getitem__(self, name: str) -> Any:
        if name not in set(self):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        names = (field.name for field in fields(self))  # pyright: ignore[reportArgumentType]
        return (name for name in names if name not in self.seldom or getattr(self, name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        """Name and figures that are numbers or words; lists and tables by their names alone."""
        known = {name: value for name, value in self.items() if value is not None}
        short = [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in known.items()
            if isinstance(value, int | float | str)
        ]
        longer = [name for name, value in known.items() if not isinstance(value, int | float | str)]
        return f"{type(self).__name__}({', '.join([*short, *(f'{name}=...' for name in longer)])})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Figures):
    """Figures of a trained policy: distances to the exact answer, samples, the noise model, orders.

    Also a mapping from names to figures, the object of exact.json: `found.tv` and `found["tv"]` are the same. Figures
    that a task does not have are None; the last ones (`seldom`) have no place in the mapping then.
    """

    seldom = frozenset({"floor_kind", "tv_absent", "kl_error", "kl_floor", "kernel"})

    task: str = ""
    step: int = 0
    samples: int = 0
    seed: int = 0
    tv: float | None = None
    """Total variation between the policy's law and the target."""
    tv_floor: float | None = None
    """That of the best law which the noise allows."""
    tv_blind: float | None = None
    """That of a policy which is solved perfectly as if there were no noise."""
    tv_uniform: float | None = None
    l1_mean: float | None = None
    js: float | None = None
    kl: float | None = None
    expected_reward: float | None = None
    target_expected_reward: float | None = None
    floor_expected_reward: float | None = None
    histogram: Mapping[str, list[float]]
    sample_mean: float
    top100_mean: float
    top100_median: float
    top100_count: int
    modes_greedy: int | None
    modes_greedy_rule: str | None
    modes_reference: int | None = None
    modes_reference_total: int | None = None
    diversity: float | None = None
    novelty: float | None = None
    unique: int
    alphabet: str | None = None
    designs: list[list[Any]]
    """Best samples as text, each with its score."""
    modes: list[list[Any]]
    dynamics_model: str | None = None
    dynamics_nll: float | None = None
    dynamics_entropy: float | None = None
    dynamics_tv: float | None = None
    bound_by_floor: bool
    """Whether no policy of this method gets below `tv_floor`."""
    beta: float
    minimise: bool = False
    """Whether low scores are good."""
    orders: list[dict[str, Any]]
    floor_kind: str | None = None
    tv_absent: str | None = None
    """Why there is no exact distance."""
    kl_error: float | None = None
    kl_floor: float | None = None
    kernel: Mapping[str, list[Any]] | None = None
    """Mean true and learned noise by intention."""
