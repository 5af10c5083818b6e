"""Objectives by name: what each is made of, what it reads, and in which form a batch is scored for it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.reads import Reads, When, reads
from sgfn.config.registry import DASH_DOTTED, DASHED, DOTTED, SOLID, Entry, Registry, Style, imported, refuse_arguments


@dataclass(frozen=True, kw_only=True)
class ObjectiveEntry(Entry):
    """An objective."""

    function: Callable[..., Any] | str
    """`(scores, trajectories, **bound) -> [B]`; ours as `module:name`."""
    bind: Callable[[TrainConfig], dict[str, Any]] = lambda config: {}
    """Settings that the function takes by keyword."""
    scores: tuple[str, ...] = ("flow",)
    """Which parts of `Scores` it reads beside log-probabilities: flow, policy, intentions, projection, expected."""
    form: str | None = None
    """The form that a batch is scored in; None is the configured one."""
    forms: tuple[str, ...] = ("marginal",)
    """Forms under which `compare` has a name for it."""
    compared: tuple[str, ...] = ()
    """Objectives that it is built on under names of their own in `compare`: NAME-on-BASE."""
    refuses: tuple[str, ...] = ()
    """Forms that make no sense for it."""
    base: tuple[str, str] | None = None
    """For an objective on top of another: its keyword for that one, and the setting that names it."""
    alone: bool = False
    """Whether that setting may be `none`: its terms without another objective."""
    base_label: str = "base_loss"
    """What the loss of the one it is built on is called in metrics."""
    terms: Callable[..., Any] | str | None = None
    """`(scores, trajectories, config) -> (terms, parts)`: what it adds to the one it is built on, one value per
    trajectory by name, and further means to log."""
    weights: Callable[[TrainConfig], dict[str, float]] = lambda config: {}
    """Weights of those terms."""
    parts: Callable[..., Any] | str | None = None
    """`(scores, trajectories) -> means by name` that are logged beside the loss."""
    balance: bool = False
    """Whether it is a balance equation, which others may be built on."""
    tree: bool = False
    """Whether it needs environments without joins."""
    memory: bool = True
    """Whether it stays sound where the policy remembers (`thought`)."""

    least_batch: int = 1
    """Trajectories that a batch must have for a gradient."""

    @property
    def loss(self) -> Callable[..., Any]:
        """The function itself."""
        return imported(self.function)


def wrap(name: str, found: Any) -> ObjectiveEntry:
    """The entry of a function that is not ours."""
    wanted = "a function (scores, trajectories) -> [B]"
    function = refuse_arguments("objective", name, found, wanted, "scores", "trajectories")
    return ObjectiveEntry(name=name, function=function, forms=ALL_FORMS, balance=True)


NO_BASE = "none"
"""Stands for no objective where one may be built on another."""
ALL_FORMS = ("marginal", "published", "blind")
BLUE, RED = "#224eb1", "#992b6f"

OBJECTIVES: Registry[ObjectiveEntry] = Registry(
    "objective",
    wrap,
    ObjectiveEntry(
        name="tb",
        about="trajectory balance",
        function="sgfn.objectives.trajectory_balance:trajectory_balance",
        style=Style(colour=BLUE, line=SOLID),
        scores=(),
        forms=ALL_FORMS,
        balance=True,
    ),
    ObjectiveEntry(
        name="vargrad",
        about="trajectory balance with the log Z that each batch tells",
        function="sgfn.objectives.vargrad:log_variance",
        parts="sgfn.objectives.vargrad:log_z_part",
        style=Style(colour=BLUE, line=DASH_DOTTED),
        scores=(),
        forms=ALL_FORMS,
        balance=True,
        least_batch=2,
    ),
    ObjectiveEntry(
        name="db",
        about="detailed balance",
        function="sgfn.objectives.detailed_balance:detailed_balance",
        style=Style(colour=BLUE, line=DASHED),
        forms=ALL_FORMS,
        balance=True,
    ),
    ObjectiveEntry(
        name="subtb",
        about="sub-trajectory balance",
        function="sgfn.objectives.subtrajectory_balance:subtrajectory_balance",
        bind=lambda config: {"decay": config.subtb_lambda},
        style=Style(colour=BLUE, line=DOTTED),
        reads=(reads("subtb_lambda"),),
        forms=ALL_FORMS,
        balance=True,
    ),
    ObjectiveEntry(
        name="kl",
        about="an outcome flow, and the policy projected onto it",
        function="sgfn.objectives.kl:outcome_flow_kl",
        bind=lambda config: {"weight": config.kl.weight},
        style=Style(colour=RED, line=SOLID),
        reads=(reads("kl"),),
        scores=("projection",),
        form="outcome",
        base=("flow", "kl.flow"),
        base_label="flow_loss",
        terms="sgfn.objectives.kl:kl_terms",
        weights=lambda config: {"projection_kl": config.kl.weight},
    ),
    ObjectiveEntry(
        name="eflow",
        about="expected flows, on trees only",
        function="sgfn.objectives.expected_flow:expected_flow",
        style=Style(colour=RED, line=DOTTED),
        scores=("flow", "policy", "expected"),
        form="marginal",
        tree=True,
        memory=False,
        parts="sgfn.objectives.parts:expected_parts",
    ),
    ObjectiveEntry(
        name="kl-entropy",
        about="a base objective with entropy ratio and dynamics balance",
        function="sgfn.objectives.kl_entropy:kl_entropy",
        bind=lambda config: {"config": config.entropy},
        style=Style(colour=RED, line=DASHED),
        reads=(
            reads("entropy.base", "entropy.variant", "entropy.gamma", "entropy.weight_kl", "entropy.weight_dynamics"),
            reads("entropy.quantile", entropy__variant=("quantile", "trajectory")),
            reads("entropy.rate_high", "entropy.rate_low", entropy__variant="exponential"),
        ),
        scores=("policy", "intentions"),
        forms=("marginal", "published"),
        refuses=("blind",),
        base=("base", "entropy.base"),
        alone=True,
        terms="sgfn.objectives.kl_entropy:kl_entropy_terms",
        weights=lambda config: {
            "policy_kl_term": config.entropy.weight_kl,
            "dynamics_balance": config.entropy.weight_dynamics,
        },
        compared=("db", "kl"),
    ),
)


def base_of(entry: ObjectiveEntry, config: TrainConfig) -> ObjectiveEntry | None:
    """The objective that one is built on, as configured; None where it stands alone."""
    if entry.base is None:
        return None
    field, name = entry.base[1], attrgetter(entry.base[1])(config)
    if entry.alone and name == NO_BASE:
        return None
    choices = bases(entry) + [NO_BASE] * entry.alone
    if ":" not in name and name not in choices:
        raise ValueError(f"{field} {name!r} is unknown: choose from {', '.join(choices)}")
    return OBJECTIVES[name]


def bases(entry: ObjectiveEntry) -> list[str]:
    """Objectives of ours that one may be built on: balances, and what is built on these where it keeps their form."""
    own = entry.form is None
    return [name for name, other in OBJECTIVES.items() if other.balance or (own and other.form == "outcome")]


def chain(config: TrainConfig) -> Iterator[ObjectiveEntry]:
    """The configured objective and what it is built on, in turn."""
    entry: ObjectiveEntry | None = OBJECTIVES[config.objective]
    while entry is not None:
        yield entry
        entry = base_of(entry, config)


def scored_as(config: TrainConfig) -> str:
    """What `scoring` is asked for: the form of a balance, or what the objective itself needs."""
    return next((entry.form for entry in chain(config) if entry.form is not None), config.form)


def reads_scores(config: TrainConfig, part: str) -> bool:
    """Whether the configured objective reads a part of the scores: flow, policy, intentions, projection, expected."""
    return any(part in entry.scores for entry in chain(config))


def objective_reads(entry: ObjectiveEntry, config: TrainConfig, formed: bool = False) -> Iterator[Reads]:
    """Settings that an objective reads, and under which choice of its base: those of what it is built on too."""
    formed = formed or entry.form is not None
    yield from entry.reads
    if entry.base is None:
        if not formed:
            yield reads("form")
        return
    field = entry.base[1]
    if entry.alone and not formed:
        yield reads("form").also(When(field, (NO_BASE,)))
    for name in dict.fromkeys([*bases(entry), attrgetter(field)(config)]):
        if name in bases(entry) or ":" in name:
            for line in objective_reads(OBJECTIVES[name], config, formed):
                yield line.also(When(field, (name,)))
