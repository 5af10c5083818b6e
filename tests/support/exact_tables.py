"""Small environments, exact tables and statistics that the tests share; everything in float64."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import torch
from hypothesis import settings
from scipy import stats
from torch import Tensor

from sgfn.envs import ForecastEnv, GridEnv, SequenceEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories
from sgfn.nets.heads import Heads
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Mixtures, Noise, UniformSlip
from sgfn.noise.operators import Kernel

PROPERTY = settings(deadline=None, derandomize=True, max_examples=60)
"""Hypothesis without wall-clock limits, the same examples on every run."""


@dataclass(frozen=True, kw_only=True)
class Drift(UniformSlip):
    """Noise without symmetry: an action slips to the next one. Tells P(k|a) from P(a|k), which uniform slip cannot."""

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        action, count = torch.arange(slippable.shape[-1]), slippable.sum(-1, keepdim=True).clamp(min=1)
        following = torch.where(slippable, (action + 1) % count, action)  # the slippable actions come first
        slip = (self.alpha * slippable.to(dtype))[..., None]
        eye = torch.eye(slippable.shape[-1], dtype=dtype)
        return (1 - slip) * eye + slip * eye[following]


def sequence(
    length: int, alphabet: str, noise: type[UniformSlip] = UniformSlip, **stop: int | bool
) -> Callable[[float], SequenceEnv]:
    return lambda alpha: SequenceEnv(length=length, alphabet=alphabet, noise=noise(alpha=alpha), **stop)


def grid(ndim: int, side: int, noise: type[UniformSlip] = UniformSlip) -> Callable[[float], GridEnv]:
    return lambda alpha: GridEnv(ndim=ndim, side=side, noise=noise(alpha=alpha))


def forecast(horizon: int, bins: int, noise: type[UniformSlip] = UniformSlip) -> Callable[[float], ForecastEnv]:
    return lambda alpha: ForecastEnv(horizon=horizon, bins=bins, noise=noise(alpha=alpha))


ENVS: dict[str, Callable[[float], Enumerable]] = {
    "fixed-L4-V2": sequence(4, "AB"),
    "fixed-L3-V3": sequence(3, "ABC"),
    "fixed-L2-V4": sequence(2, "ACGT"),
    "stop-L3-V3": sequence(3, "ABC", stop=True),
    "stop-L4-V2-min2": sequence(4, "AB", stop=True, min_length=2),
    "grid-1D-4": grid(1, 4),
    "grid-2D-4": grid(2, 4),
    "grid-3D-3": grid(3, 3),
    "forecast-H3-K2": forecast(3, 2),
    "forecast-H2-K4": forecast(2, 4),
}
TINY: dict[str, Callable[[float], Enumerable]] = {
    "fixed-L3-V2": sequence(3, "AB"),
    "fixed-L2-V3": sequence(2, "ABC"),
    "stop-L3-V2": sequence(3, "AB", stop=True),
    "stop-L3-V2-min2": sequence(3, "AB", stop=True, min_length=2),
    "grid-2D-3": grid(2, 3),
    "grid-1D-4": grid(1, 4),
    "grid-3D-2": grid(3, 2),
    "forecast-H2-K3": forecast(2, 3),
    "drift-L2-V3": sequence(2, "ABC", Drift),
    "drift-grid-3D-2": grid(3, 2, Drift),
}
DRIFT: dict[str, Callable[[float], Enumerable]] = {
    "drift-L3-V3": sequence(3, "ABC", Drift, stop=True),
    "drift-grid-3D-3": grid(3, 3, Drift),
    "drift-forecast-H2-K3": forecast(2, 3, Drift),
}
"""Asymmetric noise, for tests that ask only what `Env.kernel` says, not what the slip formula is."""


def errors(size: int, alpha: float, turn: int = 0) -> Tensor:
    """A confusion matrix without symmetry: with probability alpha another letter, the later ones more often."""
    other = torch.arange(1.0, size + 1.0, dtype=torch.float64).roll(turn).repeat(size, 1).fill_diagonal_(0.0)
    return (1 - alpha) * torch.eye(size, dtype=torch.float64) + alpha * other / other.sum(-1, keepdim=True)


def falling(alpha: float, count: int) -> ByPosition:
    """Half as much noise at each step."""
    return ByPosition(alphas=tuple(alpha / 2**t for t in range(count)))


def spelled(
    length: int, alphabet: str, noise: Callable[[float], Noise], **stop: int | bool
) -> Callable[[float], Enumerable]:
    return lambda alpha: SequenceEnv(length=length, alphabet=alphabet, noise=noise(alpha), **stop)


KINDS: dict[str, Callable[[float], Enumerable]] = {
    "confusion-L3-V3": spelled(3, "ABC", lambda a: ConfusionMatrix(matrix=errors(3, a))),
    "confusion-free-L3-V2": spelled(3, "AB", lambda a: ConfusionMatrix(matrix=errors(2, a)), stop=True),
    "confusion-stop-L3-V2": spelled(
        3, "AB", lambda a: ConfusionMatrix(matrix=errors(3, a), stop=True), stop=True, min_length=2
    ),
    "confusion-position-L2-V3": spelled(
        2, "ABC", lambda a: ConfusionMatrix(matrix=torch.stack([errors(3, a), errors(3, a / 2, turn=1)]))
    ),
    "position-L3-V2": spelled(3, "AB", lambda a: falling(a, 3), stop=True),
    "position-grid-2D-3": lambda a: GridEnv(ndim=2, side=3, noise=falling(a, 5)),
    "slip-stop-L3-V2": spelled(3, "AB", lambda a: UniformSlip(alpha=a, stop=True), stop=True, min_length=2),
    "slip-stop-grid-2D-3": lambda a: GridEnv(ndim=2, side=3, noise=UniformSlip(alpha=a, stop=True)),
    "hidden-L3-V2": spelled(3, "AB", lambda a: HiddenRate(mean=a, concentration=3.0)),
    "hidden-stop-L3-V2": spelled(3, "AB", lambda a: HiddenRate(mean=a, concentration=1.5, stop=True), stop=True),
    "hidden-grid-2D-3": lambda a: GridEnv(ndim=2, side=3, noise=HiddenRate(mean=a, concentration=2.0)),
}
"""Every kind of noise but the plain slip of ENVS; strength zero is silence in all of them."""


def blends(intentions: int, outcomes: int, alpha: float) -> Tensor:
    """Laws of outcomes without symmetry, one for each intention, nearer to uniform where alpha is larger."""
    sharp = torch.eye(outcomes, dtype=torch.float64).repeat(intentions, 1)[:intentions]
    weight = torch.arange(1.0, intentions * outcomes + 1.0, dtype=torch.float64).reshape(intentions, outcomes)
    return (1 - alpha) * sharp + alpha * weight / weight.sum(-1, keepdim=True)


MIXED: dict[str, Callable[[float], Enumerable]] = {
    "mixtures-5-of-3": spelled(2, "ABC", lambda a: Mixtures(matrix=blends(5, 3, a))),
    "mixtures-2-of-3": spelled(2, "ABC", lambda a: Mixtures(matrix=blends(2, 3, a))),
}
"""More intentions than outcomes, and fewer."""


def rows_of(states: Tensor) -> list[tuple[int, ...]]:
    return [tuple(row) for row in states.tolist()]


def inner_states(env: Enumerable) -> Tensor:
    """Every state that is not done."""
    return torch.cat(list(env.levels()))


def final_states(env: Enumerable) -> Tensor:
    """Every finished state, written out by hand, in the order of `all_objects`."""
    objects = env.all_objects()
    if isinstance(env, GridEnv):
        return torch.cat([objects, torch.ones_like(objects[:, :1])], -1)
    if isinstance(env, ForecastEnv):
        return objects
    assert isinstance(env, SequenceEnv)
    states = objects.clone()
    for row, length in enumerate((objects < env.vocab).sum(-1).tolist()):
        if length < env.length:
            states[row, length] = env.end
    return states


def legal_by_hand(env: Enumerable, state: tuple[int, ...]) -> list[bool]:
    """Legal moves of a state that is not done, from the text of the rules."""
    if isinstance(env, GridEnv):
        return [c + 1 < env.side for c in state[:-1]] + [True]
    if isinstance(env, ForecastEnv):
        return [True] * env.bins
    assert isinstance(env, SequenceEnv)
    written = sum(token < env.vocab for token in state)
    return [True] * env.vocab + [written >= env.min_length] * env.stop


def kernel_by_hand(env: Enumerable, state: tuple[int, ...], alpha: float) -> Tensor:
    """The kernel of a state that is not done, entry by entry."""
    moves = env.ndim if isinstance(env, GridEnv) else env.bins if isinstance(env, ForecastEnv) else env.vocab
    quiet = isinstance(env, GridEnv) and any(c == env.side - 1 for c in state[:-1])
    matrix = torch.zeros(env.actions, env.actions, dtype=torch.float64)
    for a, k in product(range(env.actions), repeat=2):
        slips = a < moves and k < moves and not quiet
        matrix[a, k] = (1 - alpha) * (a == k) + alpha / moves if slips else float(a == k)
    return matrix


def reachable(env: Enumerable) -> tuple[list[set[tuple[int, ...]]], set[tuple[int, ...]]]:
    """Breadth-first search through legal moves: the inner states after each number of steps, and all final states."""
    frontier, levels, finals = {tuple(env.initial(1)[0].tolist())}, [], set()
    while frontier:
        levels.append(frontier)
        states = torch.tensor(sorted(frontier))
        row, k = env.legal(states).nonzero().unbind(1)
        reached = env.apply(states[row], k)
        done = env.done(reached)
        finals |= set(rows_of(reached[done]))
        frontier = set(rows_of(reached[~done]))
    return levels, finals


def random_table(env: Enumerable, seed: int) -> Tensor:
    """A policy with every legal intention possible: one row per state number."""
    generator = torch.Generator().manual_seed(seed)
    states = inner_states(env)
    weight = torch.rand(states.shape[0], env.actions, generator=generator, dtype=torch.float64) + 0.1
    weight = weight * env.legal(states)
    table = torch.zeros_like(weight)
    table[env.index(states)] = weight / weight.sum(-1, keepdim=True)
    return table


def look_up(env: Enumerable, table: Tensor) -> laws.PolicyProbabilities:
    """The policy of a table; uniform where done."""

    def policy(states: Tensor) -> Tensor:
        done = env.done(states)
        rows = table[torch.where(done, 0, env.index(states))]
        return torch.where(done[..., None], torch.full_like(rows, 1 / env.actions), rows)

    return policy


def log_of(policy: laws.PolicyProbabilities) -> Callable[[Tensor], Tensor]:
    """The policy as float32 logarithms: what a rollout reads."""
    return lambda states: policy(states).log().float()


def no_reward(objects: Tensor) -> Tensor:
    return torch.zeros(objects.shape[:-1])


def every_trajectory(env: Enumerable) -> Trajectories:
    """All sequences of (intention, outcome) that are legal and possible; padded steps hold zeros, rewards are zero."""
    state = env.initial(1)
    states, intended, realised = state[:, None], state[:, :0], state[:, :0]
    valid = torch.zeros(1, 0, dtype=torch.bool)
    for _ in range(env.horizon):
        possible = env.legal(state)[:, :, None] & (env.kernel(state, torch.float64) > 0)
        possible[env.done(state)] = False
        possible[env.done(state), 0, 0] = True
        row, a, k = possible.nonzero().unbind(1)
        valid = torch.cat([valid[row], ~env.done(state[row])[:, None]], 1)
        intended, realised = torch.cat([intended[row], a[:, None]], 1), torch.cat([realised[row], k[:, None]], 1)
        state = env.apply(state[row], k)
        states = torch.cat([states[row], state[:, None]], 1)
    zeros = torch.zeros(states.shape[0], dtype=torch.float64)
    return Trajectories(intended=intended, realised=realised, valid=valid, states=states, log_reward=zeros)


@dataclass(frozen=True, kw_only=True)
class ExactScorer:
    """Tables in the place of networks: solves the balance equations for the reward that its own policy induces."""

    env: Enumerable
    policy: laws.PolicyProbabilities
    noisy: bool
    log_z: Tensor
    mass: tuple[Tensor, Tensor]
    reads_final: bool = True

    def reach(self, state: Tensor) -> Tensor:
        """Probability of passing through a state, done or not."""
        done = self.env.done(state)
        inner = self.mass[0][torch.where(done, 0, self.env.index(state))]
        number = self.env.object_index(self.env.objects(state)).clamp(0, self.env.num_objects - 1)
        return torch.where(done, self.mass[1][number], inner)

    def log_reward(self, state: Tensor) -> Tensor:
        return self.log_z + self.reach(state).log()

    def joint(self, state: Tensor) -> Tensor:
        """reach(s) pi(a|s) P(k|s,a) for each way into a state, over its sum."""
        ways = torch.zeros(*state.shape[:-1], self.env.actions, self.env.actions, dtype=torch.float64)
        for k in range(self.env.actions):
            parent = self.env.parent(state, torch.full(state.shape[:-1], k))
            kernel = self.env.kernel(parent, torch.float64)[..., k]
            if not self.noisy:
                kernel = torch.eye(self.env.actions, dtype=torch.float64)[k].expand(kernel.shape)
            ways[..., k, :] = self.reach(parent)[..., None] * self.policy(parent) * kernel
        ways = torch.where(self.env.parents(state)[..., None], ways, 0.0)
        return ways / self.reach(state)[..., None, None]

    def heads(self, state: Tensor) -> Heads:
        # A flow at a finished state must never be read: it holds nonsense.
        log_flow = torch.where(self.env.done(state), 123.0, self.log_z + self.reach(state).log())
        joint = self.joint(state)
        return Heads(
            log_policy=self.policy(state).log(),
            log_flow=log_flow,
            log_backward=None if self.env.tree else joint.sum(-1).log(),
            log_joint_backward=joint.log(),
            log_outcome=torch.einsum(
                "...a,...ak->...k", self.policy(state), self.env.kernel(state, torch.float64)
            ).log(),
        )


@cache
def balanced(name: str, alpha: float, form: str, seed: int = 0) -> tuple[ExactScorer, Trajectories, Kernel]:
    """A random policy's exact solution, every trajectory with the induced reward, and the kernel along them."""
    env = TINY[name](alpha)
    policy, noisy = look_up(env, random_table(env, seed)), form != "blind"
    log_z = torch.tensor(1.7, dtype=torch.float64)
    mass = laws.reach(env, policy, noisy=noisy)
    scorer = ExactScorer(env=env, policy=policy, noisy=noisy, log_z=log_z, mass=mass)
    batch = every_trajectory(env)
    batch = replace(batch, log_reward=scorer.log_reward(batch.states[:, -1]))
    return scorer, batch, env.operator(batch.states[:, :-1], torch.float64)


def chi_square(counts: Tensor, law: Tensor) -> float:
    """p-value of counts against laws, one per row; whatever has probability zero must never have happened."""
    counts, law = counts.double().reshape(-1, counts.shape[-1]), law.double().reshape(-1, law.shape[-1])
    assert not counts[law == 0].any(), "an impossible event happened"
    expected = counts.sum(-1, keepdim=True) * law
    enough = ((expected >= 5) | (law == 0)).all(-1)  # else the approximation does not hold: the row is left out
    residual = torch.where(law > 0, (counts - expected).square() / expected, 0.0)[enough]
    freedom = ((law > 0).sum(-1) - 1)[enough].sum()
    assert freedom > 0, "nothing to test"
    return float(stats.chi2.sf(float(residual.sum()), int(freedom)))
