"""A fitted proxy: expected score and uncertainty of every sequence, in the user's units, saved as plain tensors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.config.checks import shorten
from sgfn.config.reading import parse_json
from sgfn.landscapes.proxies.base import Candidate, Prediction, ProxyModel, ProxyReport
from sgfn.landscapes.proxies.calibration import Calibration
from sgfn.landscapes.proxies.registry import PROXIES

FACTS, MODEL = "facts", "model."


class Proxy:
    """Mean and standard deviation of the score of any sequence up to a length, and draws of whole functions."""

    def __init__(
        self,
        *,
        model: ProxyModel,
        kind: str,
        alphabet: str,
        max_length: int,
        shift: float,
        scale: float,
        calibration: Calibration,
        report: ProxyReport,
    ) -> None:
        self.model, self.kind, self.alphabet, self.max_length = model, kind, alphabet, max_length
        self.shift, self.scale, self.calibration, self.report = shift, scale, calibration, report

    def predict(self, sequences: Sequence[str]) -> Prediction:
        """Expected score and its uncertainty, in the user's units."""
        mean, sd = self.predict_tokens(self.tokens(sequences))
        return Prediction(mean=mean.numpy(), sd=sd.numpy())

    def members(self, sequences: Sequence[str]) -> Float64[np.ndarray, "M N"]:
        """Scores under functions drawn from the posterior, the same ones in every call."""
        return self.member_tokens(self.tokens(sequences)).numpy()

    # On tokens, on any device

    @torch.no_grad()
    def predict_tokens(self, tokens: Int[Tensor, "N L"]) -> tuple[Float64[Tensor, " N"], Float64[Tensor, " N"]]:
        """The same for token rows as `SequenceEnv` has them: letters by number, `len(alphabet)` behind the last."""
        mean, sd = self.model.moments(self._widened(tokens))
        return self.shift + self.scale * mean, self.scale * self.calibration.sd(sd)

    @torch.no_grad()
    def mean_tokens(self, tokens: Int[Tensor, "N L"]) -> Float64[Tensor, " N"]:
        """The mean alone, which may be much cheaper."""
        return self.shift + self.scale * self.model.mean(self._widened(tokens)).double()

    @torch.no_grad()
    def member_tokens(self, tokens: Int[Tensor, "N L"]) -> Float64[Tensor, "M N"]:
        """Scores under functions drawn from the posterior."""
        return self.shift + self.scale * self.model.draws(self._widened(tokens)).double()

    def to(self, device: torch.device | str) -> "Proxy":
        """Move the model to a device."""
        self.model.to(device)
        return self

    def tokens(self, sequences: Sequence[str]) -> Int[Tensor, "N L"]:
        """Token rows of sequences, padded with blanks; a ValueError names what is not of the alphabet or too long."""
        return token_rows(sequences, self.alphabet, self.max_length)

    def _widened(self, tokens: Int[Tensor, "N L"]) -> Int[Tensor, "N W"]:
        missing = self.max_length - tokens.shape[1]
        if missing < 0:
            what = f"rows of {tokens.shape[1]} letters, the proxy was fitted for {self.max_length} at most"
            raise ValueError(f"{what}: give fit_proxy max_length={tokens.shape[1]}")
        return torch.nn.functional.pad(tokens, (0, missing), value=len(self.alphabet)) if missing else tokens

    # Saved

    def to_tensors(self) -> dict[str, Tensor]:
        """Named tensors, for safetensors; `facts` is JSON as bytes."""
        report = self.report
        facts: dict[str, Any] = {"kind": self.kind, "alphabet": self.alphabet, "max_length": self.max_length}
        facts |= {"shift": self.shift, "scale": self.scale, "calibration": asdict(self.calibration)}
        facts |= {"rows": report.rows, "folds": report.folds, "sequences": report.sequences}
        facts |= {"candidates": [asdict(one) for one in report.candidates]}
        figures = {name: torch.from_numpy(getattr(report, name)) for name in ("measured", "predicted", "sd")}
        state = {MODEL + name: value.detach().cpu().contiguous() for name, value in self.model.state().items()}
        blob = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8).copy()
        return {FACTS: torch.from_numpy(blob)} | figures | state

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], *, trust: bool = False) -> "Proxy":
        """The proxy that was saved; a kind `module:name` is imported only with `trust`."""
        try:
            facts = parse_json(tensors[FACTS].numpy().tobytes(), "proxy")
            kind, alphabet = str(facts["kind"]), str(facts["alphabet"])
            if ":" in kind and not trust:
                raise ValueError(f"it names code that would be run ({kind!r}): trust it explicitly")
            state = {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}
            figures = {name: tensors[name].numpy() for name in ("measured", "predicted", "sd")}
            candidates = [Candidate(**one) for one in facts["candidates"]]
            named: dict[str, Any] = {name: facts[name] for name in ("kind", "rows", "sequences", "folds")}
            report = ProxyReport(**named, **figures, candidates=candidates)
            return cls(
                model=PROXIES[kind].restore(state, alphabet),
                kind=kind,
                alphabet=alphabet,
                max_length=int(facts["max_length"]),
                shift=float(facts["shift"]),
                scale=float(facts["scale"]),
                calibration=Calibration(**facts["calibration"]),
                report=report,
            )
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
            raise ValueError(f"a saved proxy cannot be read ({shorten(str(error), 200)}): fit it again") from None


def token_rows(sequences: Sequence[str], alphabet: str, length: int) -> Int[Tensor, "N {length}"]:
    """Letters by number, padded with `len(alphabet)` to a length; errors name the sequence."""
    code = {letter: number for number, letter in enumerate(alphabet)}
    blank, rows = len(alphabet), np.full((len(sequences), length), len(alphabet), dtype=np.int64)
    for row, text in enumerate(sequences):
        if not 0 < len(text) <= length:
            raise ValueError(f"sequence {row + 1} ({shorten(text)!r}) has {len(text)} letters, not 1 to {length}")
        rows[row, : len(text)] = [code.get(letter, blank) for letter in text]
        if (rows[row, : len(text)] == blank).any():
            wrong = next(letter for letter in text if letter not in code)
            raise ValueError(f"sequence {row + 1} ({shorten(text)!r}) holds {wrong!r}, not in the alphabet {alphabet}")
    return torch.from_numpy(rows)
