"""Deep ensembles: small networks from different starting weights, trained side by side, each without one fold.

Every member leaves one fold out, so that one training gives the ensemble and its predictions out of fold.
Reference: Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep ensembles,
NeurIPS.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from sgfn.landscapes.proxies.base import DRAWS, FittedModel, ProxyModel, TrainingSet, blocks
from sgfn.landscapes.proxies.letters import is_protein, one_hot, short_codes

HIDDEN = 64
RATE, DECAY = 0.01, 0.1
"""Highest learning rate of Adam, which falls to zero along a cosine, and decoupled weight decay."""
CHANNELS = 24
"""Filters of each member."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a member's network."""

    letters: int
    length: int
    window: int
    """Letters that a filter of the first layer reads; with 0 the first layer reads whole sequences by position."""
    codes: int
    """Numbers that stand for a letter in a window."""
    channels: int
    """Outputs of the first layer of each member."""
    hidden: int
    members: int

    @property
    def pooled(self) -> int:
        """Numbers that follow the first layer: of filters their highest and their mean answer."""
        return 2 * self.channels if self.window else self.channels


class Ensemble(ProxyModel):
    """Networks whose first layer reads letters by position, or letters in a window wherever it stands."""

    def __init__(self, shape: Shape, weights: list[Tensor], alphabet: str) -> None:
        self.shape, self.weights, self.alphabet = shape, weights, alphabet
        self.codes = short_codes(alphabet).float()

    @classmethod
    def begin(cls, shape: Shape, alphabet: str, generator: torch.Generator) -> "Ensemble":
        """Networks with random weights whose signals keep their size from layer to layer."""
        members, active, letters = shape.members, shape.window or shape.length, shape.length * (shape.letters + 1)
        similar = shape.length * shape.codes if is_protein(alphabet) else 0  # of other letters codes are one-hot too
        rows = shape.window * shape.codes or letters + similar
        active = active if shape.window or not similar else 2 * shape.length
        sizes = [(shape.pooled, shape.hidden), (shape.hidden, 1)]
        first = torch.randn(rows, members * shape.channels, generator=generator) * math.sqrt(2 / active)
        weights = [first, torch.zeros(members * shape.channels)]
        for inputs, outputs in sizes:
            gain = math.sqrt(2 / inputs) if outputs > 1 else math.sqrt(0.5 / inputs)
            weights.append(torch.randn(members, inputs, outputs, generator=generator) * gain)
            weights.append(torch.zeros(members, 1, outputs))
        return cls(shape, weights, alphabet)

    def inputs(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N ..."]:
        """What the first layer reads; it is the same for all members."""
        if self.shape.window:
            written = (tokens < self.shape.letters).float()[..., None]
            return torch.cat([self.codes[tokens], written], -1).transpose(1, 2).contiguous()  # N E+1 L
        letters = one_hot(tokens, self.shape.letters + 1).flatten(1)
        if letters.shape[1] == self.weights[0].shape[0]:  # proxies of earlier versions know of no similarity
            return letters
        return torch.cat([letters, self.codes[tokens].flatten(1)], 1)

    def first_layer(self, inputs: Tensor) -> Float[Tensor, "M N P"]:
        """Answers of the first layer by member."""
        shape, (weight, bias) = self.shape, self.weights[:2]
        if not shape.window:
            answers = torch.addmm(bias, inputs, weight).relu()
            return answers.view(-1, shape.members, shape.channels).transpose(0, 1)
        filters = weight.T.view(-1, shape.codes, shape.window)
        answers = functional.conv1d(inputs[:, :-1], filters, bias, padding=shape.window // 2).relu()
        written = inputs[:, -1:]
        answers = answers * written
        mean = answers.sum(2) / written.sum(2).clamp(min=1)
        both = torch.stack([answers.amax(2), mean], 2)  # N MC 2
        return both.view(-1, shape.members, shape.pooled).transpose(0, 1)

    def answers(self, inputs: Tensor) -> Float[Tensor, "M N"]:
        """Score of each row by each member."""
        _, _, second, second_bias, last, last_bias = self.weights
        hidden = torch.baddbmm(second_bias, self.first_layer(inputs), second).relu()
        return torch.baddbmm(last_bias, hidden, last)[..., 0]

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """The members."""
        width = self.shape.members * self.shape.channels * (tokens.shape[1] if self.shape.window else 1)
        return torch.cat([self.answers(self.inputs(part)) for part in blocks(tokens, width)], 1).double()

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        """Mean of the members and how far they differ."""
        found = self.draws(tokens)
        return found.mean(0), found.std(0)

    def state(self) -> dict[str, Tensor]:
        """Weights and sizes."""
        s = self.shape
        sizes = torch.tensor([s.letters, s.length, s.window, s.codes, s.channels, s.hidden, s.members])
        return {f"weight{i}": weight for i, weight in enumerate(self.weights)} | {"shape": sizes}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "Ensemble":
        """The model whose `state` was kept."""
        names = ("letters", "length", "window", "codes", "channels", "hidden", "members")
        shape = Shape(**dict(zip(names, (int(value) for value in state["shape"].tolist()), strict=True)))
        return cls(shape, [state[f"weight{i}"] for i in range(6)], alphabet)


def fit_letters(data: TrainingSet) -> FittedModel:
    """Networks that read one-hot letters by position, and for proteins the main axes of their similarity too."""
    return _fit(data, window=0, channels=HIDDEN, batch=512, steps=steps_for(data.targets.shape[0]))


def fit_windows(data: TrainingSet) -> FittedModel:
    """Networks that read windows of letters and keep the highest and the mean answer of each filter."""
    window = min(7 if len(data.alphabet) < 10 else 5, 2 * (data.tokens.shape[1] // 2) + 1)
    return _fit(data, window=window, channels=CHANNELS, batch=256, steps=steps_for(data.targets.shape[0]))


def steps_for(rows: int) -> int:
    """Steps of training: 150 for a plate or two, up to 600 for thousands of rows."""
    return int(min(600, max(150, 150 + (rows - 400) / 10)))


def _fit(data: TrainingSet, *, window: int, channels: int, batch: int, steps: int) -> FittedModel:
    """Train all members at once; member m never sees fold m modulo the number of folds."""
    generator = torch.Generator().manual_seed(data.seed)
    members = -(-DRAWS // data.folds) * data.folds
    sizes = {"letters": len(data.alphabet), "length": data.tokens.shape[1], "window": window}
    codes = short_codes(data.alphabet).shape[1]
    shape = Shape(**sizes, codes=codes, channels=channels, hidden=HIDDEN, members=members)
    model = Ensemble.begin(shape, data.alphabet, generator)
    left_out = torch.arange(members)[:, None] % data.folds == data.fold  # M N
    model.to(data.device)
    _train(model, data, (~left_out * data.reliability).float(), steps, batch, generator)
    model.to("cpu")
    drawn = model.draws(data.tokens)
    count = left_out.sum(0)
    mean = (drawn * left_out).sum(0) / count
    variance = ((drawn - mean).square() * left_out).sum(0) / (count - 1).clamp(min=1)
    return FittedModel(model=model, mean=mean, sd=variance.sqrt())


def _train(
    model: Ensemble, data: TrainingSet, counts: Tensor, steps: int, batch: int, generator: torch.Generator
) -> None:
    """Minimise each member's weighted squared error by Adam with decoupled weight decay."""
    device, rows = data.device, data.targets.shape[0]
    inputs, targets, counts = model.inputs(data.tokens.to(device)), data.targets.float().to(device), counts.to(device)
    batches = torch.randint(rows, (steps, batch), generator=generator).to(device) if rows > batch else None
    slopes = gradients_by_autograd if model.shape.window else gradients
    optimiser = torch.optim.AdamW(model.weights, lr=RATE, weight_decay=DECAY, fused=True)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * step / steps))
        chosen = slice(None) if batches is None else batches[step]
        found = slopes(model, inputs[chosen], targets[chosen], counts[:, chosen])
        for weight, slope in zip(model.weights, found, strict=True):
            weight.grad = slope.contiguous()  # fused Adam goes through memory: weight and slope must lie alike
        optimiser.step()
    for weight in model.weights:
        weight.grad = None


def gradients_by_autograd(
    model: Ensemble, inputs: Tensor, targets: Float[Tensor, " N"], counts: Float[Tensor, "M N"]
) -> tuple[Tensor, ...]:
    """Gradient of the sum of the members' weighted mean squared errors with respect to each weight."""
    with torch.enable_grad():
        weights = [weight.detach().requires_grad_() for weight in model.weights]
        error = (Ensemble(model.shape, weights, model.alphabet).answers(inputs) - targets).square() * counts
        loss = (error.sum(1) / counts.sum(1).clamp(min=1e-9)).sum()
        return torch.autograd.grad(loss, weights)


def gradients(
    model: Ensemble, inputs: Float[Tensor, "N I"], targets: Float[Tensor, " N"], counts: Float[Tensor, "M N"]
) -> tuple[Tensor, ...]:
    """The same for networks that read letters by position, by the chain rule written out, which keeps less."""
    _, _, second, second_bias, last, last_bias = model.weights
    first = model.first_layer(inputs)  # M N C
    hidden = torch.baddbmm(second_bias, first, second).relu_()  # M N H
    error = torch.baddbmm(last_bias, hidden, last)[..., 0].sub_(targets)  # M N
    slope = error.mul_(counts).mul_(2 / counts.sum(1, keepdim=True).clamp(min=1e-9))[..., None]  # M N 1
    last_slope, last_bias_slope = torch.bmm(hidden.mT, slope), slope.sum(1, keepdim=True)
    slope = torch.ops.aten.threshold_backward(slope * last.mT, hidden, 0.0)  # M N H
    second_slope, second_bias_slope = torch.bmm(first.mT, slope), slope.sum(1, keepdim=True)
    slope = torch.ops.aten.threshold_backward(torch.bmm(slope, second.mT), first, 0.0)
    slope = slope.transpose(0, 1).flatten(1)  # N MC
    return inputs.T @ slope, slope.sum(0), second_slope, second_bias_slope, last_slope, last_bias_slope
