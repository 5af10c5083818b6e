"""Settings of a design: what stays the same from round to round, and how it is written to JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args

from sgfn.config import NoiseConfig, from_dict, to_dict
from sgfn.config.checks import in_range, one_of, whole_number
from sgfn.config.registry import Registry
from sgfn.config.tasks import LONGEST, ScoreScale
from sgfn.design.acquisition import ACQUISITIONS, KAPPA
from sgfn.design.sampler import SamplerConfig
from sgfn.design.search import SearchConfig
from sgfn.design.space import OrderSpace
from sgfn.design.units import Scores, score_weights
from sgfn.envs.constraints import Constraints
from sgfn.landscapes.measurements import resolve_alphabet
from sgfn.landscapes.proxies import PROXIES
from sgfn.noise import Noise
from sgfn.runs.parts import NOISES, describe_noise, described_noise

SAMPLERS = ("auto", "on", "off")
FAILURES = ("avoid", "ignore")
CODE: dict[str, Registry[Any]] = {"acquisition": ACQUISITIONS, "proxy": PROXIES}
"""Fields of `DesignConfig` that may hold `module:name`, with the registries that resolve them."""


@dataclass(frozen=True, kw_only=True)
class DesignConfig:
    """What is designed, and how."""

    alphabet: str = "dna"
    """dna, rna, protein, or the letters themselves."""
    min_length: int | None = None
    """Fewest letters of an order; by default those of the shortest sequence of the first table."""
    max_length: int | None = None
    """Most letters of an order; by default those of the longest sequence of the first table."""
    sequence_column: str = "sequence"
    score_column: str = "score"
    scores: Scores | Mapping[str, float] | Sequence[Any] | str = ()
    """Several columns of scores with weights, whose sum is designed for, in the place of `score_column`: a mapping, or
    text such as `activity=1,toxicity=-0.5`."""
    sd_column: str | None = None
    """Column of standard deviations of the scores."""
    weight_column: str | None = None
    """Column that says how much each row counts."""
    transform: ScoreScale = "none"
    """What a proxy is fitted to, and maximised: the scores, their logarithms (log) or their ranks (rank)."""
    minimise: bool = False
    """Whether low scores are good."""
    acquisition: str = "auto"
    """What makes an order attractive: ucb, mixed, thompson, tempered, members, greedy, or `module:function`, yours;
    `auto` is ucb where all orders are ranked, and tempered in a search."""
    kappa: float = KAPPA
    """Standard deviations that `ucb` adds to the mean, and `mixed` at most."""
    proxy: str = "design"
    """Kind of the proxy: `design` an ensemble of networks, or as `auto` where lengths vary beyond 12 letters;
    `auto` chooses by cross-validation."""
    distance: int = 1
    """Least number of differences between two orders of a plate."""
    repeat: bool = False
    """Whether what was measured or ordered before may be ordered again."""
    sampler: str = "auto"
    """Whether a flow network brings orders into a search: on, off; `auto`: where the search has no limit of reach."""
    reach: int | None = None
    """Most edits between an order and a measured sequence, 0 for no limit: a proxy knows little beyond. By default in a
    search the better the proxy the further (`deserved_reach`), and without a limit where all orders are ranked."""
    failures: str = "avoid"
    """Whether a search avoids neighbouring letters that only sequences with the lowest score have: avoid, ignore."""
    seed: int = 0
    search: SearchConfig = field(default_factory=SearchConfig)
    flow: SamplerConfig = field(default_factory=SamplerConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphabet", resolve_alphabet(self.alphabet, "alphabet"))
        object.__setattr__(self, "scores", score_weights(self.scores) if self.scores else ())
        one_of("transform", self.transform, get_args(ScoreScale))
        for name in ("min_length", "max_length"):
            if (value := getattr(self, name)) is not None:
                whole_number(name, value, 1, LONGEST)
        if self.min_length is not None and self.max_length is not None:
            in_range("min_length", self.min_length, 1, self.max_length)
        if self.scores and self.score_column != "score":
            raise ValueError(f"scores replaces score_column {self.score_column!r}: give one of the two")
        ACQUISITIONS.check(self.acquisition)
        one_of("sampler", self.sampler, SAMPLERS)
        one_of("failures", self.failures, FAILURES)
        in_range("kappa", self.kappa, 0.0, 1e6)
        whole_number("distance", self.distance, 1, LONGEST)
        if self.reach is not None:
            whole_number("reach", self.reach, 0, LONGEST)
        whole_number("seed", self.seed, 0, 2**31 - 1)

    @property
    def code(self) -> dict[str, str]:
        """Code that the settings name and nobody has registered here, by field."""
        names = {name: getattr(self, name) for name in CODE}
        return {name: value for name, value in names.items() if ":" in value and value not in CODE[name]}

    @property
    def score_parts(self) -> Scores:
        """Columns whose weighted sum is the score, with their weights."""
        return score_weights(self.scores) if self.scores else ((self.score_column, 1.0),)

    def space(self, lengths: tuple[int, int], noise: Noise, constraints: Constraints | None) -> OrderSpace:
        """The orders that the settings admit; `lengths` are those of the data, for what is not set."""
        least = lengths[0] if self.min_length is None else self.min_length
        most = lengths[1] if self.max_length is None else self.max_length
        in_range("min_length", least, 1, most)
        return OrderSpace(
            alphabet=self.alphabet, min_length=least, max_length=most, noise=noise, constraints=constraints
        )


# JSON


def to_json(
    config: DesignConfig, noise: Noise, constraints: Constraints | None, made_from: NoiseConfig | None = None
) -> dict[str, Any]:
    """Settings as plain data; code is named, never stored, and no file is named.

    `made_from` are the settings of the noise, by which a class of somebody's own is found again.
    """
    return {
        "design": asdict(config),
        "noise": plain_noise(noise, made_from),
        "constraints": None if constraints is None else asdict(constraints),
    }


def plain_noise(noise: Noise, made_from: NoiseConfig | None = None) -> dict[str, Any]:
    """A noise as plain data; one of a class of somebody's own as the name of what makes it, and its settings."""
    told = describe_noise(noise)
    if told["kind"] != "own":
        return told
    if made_from is None or ":" not in made_from.kind:
        way = "give the name of what makes it (--noise.kind module:name; in Python noise='module:name'), or its rates"
        raise ValueError(f"noise {told['label']} is not one of ours and cannot be kept in a folder: {way} as a table")
    if made_from.file is not None:
        way = f"let {made_from.kind} find it, or give a table of rates (--noise.kind confusion or position)"
        raise ValueError(f"noise.file {made_from.file} is read by code of your own, and a folder keeps none: {way}")
    return {"kind": made_from.kind, "settings": to_dict(made_from)}


def from_json(data: Mapping[str, Any], name: str) -> tuple[DesignConfig, Noise | NoiseConfig, Constraints | None]:
    """Settings from plain data that anybody may have written; `name` is the file, for errors.

    A noise that is made by code is given as its settings: nothing is imported here.
    """
    try:
        design = dict(data["design"])
        search, flow = SearchConfig(**design.pop("search")), SamplerConfig(**design.pop("flow"))
        _check_types(DesignConfig, design)
        config = DesignConfig(**design, search=search, flow=flow)
        return config, read_noise(data["noise"]), _read_constraints(data["constraints"])
    except (TypeError, KeyError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError(
            f"{name} was not written by sgfn, or is damaged ({error}): propose from the table again"
        ) from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def read_noise(data: Mapping[str, Any]) -> Noise | NoiseConfig:
    """A noise from its description, or the settings of one that code makes, which is not imported here."""
    kind = str(data["kind"])
    if ":" in kind:
        if data["settings"].get("file") is not None:
            raise ValueError(
                "noise.file of a noise that code makes is not kept in a folder: propose from the table again"
            )
        return from_dict(NoiseConfig, {**data["settings"], "kind": kind}, "noise")
    one_of("noise.kind", kind, NOISES)
    return described_noise(data)


def _read_constraints(data: Mapping[str, Any] | None) -> Constraints | None:
    if data is None:
        return None
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return Constraints(**given)


def _check_types(kind: type, values: Mapping[str, Any]) -> None:
    """Raise for a value that is of another type than the default of its field."""
    for part in fields(kind):
        if part.name in values and isinstance(part.default, bool | str):
            wanted, value = type(part.default), values[part.name]
            if not isinstance(value, wanted):
                raise TypeError(f"{part.name} is {type(value).__name__}, not {wanted.__name__}")
