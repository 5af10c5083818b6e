"""Encoders by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sgfn.config.reads import above, reads
from sgfn.config.registry import Entry, Registry, imported, refuse_arguments


@dataclass(frozen=True, kw_only=True)
class EncoderEntry(Entry):
    """An encoder."""

    make: Callable[..., Any] | str
    """`(env, net settings) -> module`, ours as `module:name`; a `StateReader` is given states, others features."""
    sequences: bool = False
    """Whether it reads sequences of tokens alone."""

    @property
    def maker(self) -> Callable[..., Any]:
        """The function or class itself."""
        return imported(self.make)


def _wrap(name: str, found: Any) -> EncoderEntry:
    make = refuse_arguments("net.encoder", name, found, "a module class (env, net settings)", "env", "config")
    return EncoderEntry(name=name, make=make, reads=(reads("net"),))


ENCODERS: Registry[EncoderEntry] = Registry(
    "net.encoder",
    _wrap,
    EncoderEntry(
        name="mlp",
        about="dense layers on one-hot features",
        make="sgfn.nets.encoders:make_mlp",
        reads=(reads("net.encoder", "net.hidden", "net.layers", "net.activation"),),
    ),
    EncoderEntry(
        name="table",
        about="a row of numbers for each state, where states can be listed",
        make="sgfn.nets.encoders:StateTable",
        reads=(reads("net.encoder", "net.hidden"), reads("net.activation", above=above("thought.layers", 0))),
    ),
    EncoderEntry(
        name="transformer",
        about="causal self-attention over the tokens of a sequence",
        make="sgfn.nets.encoders:SequenceReader",
        sequences=True,
        reads=(
            reads("net.encoder", "net.hidden", "net.layers", "net.heads"),
            reads("net.activation", above=above("thought.layers", 0)),
        ),
    ),
)
