"""Landscapes: terminal object -> score."""

from sgfn.landscapes.base import Landscape

__all__ = ["Landscape"]
