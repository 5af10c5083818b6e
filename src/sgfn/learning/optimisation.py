"""Adam over parameters in one buffer, with rates in tensors, so that a schedule runs on the device."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sgfn.config import OptimConfig

MAX_ROWS_UNTRANSPOSED = 64
"""Most rows (outputs) of a weight matrix that lies in the buffer untransposed."""
Groups = list[tuple[list[nn.Parameter], float]]


class Optimiser:
    """Adam over groups of (parameters, rate), with one gradient-norm clip.

    The parameters move into one buffer, as do gradients and moments: norm, clip and update are then one operation each,
    however many parameters there are. Matrices of many outputs lie there transposed, inputs first, which makes products
    on a CPU faster; those of few outputs lie untransposed.
    Reference: Kingma and Ba (2015), Adam, ICLR.
    """

    def __init__(self, groups: Groups, clip: float, device: torch.device) -> None:
        self.clip = clip
        self.parameters = [p for parameters, _ in groups for p in parameters]
        self.rates = torch.tensor([rate for _, rate in groups], device=device)
        flat = [(p.detach().t() if _transposed(p) else p.detach()).flatten() for p in self.parameters]
        self.values = torch.cat(flat).to(device)
        self.gradient, self.first, self.second = (torch.zeros_like(self.values) for _ in range(3))
        self.count = torch.zeros((), device=device)
        self.bias = torch.zeros(2, device=device)  # see `update_bias_corrections`
        self.has_stepped, self.caller_advances_count = (
            False,
            False,
        )  # later: whoever compiles a step calls `advance_count` himself
        sizes = [sum(p.numel() for p in parameters) for parameters, _ in groups]
        self.rate_per_entry = self.rates.repeat_interleave(torch.tensor(sizes, device=device))
        buffers = (self.values, self.gradient, self.first, self.second)
        self.groups = list(zip(*(buffer.split(sizes) for buffer in buffers), strict=True))
        for parameter, home in zip(self.parameters, self.views(self.values), strict=True):
            parameter.data = home
        self.gradients = self.views(self.gradient)
        self.reduce: Callable[[Tensor], None] | None = None  # averages the gradient over ranks, where there are some
        self.parameter_index = {id(p): i for i, p in enumerate(self.parameters)}

    def views(self, buffer: Float[Tensor, " P"]) -> list[Tensor]:
        """A buffer in pieces shaped like the parameters."""
        pieces = buffer.split([p.numel() for p in self.parameters])
        return [
            piece.view(p.shape[1], p.shape[0]).t() if _transposed(p) else piece.view(p.shape)
            for piece, p in zip(pieces, self.parameters, strict=True)
        ]

    def current_values(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """Current values of parameters: themselves, or in a compiled function views of the buffer.

        A compiler copies tensors that share memory with one that changes, unless it sees that they are views of it.
        """
        if not torch.compiler.is_compiling():
            return list(parameters)
        pieces = self.views(self.values)
        return [pieces[self.parameter_index[id(p)]] for p in parameters]

    def step(self, loss: Float[Tensor, ""], factor: Float[Tensor, ""]) -> None:
        """Update all parameters along the gradient of a loss, at `factor` times the base rates."""
        self.apply(torch.autograd.grad(loss, self.parameters, materialize_grads=True), factor)

    @torch.no_grad()
    def apply(
        self, gradients: Sequence[Tensor], factor: Float[Tensor, ""], parameters: Sequence[Tensor] | None = None
    ) -> None:
        """Update along given gradients, of all parameters or of those that are given.

        A parameter that never gets a gradient does not change.
        """
        self.has_stepped = True
        if torch.compiler.is_compiling():
            given = dict(zip(map(id, self.parameters if parameters is None else parameters), gradients, strict=True))
            whole = [given.get(id(p), home) for p, home in zip(self.parameters, self.gradients, strict=True)]
            plain_adam(self.values, self.first, self.second, whole, self.rate_per_entry, factor, self.bias, self.clip)
            if not self.caller_advances_count:
                self.advance_count()
            return
        assert not self.caller_advances_count
        self.count += 1.0
        homes = (
            self.gradients if parameters is None else [self.gradients[self.parameter_index[id(p)]] for p in parameters]
        )
        torch._foreach_copy_(homes, list(gradients))  # pyright: ignore[reportPrivateImportUsage]
        if self.reduce is not None:
            self.reduce(self.gradient)
        excess = norm_excess(self.gradient, self.clip)
        for (values, gradient, first, second), rate in zip(self.groups, (self.rates * factor).unbind(), strict=True):
            fused_adam(values, gradient, first, second, self.count, rate, excess)

    def reset_first_moment(self) -> None:
        """Set the mean of gradients to zero, for weights that were replaced; the mean of their squares stays."""
        self.first.zero_()

    def advance_count(self) -> None:
        """Count a compiled update, and compute the bias corrections of the next."""
        self.count += 1.0
        self.update_bias_corrections()

    @torch.no_grad()
    def update_bias_corrections(self) -> None:
        """Compute the bias corrections of the next update ahead: a compiled update would do so for every entry."""
        first, second = 1.0 - BETA1 ** (self.count + 1.0), 1.0 - BETA2 ** (self.count + 1.0)
        self.bias.copy_(torch.stack([first.reciprocal(), second.rsqrt()]))

    def state(self) -> dict[str, Tensor]:
        """Moments and counters, named by parameter number; empty before the first step."""
        return self.tensors() if self.has_stepped else {}

    def tensors(self) -> dict[str, Tensor]:
        """Moments and counters, named by parameter number, before the first step too."""
        buffers = {"exp_avg": self.views(self.first), "exp_avg_sq": self.views(self.second)}
        moments = {f"{i}.{name}": value for name, values in buffers.items() for i, value in enumerate(values)}
        return moments | {f"{i}.step": self.count for i in range(len(self.parameters))}

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore moments and counters; a parameter without any had no gradient so far."""
        for name, buffer in (("exp_avg", self.first), ("exp_avg_sq", self.second)):
            buffer.zero_()
            for i, home in enumerate(self.views(buffer)):
                if f"{i}.{name}" in state:
                    home.copy_(state[f"{i}.{name}"])
        counts = [value for name, value in state.items() if name.endswith(".step")]
        self.has_stepped = bool(counts)
        self.count.copy_(torch.stack(counts).max() if counts else torch.zeros(()))
        self.update_bias_corrections()


def step_together(parts: Sequence[tuple[Optimiser, Float[Tensor, ""]]], factor: Float[Tensor, ""]) -> None:
    """Update several optimisers, none of whose losses depends on another's parameters, by one backward pass."""
    parameters = [p for optimiser, _ in parts for p in optimiser.parameters]
    total = torch.stack([loss for _, loss in parts]).sum()
    gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
    for optimiser, _ in parts:
        count = len(optimiser.parameters)
        optimiser.apply(gradients[:count], factor)
        gradients = gradients[count:]


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def fused_adam(
    values: Tensor, gradient: Tensor, first: Tensor, second: Tensor, count: Tensor, rate: Tensor, excess: Tensor
) -> None:
    """Adam in place, as one operation; the gradient is divided by `excess` first."""
    torch._fused_adam_(  # pyright: ignore[reportPrivateImportUsage]
        [values],
        [gradient],
        [first],
        [second],
        [],
        [count],
        lr=rate,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=0.0,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
        grad_scale=excess,
        found_inf=None,
    )


def plain_adam(
    values: Float[Tensor, " P"],
    first: Float[Tensor, " P"],
    second: Float[Tensor, " P"],
    gradients: list[Tensor],
    rates: Float[Tensor, " P"],
    factor: Float[Tensor, ""],
    bias: Float[Tensor, " 2"],
    clip: float,
) -> None:
    r"""Adam in place, in operations that a compiler can fuse; `bias` holds the corrections of both moments.

    .. math:: m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
              w \leftarrow w - \frac{\eta}{1-\beta_1^t} \frac{m}{\sqrt v/\sqrt{1-\beta_2^t} + \epsilon}
    """
    gradient = torch.cat([(g.t() if _transposed(g) else g).flatten() for g in gradients])
    gradient = gradient * norm_excess(gradient, clip).reciprocal()
    first.lerp_(gradient, 1.0 - BETA1)
    second.mul_(BETA2).addcmul_(gradient, gradient, value=1.0 - BETA2)
    values.sub_(rates * (factor * bias[0]) * first / (second.sqrt() * bias[1] + EPSILON))


def norm_excess(gradient: Float[Tensor, " P"], clip: float) -> Float[Tensor, ""]:
    """max(1, |g| / clip), by which a gradient is divided; 1 without a clip (0)."""
    norm = torch.linalg.vector_norm(gradient)
    return (norm / clip).clamp(min=1.0) if clip > 0 else torch.ones_like(norm)


def _transposed(parameter: Tensor) -> bool:
    """Whether a parameter lies in the buffer transposed."""
    return parameter.ndim == 2 and parameter.shape[0] > MAX_ROWS_UNTRANSPOSED


def schedule(step: Float[Tensor, ""], steps: int | Float[Tensor, ""], config: OptimConfig) -> Float[Tensor, ""]:
    r"""Linear warm-up, then cosine decay to a share f: $\min(1, (t+1)/w)\,(f + (1-f)(1+\cos(\pi t/n))/2)$.

    >>> config = OptimConfig(warmup=10, final=0.1)
    >>> [round(schedule(torch.tensor(t), 100, config).item(), 3) for t in (0.0, 50.0, 100.0)]
    [0.1, 0.55, 0.1]
    """
    warm = ((step + 1.0) / max(1, config.warmup)).clamp(max=1.0)
    cosine = (1.0 + torch.cos(math.pi * step / steps)) / 2.0
    return warm * (config.final + (1.0 - config.final) * cosine)
