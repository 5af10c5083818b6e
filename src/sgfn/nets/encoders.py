"""Encoders: features of a state -> a representation that the heads read."""

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}


class MLP(nn.Module):
    """Fully connected layers of one width, an activation after each."""

    def __init__(self, features: int, hidden: int, layers: int, activation: str) -> None:
        super().__init__()
        sizes = [features] + [hidden] * layers
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.activation = ACTIVATIONS[activation]()
        self.width = hidden

    def forward(self, features: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch H"]:
        """Apply the layers in turn."""
        for layer in self.layers:
            features = self.activation(layer(features))
        return features
