"""The trainer: rollout -> score -> objective -> update. It knows no environment by name."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn import dynamics, exact, histories
from sgfn.entropy import ENTROPY_METERS, entropy_figures, entropy_terms
from sgfn.envs.tabulated import TabulatedEnv, tabulate
from sgfn.landscapes.base import beta_at
from sgfn.nets.along import Along, Walker
from sgfn.nets.encoders import sequence_of
from sgfn.nets.heads import DynamicsNet, FlowNets
from sgfn.nets.shared import Judge, share, shared_levels
from sgfn.objectives import make_objective
from sgfn.optim import Optimiser, schedule
from sgfn.replay import Replay
from sgfn.rollout import LogKernel, LogPolicy, retrace, rollout
from sgfn.scoring import Scorer, score, score_expected
from sgfn.tasks import Task
from sgfn.trajectories import Scores, Trajectories, concatenate

METERS = ("loss", "dynamics_nll", "log_reward", "length", "reward")


class NonFiniteError(RuntimeError):
    """The loss or a weight stopped being a number."""


class Trainer:
    """Networks, optimisers, buffer and random state of one run; `step` never waits for the device."""

    def __init__(self, task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> None:
        self.task, self.config, self.device = task, task.config, device
        self.env = tabulate(task.env, device)
        task.landscape.to(device)
        self.offline = None if offline is None else offline.to(device)
        if self.config.objective == "eflow" and not self.env.tree:
            raise ValueError(f"objective 'eflow' needs a tree, and {task.name} is a graph with joins: use tb or kl")
        if self.config.net.encoder == "transformer" and sequence_of(self.env) is None:
            raise ValueError(f"net.encoder 'transformer' reads sequences: use mlp for {task.name}")
        self.nets, self.dynamics = self._networks()
        self.optimiser, self.dynamics_optimiser = self._optimisers()
        self.objective = make_objective(self.config)
        self.generator = torch.Generator(device).manual_seed(self.config.seed)
        self.index = torch.zeros(
            (), device=device, dtype=torch.float64
        )  # the step's number, where the schedules can see it
        self.meter_names = METERS + (ENTROPY_METERS if self.config.watches_entropy else ())
        self.meters = torch.zeros(len(self.meter_names) + 1, device=device)
        self.figures = torch.zeros(len(ENTROPY_METERS), device=device)  # what the newest batch says of its entropy
        self.heat = torch.ones((), device=device)  # r_gamma of the batch before, where exploration follows it
        self.done = 0
        self._guess_log_z()
        needs_buffer = self.config.replay.updates > 0 or self.config.dynamics.mode == "replay"
        self.buffer = Replay(self.env, self.config.replay.capacity, device) if needs_buffer else None

    def _networks(self) -> tuple[FlowNets, DynamicsNet]:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.config.seed)  # of the CPU alone: a GPU keeps the caller's state
            thought = self.config.thought
            nets = FlowNets(self.env, self.config.scored_as, self.config.net, thought.width if thought.layers else 0)
            model = DynamicsNet(self.env, self.config.dynamics, thought)
        return nets.to(self.device), model.to(self.device)

    def _optimisers(self) -> tuple[Optimiser, Optimiser]:
        optim, model = self.config.optim, self.config.dynamics
        body = [p for name, p in self.nets.named_parameters() if name != "log_z"]
        groups = [(body, optim.lr), ([self.nets.log_z], optim.lr * optim.log_z_factor)]
        return (
            Optimiser(groups, optim.clip, self.device),
            Optimiser([(list(self.dynamics.parameters()), model.lr)], model.clip, self.device),
        )

    @torch.no_grad()
    def _guess_log_z(self) -> None:
        """Start log Z where the first trajectories balance on average, instead of spending hundreds of steps on it."""
        judge = self.judge(self.config.batch)
        batch = self.collect(judge)[1]
        thoughts = self.thoughts(batch)
        log_kernel = self.log_kernel(batch.states[:, :-1], thoughts)
        scores = score(self.scorer(judge, thoughts), batch, self.config.scored_as, log_kernel)
        steps = (scores.log_pf + scores.log_dynamics - scores.log_pb).sum(1)
        beta = beta_at(self.index, self.task.beta, self.config.reward.ramp)
        self.nets.log_z.copy_((beta * batch.log_reward - steps).mean())

    def thoughts(self, batch: Trajectories) -> Float[Tensor, "B N W"] | None:
        """What the history before each state tells; None where nobody remembers."""
        return self.dynamics.thoughts(batch.intended, batch.realised)

    def log_kernel(
        self, states: Int[Tensor, "*batch S"], thoughts: Float[Tensor, "B N W"] | None = None
    ) -> Float[Tensor, "*batch A K"]:
        """log P^ at the states: known, or learned; of whole trajectories where it remembers."""
        if self.config.dynamics.mode == "known":
            return dynamics.log_known(self.env, states)
        if thoughts is not None:
            return self.dynamics.log_kernel(states, thoughts[:, : states.shape[1]])
        levels = shared_levels(self.env, self.nets, states.shape[0]) if states.ndim == 3 else 0
        if levels and isinstance(self.env, TabulatedEnv):
            return share(self.dynamics.log_kernel, self.env, states, levels)
        return self.dynamics.log_kernel(states)

    def kernel_along(self, batch: Trajectories) -> LogKernel:
        """log P^ for the states of one batch: what it says there, history included."""
        thoughts = self.thoughts(batch)
        return lambda states: self.log_kernel(states, thoughts)

    def actor(self) -> Walker | LogPolicy:
        """Who acts in a rollout, at the present weights: with a cache or a memory where there is one."""
        return Walker(self.nets, self.dynamics) if self.nets.reads_along else self.nets.log_policy

    def judge(self, batch: int) -> FlowNets | Judge:
        """The networks as they are now, set to judge a batch of that size."""
        levels = shared_levels(self.env, self.nets, batch)
        return Judge(self.env, self.nets, levels) if isinstance(self.env, TabulatedEnv) and levels else self.nets

    def scorer(self, judge: FlowNets | Judge, thoughts: Float[Tensor, "B N W"] | None) -> Scorer:
        """Who judges a batch with those thoughts: the judge, unless states are read along their trajectories."""
        return Along(self.nets, thoughts) if self.nets.reads_along else judge

    def step(self) -> None:
        """One batch of rollouts, the updates that follow from it, and the meters."""
        config = self.config
        beta = beta_at(self.index, self.task.beta, config.reward.ramp)
        rate = schedule(self.index, config.steps, config.optim)
        judge = self.judge(config.batch)
        own, batch = self.collect(judge)
        loss, nll = self.update(judge, own, batch, beta, rate)
        if self.buffer is not None:
            self.buffer.add(own)
            for _ in range(config.replay.updates):
                self.update_from(self.buffer, beta, rate)
            if config.dynamics.mode == "replay":
                for _ in range(config.dynamics.rounds):
                    nll = self.fit_dynamics(self.buffer.sample(config.batch, self.generator), rate)
        self._record(own, loss, nll)
        self.index += 1.0

    def collect(self, judge: FlowNets | Judge) -> tuple[Trajectories, Trajectories]:
        """The agent's own trajectories, and the whole batch with its offline share."""
        config = self.config
        known = self.config.offline_batch if self.offline is not None else 0
        own = rollout(
            self.env,
            judge.policies() if isinstance(judge, Judge) else self.actor(),
            self.task.log_reward,
            batch=config.batch - known,
            generator=self.generator,
            explore=config.explore,
            temperature=config.temperature * self.heat if config.exploration == "entropy" else config.temperature,
        )
        if self.offline is None or known == 0:
            return own, own
        rows = torch.randint(self.offline.shape[0], (known,), generator=self.generator, device=self.device)
        return own, concatenate(own, self.retraced(self.offline[rows]))

    def retraced(self, goals: Int[Tensor, "N O"]) -> Trajectories:
        """Known objects as trajectories, with intentions from the posterior at the present weights."""
        actor, log_kernel = self.actor(), self.log_kernel
        if isinstance(actor, Walker) and self.dynamics.thought is not None:
            log_kernel = actor.log_kernel
        return retrace(self.env, goals, actor, log_kernel, self.task.log_reward, self.generator)

    def update(
        self, judge: FlowNets | Judge, own: Trajectories, batch: Trajectories, beta: Tensor, rate: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Balance objective on the whole batch; in `batch` mode the dynamics model learns from the agent's own part."""
        with torch.set_grad_enabled(self.config.dynamics.mode == "batch"):
            thoughts = self.thoughts(batch)
            log_kernel = self.log_kernel(batch.states[:, :-1], thoughts)
            nll = dynamics.negative_log_likelihood(log_kernel[: own.valid.shape[0]], own)
        scores, tempered = self.judged(self.scorer(judge, thoughts), batch, beta, log_kernel)
        loss = self.objective(scores, tempered).mean()
        self.optimiser.step(loss, rate)
        if self.config.watches_entropy:
            self.watch(scores, batch)
        if self.config.dynamics.mode == "batch":
            self.dynamics_optimiser.step(nll, rate)
        return loss.detach(), nll.detach()

    def update_from(self, buffer: Replay, beta: Tensor, rate: Tensor) -> None:
        """Balance objective on past trajectories: balance holds off-policy."""
        batch = buffer.sample(self.config.replay.batch or self.config.batch, self.generator)
        with torch.no_grad():
            thoughts = self.thoughts(batch)
            log_kernel = self.log_kernel(batch.states[:, :-1], thoughts)
        scorer = self.scorer(self.judge(batch.valid.shape[0]), thoughts)
        self.optimiser.step(self.balance(scorer, batch, beta, log_kernel), rate)

    def balance(self, scorer: Scorer, batch: Trajectories, beta: Tensor, log_kernel: Tensor) -> Float[Tensor, ""]:
        """Mean objective of a batch at a reward exponent."""
        return self.objective(*self.judged(scorer, batch, beta, log_kernel)).mean()

    def judged(
        self, scorer: Scorer, batch: Trajectories, beta: Tensor, log_kernel: Tensor
    ) -> tuple[Scores, Trajectories]:
        """What the objective reads: scores, and the batch at the current reward exponent."""
        tempered = replace(batch, log_reward=beta * batch.log_reward)
        if self.config.objective == "eflow":
            reward = lambda x: beta * self.task.log_reward(x)  # noqa: E731
            return score_expected(self.env, self.nets, batch, log_kernel, reward), tempered
        return score(scorer, batch, self.config.scored_as, log_kernel), tempered

    @torch.no_grad()
    def watch(self, scores: Scores, batch: Trajectories) -> None:
        """Note the entropy's figures, and the ratio that the next rollout's temperature may follow."""
        self.figures.copy_(entropy_figures(entropy_terms(scores, batch, self.config.entropy), batch))
        self.heat.copy_(self.figures[ENTROPY_METERS.index("ratio")])

    def fit_dynamics(self, batch: Trajectories, rate: Tensor) -> Tensor:
        """One round of maximum likelihood on past outcomes."""
        thoughts = self.thoughts(batch)
        log_kernel = self.dynamics.log_kernel(batch.states[:, :-1], None if thoughts is None else thoughts[:, :-1])
        nll = dynamics.negative_log_likelihood(log_kernel, batch)
        self.dynamics_optimiser.step(nll, rate)
        return nll.detach()

    def _record(self, own: Trajectories, loss: Tensor, nll: Tensor) -> None:
        length = own.length.float().mean()
        reward = own.log_reward.exp().mean()
        values = [loss, nll, own.log_reward.mean(), length, reward, torch.ones_like(loss)]
        plain = torch.stack([v.to(torch.float32) for v in values])
        self.meters += torch.cat([plain[:-1], self.figures, plain[-1:]]) if self.config.watches_entropy else plain

    def read_meters(self) -> dict[str, float]:
        """Means since the last reading; raises if training has left the finite numbers."""
        *sums, count = self.meters.tolist()
        self.meters.zero_()
        means = {name: value / max(count, 1.0) for name, value in zip(self.meter_names, sums, strict=True)}
        means["log_z"] = float(self.nets.log_z.detach())
        if not all(math.isfinite(v) for v in means.values()):
            self._complain(means["loss"])
        self.check_finite()
        return means

    def check_finite(self) -> None:
        """Raise if a weight is not a number any more."""
        weights = [*self.nets.parameters(), *self.dynamics.parameters()]
        if not bool(torch.stack([p.isfinite().all() for p in weights]).all()):
            self._complain(float("nan"))

    def _complain(self, loss: float) -> NoReturn:
        raise NonFiniteError(
            f"training left the finite numbers near step {self.done} (loss {loss:g}); "
            "the last good checkpoint, if any, is kept: lower --optim.lr or --beta, or raise --reward.minimum"
        )

    @torch.no_grad()
    def policy(self, states: Int[Tensor, "N S"]) -> Float[Tensor, "N A"]:
        """Probabilities for the exact evaluation, in blocks."""
        blocks = states.split(self.block)
        return torch.cat(
            [self.nets.log_policy(self.env.embed(block).to(self.device)).exp().cpu() for block in blocks]
        ).double()

    @property
    def block(self) -> int:
        """States judged at once outside of training; a transformer holds a row for every prefix of each."""
        return 65536 if not self.nets.reads_along else max(64, 65536 // (self.env.horizon + 1))

    @property
    def has_law(self) -> bool:
        """Whether `law` can be had on an enumerable task: a policy with a memory has a law for each history."""
        return self.dynamics.thought is None or histories.enumerable(self.task.env)

    def law(self) -> Float[Tensor, " N"]:
        """Exact law of the current policy under the true noise."""
        if self.dynamics.thought is not None:
            return self.follow().law
        if isinstance(self.env, TabulatedEnv):
            rows = torch.arange(self.env.num_states, device=self.device)[:, None]
            with torch.no_grad():
                policy = torch.cat([self.nets.log_policy(block).exp() for block in rows.split(self.block)])
                return self.env.law(policy).cpu()
        return exact.law(self.task.env, self.policy)

    def follow(self) -> histories.Histories:
        """The law and the noise model's likelihood over every history of the task."""
        return histories.follow(self.task.env, self.believe)

    @torch.no_grad()
    def believe(
        self, states: Int[Tensor, "N S"], intended: Int[Tensor, "N t"], realised: Int[Tensor, "N t"]
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N A K"]]:
        """pi(.|s, history) and log P^(.|s,a, history), in blocks."""
        found = []
        for rows in torch.arange(states.shape[0]).split(self.block):
            state = self.env.embed(states[rows]).to(self.device)
            thoughts = self.dynamics.thoughts(intended[rows].to(self.device), realised[rows].to(self.device))
            thought = None if thoughts is None else thoughts[:, -1]
            policy = self.nets.log_policy_of(self.nets.represent(state), state, thought).exp()
            log_kernel = self.log_kernel(state) if thought is None else self.dynamics.log_kernel(state, thought)
            found.append((policy.cpu().double(), log_kernel.cpu().double()))
        policies, kernels = zip(*found, strict=True)
        return torch.cat(policies), torch.cat(kernels)

    def modules(self) -> dict[str, torch.nn.Module]:
        """Networks by name."""
        return {"nets": self.nets, "dynamics": self.dynamics}

    def state(self) -> dict[str, Tensor]:
        """Everything the next step depends on, as named tensors."""
        parts: dict[str, dict[str, Tensor]] = {name: m.state_dict() for name, m in self.modules().items()}
        parts["optimiser"], parts["dynamics_optimiser"] = self.optimiser.state(), self.dynamics_optimiser.state()
        parts["buffer"] = {} if self.buffer is None else self.buffer.state()
        parts["self"] = {
            "index": self.index,
            "meters": self.meters,
            "heat": self.heat,
            "done": torch.tensor(self.done),
            "cuda": torch.tensor(self.device.type == "cuda"),
            "generator": self.generator.get_state(),
        }
        return {f"{part}.{name}": value.detach() for part, named in parts.items() for name, value in named.items()}

    def load_networks(self, state: dict[str, Tensor]) -> None:
        """Weights alone: enough to sample and to evaluate."""
        for name, module in self.modules().items():
            module.load_state_dict(_part(state, name))

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from a saved state."""
        part = partial(_part, state)
        self.load_networks(state)
        if int(part("self")["cuda"]) != (self.device.type == "cuda"):
            there = "cuda" if self.device.type == "cpu" else "cpu"
            raise ValueError(f"the run was trained on {there}: continue it with --device {there}")
        moved = {
            name: {k: v.to(self.device) for k, v in part(name).items()} for name in ("optimiser", "dynamics_optimiser")
        }
        self.optimiser.load(moved["optimiser"])
        self.dynamics_optimiser.load(moved["dynamics_optimiser"])
        kept, saved = {} if self.buffer is None else self.buffer.state(), part("buffer")
        if {name: v.shape for name, v in kept.items()} != {name: v.shape for name, v in saved.items()}:
            raise RuntimeError("the replay buffer differs")
        for name, value in saved.items():
            kept[name].copy_(value)
        mine = part("self")
        self.index.copy_(mine["index"])
        self.meters.copy_(mine["meters"])
        if "heat" in mine:  # runs from before exploration could follow the entropy have none
            self.heat.copy_(mine["heat"])
        self.done = int(mine["done"])
        self.generator.set_state(mine["generator"].cpu())


def _part(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a part's name."""
    return {key.partition(".")[2]: value for key, value in state.items() if key.startswith(name + ".")}


def stepper(trainer: Trainer) -> Callable[[], None]:
    """How to run `step` here: on a GPU with TF32 products, in a CUDA graph unless scores come from the host."""
    if trainer.device.type != "cuda":
        return trainer.step
    torch.set_float32_matmul_precision("high")
    return trainer.step if trainer.task.landscape.on_host else GraphedStep(trainer)


class GraphedStep:
    """Runs the first steps eagerly (they warm the allocator up), captures one, then replays the capture."""

    WARMUP = 3

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.warm = trainer, 0
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
            self.trainer.step()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.warm += 1

    def _capture(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.trainer.generator)
        with torch.cuda.graph(graph, stream=self.stream):
            self.trainer.step()
        return graph
