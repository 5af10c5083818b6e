"""The last panel of `--help`: the names that flags take, from the registries."""

from dataclasses import is_dataclass
from typing import Any, get_type_hints

from rich.panel import Panel
from rich.table import Table

from sgfn.compare.names import known
from sgfn.learning.registry import REGISTRIES


def names_panel(kind: type) -> Panel | None:
    """Names and what they are, for each flag of a command that takes them; None where none does."""
    has = [field for field in REGISTRIES if reaches(get_type_hints(kind).get("config"), field)]
    if not has:
        return None
    rows = Table.grid(padding=(0, 1))
    if "methods" in get_type_hints(kind):
        rows.add_row("--methods", "", ", ".join(known()))
    for field in has:
        for number, (name, entry) in enumerate(REGISTRIES[field].items()):
            rows.add_row(f"--{field}" if number == 0 else "", name, entry.about)
    rows.add_row("", "", "or module:name, yours, in place of any of these")
    return Panel(rows, title="names", title_align="left", border_style="dim")


def reaches(component: Any, field: str) -> bool:
    """Whether a component of flags has a field, by its path."""
    first, _, rest = field.partition(".")
    hints = get_type_hints(component) if is_dataclass(component) else {}
    return first in hints and (not rest or reaches(hints[first], rest))
