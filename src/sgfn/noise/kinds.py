"""Noise kernels: the law that links an intended action to the realised outcome."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.config.checks import in_range
from sgfn.noise.base import Noise as Noise
from sgfn.noise.base import OperatorNoise, are_laws, as_numbers, row_at
from sgfn.noise.operators import ConfusionKernel, Identity, Kernel, Rate, TableKernel, UniformSlipKernel


def slip_kernel(slippable: Bool[Tensor, "*batch A"], alpha: Rate, dtype: torch.dtype) -> Float[Tensor, "*batch A K"]:
    """The matrix of a uniform slip at every state: see `UniformSlipKernel`."""
    return UniformSlipKernel(slippable, alpha, dtype).matrix()


def slip_project(
    conditional: Float[Tensor, "N K"], slippable: Bool[Tensor, "N K"], alpha: Rate
) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N K"]]:
    """The nearest law under a uniform slip, in closed form: see `UniformSlipKernel.project`."""
    return UniformSlipKernel(slippable, alpha, conditional.dtype).project(conditional)


class Slip(OperatorNoise):
    """Uniform slip of some strength: kernel and projection in closed form."""

    @abstractmethod
    def strength(self, position: Int[Tensor, "*batch"] | None, dtype: torch.dtype) -> Rate:
        """Probability that an action is replaced by a uniform draw."""

    def _closed_form(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None, rate: Rate | None) -> Kernel:
        """See `UniformSlipKernel`."""
        strength = self.strength(position, dtype) if rate is None else rate
        if not isinstance(strength, Tensor) and strength == 0.0:
            return Identity(slippable.shape[-1], dtype, slippable.shape[:-1], slippable.device)
        return UniformSlipKernel(slippable, strength, dtype)


@dataclass(frozen=True, kw_only=True)
class UniformSlip(Slip):
    """With probability alpha a slippable action is replaced by a uniform draw: see `slip_kernel`.

    Reference: Pan et al. (2023), Stochastic Generative Flow Networks, UAI.
    """

    alpha: float
    stop: bool = False

    @property
    def by_position(self) -> bool:
        """The same at every position."""
        return False

    @property
    def summary(self) -> str:
        """Its strength."""
        return f"uniform slip {self.alpha:g}"

    def check(self, slipping: int, positions: int) -> None:
        """Fits everywhere."""
        in_range("the slip rate", self.alpha, 0.0, 1.0, open_high=True)

    def strength(self, position: Int[Tensor, "*batch"] | None, dtype: torch.dtype) -> Rate:
        """The same at every position."""
        return self.alpha


@dataclass(frozen=True, kw_only=True)
class HiddenRate(Slip):
    r"""Uniform slip whose rate each episode draws anew, unseen: $\alpha \sim \mathrm{Beta}(mc, (1-m)c)$.

    `kernel` is that of the mean rate m, what an observer of a single step sees. The law of a policy without memory is
    a mean over rates of polynomials of degree T in alpha, one factor a step, so that Gauss-Jacobi quadrature with
    (T+1)/2 nodes is exact.
    """

    mean: float
    concentration: float
    stop: bool = False

    @property
    def by_position(self) -> bool:
        """The same at every position."""
        return False

    @property
    def summary(self) -> str:
        """Mean and concentration."""
        return f"hidden slip rate, mean {self.mean:g}, concentration {self.concentration:g}"

    def check(self, slipping: int, positions: int) -> None:
        """Fits everywhere."""
        in_range("the mean slip rate", self.mean, 0.0, 1.0, open_high=True)
        in_range("the concentration of the slip rate", self.concentration, 0.1, 1e6)

    def strength(self, position: Int[Tensor, "*batch"] | None, dtype: torch.dtype) -> Rate:
        """That of the mean rate: its projection is nearest for a single step, and not for a whole trajectory."""
        return self.mean

    def highest(self, steps: int) -> float:
        """The highest rate that a history of so many steps may lead one to expect: every one of them slipped."""
        return 0.0 if self.mean == 0.0 else (self.mean * self.concentration + steps) / (self.concentration + steps)

    def rates(self, steps: int) -> list[tuple[float | None, float]]:
        """Gauss-Jacobi nodes and weights."""
        nodes, weights = self._quadrature(steps)
        return list(zip(nodes.tolist(), weights.tolist(), strict=True))

    def _quadrature(self, degree: int) -> tuple[np.ndarray, np.ndarray]:
        count = degree // 2 + 1  # exact up to degree 2 count - 1
        return beta_quadrature(self.mean * self.concentration, (1.0 - self.mean) * self.concentration, count)

    def draw_rates(self, batch: int, generator: torch.Generator) -> Float[Tensor, " B"]:
        """A Beta draw is the share of one of two Gamma draws; without a wait for the device."""
        if self.mean == 0.0:
            return torch.zeros(batch, device=generator.device)
        shapes = (self.mean * self.concentration, (1.0 - self.mean) * self.concentration)
        slip, kept = (
            torch._standard_gamma(  # pyright: ignore[reportPrivateImportUsage]
                torch.full((batch,), shape, dtype=torch.float64, device=generator.device), generator=generator
            )
            for shape in shapes
        )
        return (slip / (slip + kept)).float()

    def posterior_rates(
        self, slippable: Bool[Tensor, "B T A"], intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]
    ) -> Float64[Tensor, "B T"]:
        r"""Exact Bayes filter, by quadrature over the rate.

        .. math:: E[\alpha|h_t] = \sum_j w_j L_{jt} \alpha_j / \sum_j w_j L_{jt}, \qquad
                  L_{jt} = \prod_{i<t} P_{\alpha_j}(k_i|s_i, a_i)
        """
        device = slippable.device
        nodes, weights = (torch.from_numpy(x).to(device) for x in self._quadrature(slippable.shape[1] + 1))
        size = slippable.double().sum(-1, keepdim=True).clamp(min=1.0)  # B T 1
        kept = (intended == realised)[..., None]
        chance = nodes / size + kept * (1.0 - nodes)  # B T J
        tells = slippable.gather(-1, intended[..., None])  # what cannot slip says nothing
        log_chance = torch.where(tells, chance.clamp(min=1e-300).log(), 0.0)
        log_past = log_chance.cumsum(1) - log_chance + weights.clamp(min=1e-300).log()
        return torch.softmax(log_past, -1) @ nodes


@dataclass(frozen=True, kw_only=True)
class ByPosition(Slip):
    """Uniform slip with a strength of its own at each position, `alphas[t]` where t steps have been made."""

    alphas: tuple[float, ...]
    stop: bool = False
    _kept: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def summary(self) -> str:
        """The range of its strengths."""
        return f"uniform slip by position, {min(self.alphas):g} to {max(self.alphas):g}"

    def check(self, slipping: int, positions: int) -> None:
        """One strength for each position at least."""
        if len(self.alphas) < positions:
            raise ValueError(f"noise by position has {len(self.alphas)} rates, the task has {positions} positions")
        for t, alpha in enumerate(self.alphas, start=1):
            in_range(f"noise by position: rate {t}", alpha, 0.0, 1.0, open_high=True)

    def strength(self, position: Int[Tensor, "*batch"] | None, dtype: torch.dtype) -> Rate:
        """Looked up."""
        row = row_at(position, len(self.alphas))
        key = (row.device, dtype)
        if key not in self._kept:  # made once: a copy to the device would be a wait in every step
            self._kept[key] = torch.tensor(self.alphas, dtype=dtype, device=row.device)
        return self._kept[key][row]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfusionMatrix(OperatorNoise):
    """Any errors: row a of the matrix is the law of the outcome when a is intended; one matrix, or one per position.

    Actions beyond the matrix (stop, unless it has a row) never slip. Where an outcome is not slippable, because stop
    is not legal yet, its mass stays with the intention.
    """

    matrix: Float64[Tensor, "*L V V"]
    stop: bool = False
    _kept: dict = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Take a nested list or an array for a tensor."""
        object.__setattr__(self, "matrix", as_matrix(self.matrix, "a confusion matrix"))

    @property
    def by_position(self) -> bool:
        """Whether there is a matrix for each position."""
        return self.matrix.dim() == 3

    @property
    def summary(self) -> str:
        """How often it errs, over all letters alike."""
        wrong = 1.0 - float(self.matrix.diagonal(dim1=-2, dim2=-1).mean())
        return f"confusion matrix, {wrong:.1%} errors"

    def check(self, slipping: int, positions: int) -> None:
        """A square of the right size, rows that are laws, and as many matrices as positions if there are several."""
        size = self.matrix.shape[-1]
        if self.matrix.shape[-2:] != (slipping, slipping):
            raise ValueError(f"the confusion matrix is for {size} actions, the task has {slipping} that can slip")
        if self.matrix.dim() == 3 and self.matrix.shape[0] < positions:
            raise ValueError(f"there are {self.matrix.shape[0]} confusion matrices, the task has {positions} positions")
        if not are_laws(self.matrix):
            raise ValueError("the rows of a confusion matrix must be probabilities that sum to one")

    def _full(self, actions: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "*L A A"]:
        key = (actions, dtype, device)
        if key not in self._kept:
            size = self.matrix.shape[-1]
            full = torch.eye(actions, dtype=torch.float64).repeat(*self.matrix.shape[:-2], 1, 1)
            full[..., :size, :size] = self.matrix / self.matrix.sum(-1, keepdim=True)
            self._kept[key] = full.to(device, dtype)
        return self._kept[key]

    def _closed_form(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None, rate: Rate | None) -> Kernel:
        """The matrix on the slippable set, the identity outside it."""
        full = self._full(slippable.shape[-1], dtype, slippable.device)
        if full.dim() == 2:
            return ConfusionKernel(TableKernel.shared(full, slippable.shape[:-1]), slippable)
        return ConfusionKernel(TableKernel(full, row_at(position, full.shape[0])), slippable)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixtures(OperatorNoise):
    """Every intention is a mixture of outcomes, as a degenerate codon is one of residues: A rows, K columns.

    The matrix is the same at all states, and A may differ from K.
    """

    matrix: Float64[Tensor, "A K"]
    stop: bool = False

    def __post_init__(self) -> None:
        """Take a nested list or an array for a tensor."""
        object.__setattr__(self, "matrix", as_matrix(self.matrix, "a matrix of mixtures"))

    @property
    def by_position(self) -> bool:
        """The same at every position."""
        return False

    @property
    def summary(self) -> str:
        """Numbers of intentions and outcomes."""
        return f"{self.matrix.shape[0]} mixtures of {self.matrix.shape[1]} outcomes"

    def intentions(self, outcomes: int) -> int:
        """As many as the matrix has rows."""
        return self.matrix.shape[0]

    def check(self, slipping: int, positions: int) -> None:
        """Rows that are laws over as many outcomes as there are."""
        if self.matrix.shape[-1] != slipping:
            raise ValueError(f"the mixtures are over {self.matrix.shape[-1]} outcomes, the task has {slipping}")
        if not are_laws(self.matrix):
            raise ValueError("every mixture must be probabilities that sum to one")

    def _closed_form(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None, rate: Rate | None) -> Kernel:
        """The matrix at every state, shared."""
        return TableKernel.shared(self.matrix.to(slippable.device, dtype), slippable.shape[:-1])


def bayes_filter(
    noise: Noise,
    slippable: Bool[Tensor, "B T A"],
    intended: Int[Tensor, "B T"],
    realised: Int[Tensor, "B T"],
    position: Int[Tensor, "B T"] | None = None,
) -> Float64[Tensor, "B T A K"]:
    r"""P(k|a, history) at each step, exactly: no model that reads the history predicts better.

    The slip kernel is linear in alpha, so it is the kernel of the posterior mean rate; a kernel without a hidden rate
    is itself.
    """
    rate = noise.posterior_rates(slippable, intended, realised)
    if rate is None:
        return noise.kernel(slippable, torch.float64, position)
    return slip_kernel(slippable, rate, torch.float64)


def beta_quadrature(a: float, b: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes and weights on [0, 1], weights of sum one, exact for $E[f(\alpha)]$ with f of degree < 2 count.

    Eigenvalues of the Jacobi matrix of the polynomials orthogonal under Beta(a, b); where a = 0 the rate is 0.
    Reference: Golub and Welsch (1969), Calculation of Gauss quadrature rules, Mathematics of Computation 23.

    >>> nodes, weights = beta_quadrature(2.0, 6.0, 3)
    >>> round(float(weights @ nodes), 12), round(float(weights @ nodes**2), 12)  # a/(a+b), a(a+1)/((a+b)(a+b+1))
    (0.25, 0.083333333333)
    """
    if a == 0.0:
        return np.zeros(1), np.ones(1)
    p, q, s = b - 1.0, a - 1.0, a + b - 2.0  # exponents of 1 - x and 1 + x, on [-1, 1], and their sum
    n = np.arange(1, count)
    diagonal = np.concatenate([[(q - p) / (s + 2.0)], (q - p) * s / ((2 * n + s) * (2 * n + s + 2.0))])
    rest = np.where(n == 1, 1.0 / (s + 3.0), (n + s) / ((2 * n + s + 1.0) * np.where(n == 1, 1.0, 2 * n + s - 1.0)))
    beside = np.sqrt(4.0 * n * (n + p) * (n + q) / (2 * n + s) ** 2 * rest)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return np.clip((1.0 + nodes) / 2.0, 0.0, 1.0), vectors[0] ** 2


def as_matrix(table: Any, what: str) -> Float64[Tensor, "..."]:
    """A table of numbers, given as a tensor, an array or nested lists, as a tensor."""
    matrix = as_numbers(table, f"{what} must be a table of numbers, a row for each intention")
    if matrix.dim() < 2:
        raise ValueError(f"{what} must be a table, a row for each intention, got shape {list(matrix.shape)}")
    return matrix
