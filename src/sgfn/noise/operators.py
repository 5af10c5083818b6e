r"""Kernels as operators: what intentions become at a batch of states, without a matrix per state where none is needed.

A kernel is P(k|s,a) for A intentions and K outcomes, which may be different sets. Uniform slip needs one rate, a
confusion matrix one [A, K] product for all states; only noise that differs by state needs [A, K] for each of them.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.noise.projection import nearest_law, water_fill

Rate = float | Float[Tensor, "*batch"]

SMALL = 1024
"""Entries of a matrix [A, K] up to which one may be built for every state."""
FEW = 64
"""Entries of a shared matrix up to which one is selected by comparison where it is learned."""


class Kernel(ABC):
    """P(k|s,a) at a batch of states."""

    @abstractmethod
    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """P(.|s,a): the law of the outcome of one intention per state."""

    @abstractmethod
    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """log P(k|s,.): how likely every intention makes one outcome per state; minus infinity where it cannot."""

    @abstractmethod
    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """The probabilities of all outcomes under all intentions, for exact work on small alphabets."""

    def log_matrix(self) -> Float[Tensor, "*batch A K"]:
        """Logarithms of `matrix`."""
        return self.matrix().log()

    def log_prob(self, intention: Int[Tensor, "*batch"], outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P(k|s,a) of one intention and one outcome per state."""
        return self.log_column(outcome).gather(-1, intention[..., None])[..., 0]

    def outcome_law(self, log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        r"""$\log\bar P(k|s) = \log\sum_a \pi(a|s) P(k|s,a)$; the least logarithm there is where nothing leads to k."""
        return floored_log(self.outcome_probabilities(log_policy.exp()))

    def outcome_probabilities(self, policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        r"""$\bar P(k|s) = \sum_a \pi(a|s) P(k|s,a)$; zero where nothing leads to k."""
        return (policy[..., None, :] @ self.matrix())[..., 0, :]

    def expected(self, values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        r"""$E[v|s,a] = \sum_k P(k|s,a)\,v_k$ of every intention, for one value per outcome."""
        return (self.matrix() @ values[..., None])[..., 0]

    def log_expected(self, log_values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        r"""$\log\sum_k P(k|s,a)\,e^{v_k}$ of every intention; minus infinity where nothing of worth follows."""
        return masked_logsumexp(self.log_matrix() + log_values[..., None, :], -1)

    def posterior(
        self, log_policy: Float[Tensor, "*batch A"], outcome: Int[Tensor, "*batch"]
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch A"]]:
        r"""$\log\bar P(k|s)$ of one outcome per state, and the law $\log\pi(a|s)P(k|s,a) - \log\bar P(k|s)$ over a."""
        joint = log_policy + self.log_column(outcome)
        log_law = torch.logsumexp(joint, -1)
        return log_law, joint - log_law[..., None]

    def sample(self, intention: Int[Tensor, "*batch"], clock: Float[Tensor, "*batch K"]) -> Int[Tensor, "*batch"]:
        """The outcome that wins the exponential race among those of an intention: see `learning.rollout.draw`."""
        return (self.row(intention) / clock).argmax(-1)

    def project(self, conditional: Float[Tensor, "N K"]) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N K"]]:
        """The policy whose law over outcomes is nearest to a wanted one in forward KL, and that law."""
        return nearest_law(conditional.double(), self.matrix().double())

    def detach(self) -> "Kernel":
        """The same numbers without gradients."""
        return self


class Identity(Kernel):
    """What is intended happens."""

    def __init__(self, actions: int, dtype: torch.dtype, shape: torch.Size, device: torch.device) -> None:
        self.actions, self.dtype, self.shape, self.device = actions, dtype, shape, device

    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """All mass on the intention."""
        return self._same(intention).to(self.dtype)

    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """Zero for the intention of the outcome's own name, minus infinity for others."""
        zero = torch.zeros((), dtype=self.dtype, device=self.device)
        return torch.where(self._same(outcome), zero, -torch.inf)

    def log_prob(self, intention: Int[Tensor, "*batch"], outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Zero where they are the same."""
        zero = torch.zeros((), dtype=self.dtype, device=self.device)
        return torch.where(intention == outcome, zero, -torch.inf)

    def outcome_law(self, log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """The policy itself."""
        return log_policy

    def outcome_probabilities(self, policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """The policy itself."""
        return policy

    def expected(self, values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """The values themselves."""
        return values

    def log_expected(self, log_values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """The values themselves."""
        return log_values

    def sample(self, intention: Int[Tensor, "*batch"], clock: Float[Tensor, "*batch K"]) -> Int[Tensor, "*batch"]:
        """The intention."""
        return intention

    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """The unit matrix at every state."""
        eye = torch.eye(self.actions, dtype=self.dtype, device=self.device)
        return eye.expand(*self.shape, self.actions, self.actions)

    def project(self, conditional: Float[Tensor, "N K"]) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N K"]]:
        """Anything can be reached."""
        return conditional, conditional

    def _same(self, index: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch A"]:
        return index[..., None] == torch.arange(self.actions, device=index.device)


class UniformSlipKernel(Kernel):
    r"""A slippable action is replaced, with probability alpha, by a uniform draw from the slippable set S.

    .. math:: P(k|s,a) = (1-\alpha)\,1[k=a] + \alpha\,1[k \in S]/|S| \quad (a \in S), \qquad 1[k=a] \quad (a \notin S)

    Every question is answered in O(A): no matrix is built unless it is asked for.
    """

    def __init__(self, slippable: Bool[Tensor, "*batch A"], alpha: Rate, dtype: torch.dtype) -> None:
        self.inside = slippable.to(dtype)
        self.share = self.inside / self.inside.sum(-1, keepdim=True).clamp(min=1.0)  # of each outcome in a slip
        self.alpha = _column(alpha, dtype)

    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """The intention keeps 1 - alpha, the slippable set shares alpha."""
        slip = self.alpha * self.inside.gather(-1, intention[..., None])
        return self._at(intention, 1.0 - slip) + slip * self.share

    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """Every slippable intention leads there by a slip, the one of its name also as intended."""
        slip = self.alpha * self.inside
        return (self._at(outcome, 1.0 - slip) + slip * self.share.gather(-1, outcome[..., None])).log()

    def outcome_probabilities(self, policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        r"""$\bar P_k = (1-\alpha)\pi_k + \alpha m/|S|$ in S, with m the mass that the policy has there."""
        mass = (policy * self.inside).sum(-1, keepdim=True)
        return (1.0 - self.alpha * self.inside) * policy + self.alpha * mass * self.share

    def expected(self, values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        r"""$(1-\alpha) v_a + \alpha\bar v$ in S, with $\bar v$ the mean of v over S; $v_a$ outside."""
        slip = self.alpha * self.inside
        return (1.0 - slip) * values + slip * (values * self.share).sum(-1, keepdim=True)

    def log_expected(self, log_values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """Logarithm of the same two terms, each of them computed as a logarithm."""
        slip = self.alpha * self.inside
        mean = masked_logsumexp(log_values + self.share.log(), -1)[..., None]
        return masked_logsumexp(torch.stack([log_values + torch.log1p(-slip), slip.log() + mean]), 0)

    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """Rows intentions, columns outcomes."""
        slip = (self.alpha * self.inside)[..., None]  # A 1
        kept = torch.eye(self.inside.shape[-1], dtype=self.inside.dtype, device=self.inside.device) * (1.0 - slip)
        return kept + slip * self.share[..., None, :]

    def project(self, conditional: Float[Tensor, "N K"]) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N K"]]:
        r"""Water-filling, in closed form.

        Noise moves mass only within the slippable set S, so the mass of S is kept and water-filling acts inside it:

        .. math:: \bar P_k = m\,\max(\nu c_k/m,\ \alpha/|S|), \quad m = \sum_{k \in S} c_k,
                  \qquad \pi_k = (\bar P_k - \alpha m/|S|)/(1-\alpha)
        """
        inside, alpha = self.inside.to(conditional.dtype), _column(self.alpha, conditional.dtype, wide=True)
        mass = (conditional * inside).sum(-1, keepdim=True)
        size = inside.sum(-1, keepdim=True).clamp(min=1.0)
        floor = alpha * inside / size
        share = torch.where(mass > 0, conditional * inside / mass.clamp(min=1e-300), inside / size)
        law = water_fill(share, floor) * mass
        policy = ((law - floor * mass) / (1.0 - alpha)).clamp(min=0.0)
        outside = conditional * (1.0 - inside)
        return policy + outside, law + outside

    def _at(self, index: Int[Tensor, "*batch"], values: Float[Tensor, "*batch _"]) -> Float[Tensor, "*batch A"]:
        """Values at one index per state, zero elsewhere."""
        here = index[..., None] == torch.arange(self.inside.shape[-1], device=index.device)
        return torch.where(here, values, 0.0)


class TableKernel(Kernel):
    """One matrix of a table for each state: shared by all (a table of one), by position, or by number of the state."""

    def __init__(self, table: Float[Tensor, "R A K"], index: Int[Tensor, "*batch"], *, log: bool = False) -> None:
        self.table, self.index, self.log = table, index, log

    @classmethod
    def shared(cls, matrix: Float[Tensor, "A K"], shape: torch.Size, *, log: bool = False) -> "TableKernel":
        """One matrix for states of a batch of that shape."""
        return cls(matrix[None], torch.zeros((), dtype=torch.int64, device=matrix.device).expand(shape), log=log)

    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """Looked up by state and intention."""
        found = self.table[self.index, intention]
        return found.exp() if self.log else found

    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """Looked up by state and outcome."""
        found = self.table.transpose(-1, -2)[self.index, outcome]
        return found if self.log else found.log()

    def log_prob(self, intention: Int[Tensor, "*batch"], outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """One entry of the table per state."""
        if self.table.requires_grad and self._shared and self.table.numel() <= FEW:
            found = _selected(self.table[0].flatten(), intention * self.table.shape[-1] + outcome)
        else:
            found = self.table[self.index, intention, outcome]
        return found if self.log else found.log()

    def outcome_probabilities(self, policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """Products with the table's matrices."""
        return self._product(policy, self._probabilities())

    def expected(self, values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """Products with the table's matrices, transposed."""
        return self._product(values, self._probabilities().transpose(-1, -2))

    def log_expected(self, log_values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """Sums of logarithms where matrices are small; else products, where what lies further below the largest value
        than the type reaches counts as nothing."""
        if self._small:
            return masked_logsumexp(self._log_probabilities()[self.index] + log_values[..., None, :], -1)
        largest = log_values.detach().amax(-1, keepdim=True)
        largest = torch.where(largest > -torch.inf, largest, 0.0)
        found = self.expected((log_values - largest).exp())
        return torch.where(found > 0, floored_log(found) + largest, -torch.inf)

    @property
    def _shared(self) -> bool:
        return self.table.shape[0] == 1

    @property
    def _small(self) -> bool:
        return self.table[0].numel() <= SMALL

    def _probabilities(self) -> Float[Tensor, "R A K"]:
        return self.table.exp() if self.log else self.table

    def _log_probabilities(self) -> Float[Tensor, "R A K"]:
        return self.table if self.log else self.table.log()

    def _product(self, rows: Float[Tensor, "*batch M"], table: Float[Tensor, "R M N"]) -> Float[Tensor, "*batch N"]:
        """One product with a shared matrix; by table row where matrices are large, so that none stands there twice."""
        shared = self._shared or self.index.numel() == 1
        if self._small and not (shared and rows.dtype == torch.float64):  # a GPU rounds single products to ten bits
            return (rows[..., None] * table[self.index]).sum(-2)
        if shared:
            return rows @ (table[0] if table.shape[0] == 1 else table[self.index.flatten()][0])
        found = torch.zeros(*rows.shape[:-1], table.shape[-1], dtype=rows.dtype, device=rows.device)
        for number, matrix in enumerate(table):
            found = torch.where((self.index == number)[..., None], rows @ matrix, found)
        return found

    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """The table's matrices, one for each state."""
        found = self.table[self.index]
        return found.exp() if self.log else found

    def detach(self) -> Kernel:
        """The same numbers without gradients."""
        return TableKernel(self.table.detach(), self.index, log=self.log)


class ConfusionKernel(Kernel):
    r"""A confusion matrix M on the slippable set S; what is outside it, and mass that would leave it, stays.

    .. math:: P(k|s,a) = 1[a \in S]\,\big(M_{ak} 1[k \in S] + 1[k=a] \textstyle\sum_{j \notin S} M_{aj}\big)
              + 1[a \notin S]\,1[k=a]
    """

    def __init__(self, table: TableKernel, slippable: Bool[Tensor, "*batch A"]) -> None:
        self.table, self.inside = table, slippable.to(table.table.dtype)

    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """The matrix row within the slippable set, the rest on the intention."""
        slips = self.inside.gather(-1, intention[..., None])
        moved = slips * self.table.row(intention) * self.inside
        here = intention[..., None] == torch.arange(self.inside.shape[-1], device=intention.device)
        return moved + torch.where(here, 1.0 - moved.sum(-1, keepdim=True), 0.0)

    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """The matrix column within the slippable set; the intention of the outcome's name also by what stays."""
        reached = self.inside.gather(-1, outcome[..., None])
        moved = self.inside * self.table.log_column(outcome).exp() * reached
        slips = self.inside.gather(-1, outcome[..., None])
        leaves = slips * (self.table.row(outcome) * (1.0 - self.inside)).sum(-1, keepdim=True)
        here = outcome[..., None] == torch.arange(self.inside.shape[-1], device=outcome.device)
        return (moved + torch.where(here, leaves + 1.0 - slips, 0.0)).log()

    def outcome_probabilities(self, policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """One product with the matrix, and what stays."""
        moved = self.table.outcome_probabilities(policy * self.inside) * self.inside
        return moved + policy * self._staying()

    def expected(self, values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """One product with the matrix, and the own value of what stays."""
        return self.inside * self.table.expected(values * self.inside) + values * self._staying()

    def log_expected(self, log_values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """Logarithm of the same two terms, each of them computed as a logarithm."""
        inside = self.inside > 0
        moved = self.table.log_expected(torch.where(inside, log_values, -torch.inf))
        terms = [torch.where(inside, moved, -torch.inf), log_values + self._staying().log()]
        return masked_logsumexp(torch.stack(terms), 0)

    def _staying(self) -> Float[Tensor, "*batch A"]:
        """Mass that stays with each intention beside what the matrix says: all of it outside the slippable set."""
        return 1.0 - self.inside + self.inside * self._leaving()

    def _leaving(self) -> Float[Tensor, "*batch A"]:
        """Mass of each intention's row that lies outside the slippable set."""
        outside = 1.0 - self.inside
        if self.table.table.shape[0] == 1:
            return outside @ self.table.table[0].t()
        return (outside[..., None, :] @ self.table.matrix().transpose(-1, -2))[..., 0, :]

    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """The matrix on the slippable set, the identity outside it."""
        full, slips = self.table.matrix(), self.inside[..., None] > 0
        eye = torch.eye(full.shape[-1], dtype=full.dtype, device=full.device)
        stays = (full * (1.0 - self.inside[..., None, :])).sum(-1, keepdim=True)
        return torch.where(slips, full * self.inside[..., None, :] + eye * stays, eye)


class DenseKernel(Kernel):
    """A matrix for every state, as probabilities or (what networks give) as logarithms."""

    def __init__(self, values: Float[Tensor, "*batch A K"], *, log: bool = False) -> None:
        self.values, self.log = values, log

    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """The matrix row of the intention."""
        found = _pick(self.values, intention, -2)
        return found.exp() if self.log else found

    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """The matrix column of the outcome."""
        found = _pick(self.values, outcome, -1)
        return found if self.log else found.log()

    def log_prob(self, intention: Int[Tensor, "*batch"], outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """One entry of each matrix."""
        place = intention * self.values.shape[-1] + outcome
        found = self.values.flatten(-2).gather(-1, place[..., None])[..., 0]
        return found if self.log else found.log()

    def outcome_law(self, log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """Sums in the logarithmic domain; columns that no intention reaches get the least logarithm there is."""
        return masked_logsumexp(log_policy[..., None] + self.log_matrix(), -2, LEAST[log_policy.dtype])

    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """As probabilities."""
        return self.values.exp() if self.log else self.values

    def log_matrix(self) -> Float[Tensor, "*batch A K"]:
        """As logarithms."""
        return self.values if self.log else self.values.log()

    def detach(self) -> Kernel:
        """The same numbers without gradients."""
        return DenseKernel(self.values.detach(), log=self.log)


LEAST = {kind: float(torch.tensor(torch.finfo(kind).tiny, dtype=kind).log()) for kind in (torch.float32, torch.float64)}
"""Logarithm of the least normal number, by type."""


def floored_log(values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch K"]:
    """Logarithms with a floor in place of minus infinity, so that gradients stay finite."""
    return values.clamp(min=torch.finfo(values.dtype).tiny).log()


def masked_logsumexp(terms: Float[Tensor, "..."], dim: int, empty: float = -torch.inf) -> Float[Tensor, "..."]:
    """`logsumexp`, and `empty` where all terms are minus infinity: there gradients are zero, not nan."""
    finite = (terms > -torch.inf).any(dim, keepdim=True)
    found = torch.logsumexp(torch.where(finite, terms, 0.0), dim)
    return torch.where(finite.squeeze(dim), found, empty)


def _selected(values: Float[Tensor, " E"], place: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Values at places, by comparison: gradients of a look-up would be added to few addresses one after another."""
    here = place[..., None] == torch.arange(values.shape[0], device=place.device)
    return torch.where(here, values, 0.0).sum(-1)


def _pick(matrix: Float[Tensor, "*batch A K"], index: Int[Tensor, "*batch"], dim: int) -> Tensor:
    """One row (dim -2) or one column (dim -1) of each matrix."""
    if dim == -1:
        matrix = matrix.transpose(-1, -2)
    place = index[..., None, None].expand(*index.shape, 1, matrix.shape[-1])
    return matrix.gather(-2, place)[..., 0, :]


def _column(alpha: Rate, dtype: torch.dtype, *, wide: bool = False) -> float | Tensor:
    """A rate that multiplies rows of actions; `wide` where it has that last dimension already."""
    if not isinstance(alpha, Tensor):
        return alpha
    return (alpha if wide else alpha[..., None]).to(dtype)
