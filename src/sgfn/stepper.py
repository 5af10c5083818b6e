"""How a step is run: as it is, or captured in a CUDA graph."""

from collections.abc import Callable

import torch

from sgfn.learner import Learner


def stepper(learner: Learner) -> Callable[[], None]:
    """How to run `step` here: on a GPU with TF32 products, in a CUDA graph where it can be captured."""
    if learner.device.type != "cuda":
        return learner.step
    torch.set_float32_matmul_precision("high")
    return GraphedStep(learner) if learner.capturable else learner.step


class GraphedStep:
    """Runs the first steps eagerly (they warm the allocator up), captures one, then replays the capture."""

    WARMUP = 3

    def __init__(self, learner: Learner) -> None:
        self.learner, self.warm = learner, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream()

    def __call__(self) -> None:
        """One step."""
        if self.warm < self.WARMUP:
            self._eager()
            return
        if self.graph is None:
            self.graph = self._capture()
        self.graph.replay()

    def _eager(self) -> None:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.learner.step()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.warm += 1

    def _capture(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.learner.generator)
        with torch.cuda.graph(graph, stream=self.stream):
            self.learner.step()
        return graph
