"""torchgfn at TFBind8: its append-only bit sequences with words of two bits are DNA; the reward is looked up.

On-policy with log-probabilities kept from sampling, so that nothing is evaluated twice: its fastest way.
"""

# pyright: reportMissingImports=false
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from gfn.estimators import DiscretePolicyEstimator
from gfn.gflownet import TBGFlowNet
from gfn.gym.bitSequence import BitSequence
from gfn.preprocessors import Preprocessor
from gfn.utils.modules import MLP

from benchmarks.contest import Job, serve

LENGTH, VOCAB, SYMBOLS = 8, 4, 6
"""Symbols: not written yet, four letters, and what marks the sink."""


class Sequences(BitSequence):
    """torchgfn's bit-sequence environment with eight words of two bits, scored by a table."""

    def __init__(self, log_reward: torch.Tensor) -> None:
        super().__init__(word_size=2, seq_size=2 * LENGTH, n_modes=2)
        self.table = log_reward
        self.powers = VOCAB ** torch.arange(LENGTH - 1, -1, -1)

    def log_reward(self, final_states: Any) -> torch.Tensor:
        """Log-rewards looked up by the number of each sequence."""
        return self.table[(final_states.tensor * self.powers).sum(-1)]


class OneHot(Preprocessor):
    """Preprocessor: one-hot symbols by position."""

    def __init__(self, length: int, symbols: int) -> None:
        super().__init__(output_dim=length * symbols)
        self.symbols = symbols

    def preprocess(self, states: Any) -> torch.Tensor:
        """One-hot codes of states, whose blanks are -1."""
        return torch.nn.functional.one_hot(states.tensor + 1, self.symbols).flatten(-2).float()


class TorchLoop:
    """torchgfn's trajectory balance at an environment, with its sampler and Adam."""

    def __init__(self, job: Job, env: Any, coded: OneHot) -> None:
        torch.manual_seed(job["seed"])
        self.job, self.chunk, self.env = job, max(1, job["chunk"] // 10), env
        module = MLP(coded.output_dim, env.n_actions, job["hidden"], job["layers"], activation_fn=job["activation"])
        policy = DiscretePolicyEstimator(module, env.n_actions, preprocessor=coded)
        self.model = TBGFlowNet(pf=policy, pb=None, constant_pb=True)
        groups = [
            {"params": self.model.pf_pb_parameters(), "lr": job["lr"]},
            {"params": self.model.logz_parameters(), "lr": 20 * job["lr"]},
        ]
        self.adam = torch.optim.Adam(groups)

    def advance(self) -> int:
        """Sample a batch, compute the loss and update."""
        for _ in range(self.chunk):
            batch = self.model.sample_trajectories(self.env, n=self.job["batch"], save_logprobs=True)
            self.adam.zero_grad()
            loss = self.model.loss(self.env, batch, recalculate_all_logprobs=False)
            loss.backward()
            self.adam.step()
        return self.chunk

    def memory(self) -> int:
        """0: there is no accelerator on a CPU."""
        return 0


class TorchGFN(TorchLoop):
    """torchgfn's bit sequences as DNA, scored by a table."""

    def __init__(self, job: Job) -> None:
        table = torch.from_numpy(np.load(job["table"]))
        super().__init__(job, Sequences(job["beta"] * table.log()), OneHot(LENGTH, SYMBOLS))

    @torch.no_grad()
    def law(self) -> np.ndarray:
        """Exact law of the policy network over all sequences."""
        law = torch.ones(1, dtype=torch.float64)
        for depth in range(LENGTH):
            number = torch.arange(VOCAB**depth)
            digits = [(number // VOCAB ** (depth - 1 - i)) % VOCAB for i in range(depth)]
            blanks = [torch.full_like(number, -1)] * (LENGTH - depth)
            states = torch.nn.functional.one_hot(torch.stack(digits + blanks, -1) + 1, SYMBOLS).flatten(-2).float()
            policy = self.model.pf.module(states)[:, :VOCAB].double().softmax(-1)
            law = (law[:, None] * policy).flatten()
        return law.numpy()


if __name__ == "__main__":
    serve(TorchGFN, f"torchgfn {version('torchgfn')}, torch {torch.__version__}")
