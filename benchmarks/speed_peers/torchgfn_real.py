"""torchgfn at its append-only bit sequences, with its own reward and sampler, without noise.

On-policy with log-probabilities kept from sampling, so that nothing is evaluated twice: its fastest way.
"""

# pyright: reportMissingImports=false
import math
from importlib.metadata import version
from typing import Any

import torch
from gfn.estimators import DiscretePolicyEstimator
from gfn.gflownet import TBGFlowNet
from gfn.gym.bitSequence import BitSequence
from gfn.preprocessors import Preprocessor
from gfn.utils.modules import MLP

from benchmarks.contest import Job, serve

MODES = 60


class OneHot(Preprocessor):
    """Preprocessor: one-hot symbols by position; codes -1 (blank) and the sink's are symbols too."""

    def __init__(self, length: int, symbols: int) -> None:
        super().__init__(output_dim=length * symbols)
        self.symbols = symbols

    def preprocess(self, states: Any) -> torch.Tensor:
        """One-hot codes of states."""
        return torch.nn.functional.one_hot(states.tensor + 1, self.symbols).flatten(-2).float()


class TorchGFN:
    """torchgfn's trajectory balance, with its sampler and Adam."""

    def __init__(self, job: Job) -> None:
        torch.manual_seed(job["seed"])
        self.job, bits = job, round(math.log2(job["vocab"]))
        self.env = BitSequence(word_size=bits, seq_size=bits * job["length"], n_modes=MODES)
        features = OneHot(job["length"], job["vocab"] + 2)
        sizes = (features.output_dim, self.env.n_actions, job["hidden"], job["layers"])
        policy = DiscretePolicyEstimator(MLP(*sizes, activation_fn="relu"), self.env.n_actions, preprocessor=features)
        self.model = TBGFlowNet(pf=policy, pb=None, constant_pb=True)
        groups = [
            {"params": self.model.pf_pb_parameters(), "lr": job["lr"]},
            {"params": self.model.logz_parameters(), "lr": 20 * job["lr"]},
        ]
        self.adam = torch.optim.Adam(groups)

    def advance(self) -> int:
        """Sample a batch, compute the loss and update."""
        batch = self.model.sample_trajectories(self.env, n=self.job["batch"], save_logprobs=True)
        self.adam.zero_grad()
        loss = self.model.loss(self.env, batch, recalculate_all_logprobs=False)
        loss.backward()
        self.adam.step()
        return 1

    def memory(self) -> int:
        """0: there is no accelerator on a CPU."""
        return 0


if __name__ == "__main__":
    serve(TorchGFN, f"torchgfn {version('torchgfn')}, torch {torch.__version__}")
