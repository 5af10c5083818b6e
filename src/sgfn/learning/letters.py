"""Whole rollouts of a transformer by one compiled function for a letter, which is called once for each position.

The position is a tensor, so that one function serves all of them, and keys and values that are remembered have the same
shape throughout. Legal letters, noise and the next state are asked of the environment, so that its own methods are
compiled with the rest. It serves CPUs, and sequences that the GPU kernels do not take; the twin is
`learning.rollout.act`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.compilation import CompiledSteps
from sgfn.learning.rollout import RolloutSteps, behaviour, draw
from sgfn.nets.encoders import SequenceReader
from sgfn.nets.heads import FlowNets
from sgfn.nets.transformer import TokenEncoder

Memory = tuple[Tensor, ...]
"""What is carried from letter to letter, changed in place."""


def letters_fit(env: object, nets: FlowNets) -> bool:
    """Whether an environment and its networks can be rolled out so: sequences by a transformer without thoughts."""
    plain = isinstance(env, SequenceEnv) and env.writes_in_order and env.intends_outcomes
    return plain and type(nets.encoder) is SequenceReader and nets.join is None


class CompiledLetters:
    """Rollouts of sequences, each letter by a compiled function."""

    def __init__(self, env: SequenceEnv, nets: FlowNets, device: torch.device) -> None:
        self.env, self.nets, self.device = env, nets, device
        self.positions = torch.arange(env.length, device=device)[:, None].unbind()
        self.batch = 0  # of the first rollout, for which letters are compiled
        self._functions: dict[tuple[float, float | None], Callable[..., tuple[Tensor, ...]]] = {}

    @torch.no_grad()
    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B W"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """All steps of a batch; None for batches of another size than the first, which code was not compiled for."""
        self.batch = self.batch or clock.shape[2]
        if clock.shape[2] != self.batch:
            return None
        letter, heat = self._function(explore, temperature), temperature if isinstance(temperature, Tensor) else None
        state, intended, realised = self.env.initial(clock.shape[2], clock.device), [], []
        memory = self._start()
        for position, times in zip(self.positions, clock.unbind(), strict=True):
            action, outcome, state, *more = letter(position, state, times, heat, *memory)
            intended.append(action)
            realised.append(outcome)
            memory = self._next(len(intended), memory, more)
        outcomes = torch.stack(realised, 1)
        states, valid = self.env.unrolled(outcomes)
        return RolloutSteps(intended=torch.stack(intended, 1), realised=outcomes, states=states, valid=valid)

    @property
    def tokens(self) -> TokenEncoder:
        """The transformer and its embeddings."""
        assert isinstance(self.nets.encoder, SequenceReader)
        return self.nets.encoder.tokens

    def _start(self) -> Memory:
        """Memory before the first letter."""
        return self.tokens.core.start_static(self.batch, self.device)

    def _next(self, position: int, memory: Memory, more: list[Tensor]) -> Memory:
        """Memory before the letter at a position, from that before the last letter and what it gave beside its step."""
        return memory

    def _function(self, explore: float, temperature: float | Tensor) -> Callable[..., tuple[Tensor, ...]]:
        """The compiled function for a letter, made once for each way to explore."""
        fixed = None if isinstance(temperature, Tensor) else float(temperature)
        if (explore, fixed) not in self._functions:

            def letter(
                position: Tensor, state: Tensor, clock: Tensor, heat: Tensor | None, *memory: Tensor
            ) -> tuple[Tensor, ...]:
                return self._letter(position, state, clock, explore, heat if fixed is None else fixed, memory)

            self._functions[explore, fixed] = CompiledSteps(letter, self.device, **self._options())
        return self._functions[explore, fixed]

    def _options(self) -> dict[str, int]:
        """Further options of the compiler."""
        return {}

    def _letter(
        self,
        position: Int[Tensor, " 1"],
        state: Int[Tensor, "B S"],
        clock: Float[Tensor, "2 B W"],
        explore: float,
        temperature: float | Tensor | None,
        memory: Memory,
    ) -> tuple[Tensor, ...]:
        """Intention, outcome and next state at a position, and `_more`."""
        env = self.env
        log_policy = self.nets.log_policy_of(self._read(position, state, memory), state)
        heat = 1.0 if temperature is None else temperature
        action = draw(behaviour(log_policy, env.legal(state), explore, heat), clock[0, :, : env.actions])
        outcome = env.operator(state).sample(action, clock[1, :, : env.outcomes])
        after = env.apply(state, outcome)
        return action, outcome, after, *self._more(position, after)

    def _more(self, position: Int[Tensor, " 1"], after: Int[Tensor, "B S"]) -> Memory:
        """What a letter gives beside its step, from the next state."""
        return ()

    def _read(self, position: Int[Tensor, " 1"], state: Int[Tensor, "B S"], memory: Memory) -> Tensor:
        """Representation by a transformer of what is written: its last item is read, the others are remembered."""
        tokens = self.tokens
        last = state.index_select(1, (position - 1).clamp(min=0))[:, 0]
        item = torch.where(position == 0, tokens.begin, tokens.token(last))
        return tokens.core.step_static(item, memory, position)
