"""Forms by name: the ways in which noise enters a balance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sgfn.config.registry import Entry, Registry, Style, imported, refuse_arguments


@dataclass(frozen=True, kw_only=True)
class FormEntry(Entry):
    """A way in which noise enters a balance."""

    score: Callable[..., Any] | str
    """`(heads, kernel P^, trajectories, log Z) -> Scores`; ours as `module:name`."""
    joint_backward: bool = False
    """Whether it reads a learned backward policy over (parent, intention) pairs."""
    outcome_policy: bool = False
    """Whether it reads an outcome policy c(k|s)."""
    fixed_length: bool = False
    """Whether the backend for sequences of one length has it in its formulas; any other form is scored in general."""
    no_memory: str = ""
    """Why it does not go with a policy that remembers; empty where it does."""

    @property
    def scoring(self) -> Callable[..., Any]:
        """The function itself."""
        return imported(self.score)


def _wrap(name: str, found: Any) -> FormEntry:
    wanted = "a function (heads, kernel, batch, log_z) -> Scores"
    return FormEntry(name=name, score=refuse_arguments("form", name, found, wanted, *"hkbz"))


FORMS: Registry[FormEntry] = Registry(
    "form",
    _wrap,
    FormEntry(
        name="marginal",
        about="intentions are summed out",
        score="sgfn.learning.scoring:score_marginal",
        fixed_length=True,
    ),
    FormEntry(
        name="published",
        about="Pan et al. (2023)",
        score="sgfn.learning.scoring:score_published",
        joint_backward=True,
        style=Style(colour="#b66411"),
        no_memory="its backward policy sees no history",
    ),
    FormEntry(
        name="blind",
        about="noise is ignored",
        score="sgfn.learning.scoring:score_blind",
        fixed_length=True,
        style=Style(colour="#2f9ed2"),
        no_memory="it has no use for what was intended",
    ),
)
"""What can be chosen; the KL objective has a form of its own."""
_OUTCOME = FormEntry(
    name="outcome", score="sgfn.learning.scoring:score_outcome", outcome_policy=True, fixed_length=True
)


def form_entry(form: str) -> FormEntry:
    """The entry of what `objectives.scored_as` asks for."""
    return _OUTCOME if form == _OUTCOME.name else FORMS[form]
