"""The trainer: rollout -> score -> objective -> update. It knows no environment by name."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.envs import histories
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Episodes, Trajectories, concatenate, tempered
from sgfn.landscapes.base import beta_at
from sgfn.landscapes.tasks import Task
from sgfn.learning import dynamics
from sgfn.learning.along import Along, Walker
from sgfn.learning.compilation import compiled
from sgfn.learning.kernels.fixed_length import AppendOnly, Lesson, Past, fits
from sgfn.learning.kernels.fixed_length_rollout import LARGEST_KEPT, Draws, KernelRoller, Walked
from sgfn.learning.kernels.layered import Layered, walking_kernel
from sgfn.learning.kernels.shared_states import Judge, share, shared_levels
from sgfn.learning.learner import Learner, seeded
from sgfn.learning.optimisation import Optimiser, schedule, step_together
from sgfn.learning.replay import Replay, chances
from sgfn.learning.rollout import LogKernel, LogPolicy, retrace, rollout
from sgfn.learning.scoring import Scorer, score, score_expected
from sgfn.learning.side_stream import Beside
from sgfn.nets.encoders import ENCODERS, MLP, sequence_of
from sgfn.nets.heads import DynamicsNet, FlowNets
from sgfn.noise import HiddenRate
from sgfn.objectives import OBJECTIVES, make_objective, reads_scores, scored_as
from sgfn.objectives.entropy import ENTROPY_METERS, entropy_figures, entropy_terms
from sgfn.objectives.scores import Scores

METERS = ("loss", "dynamics_nll", "log_reward", "length", "reward")
LARGEST_WALK = 4096
"""In general updates (see `AppendOnly` for others) a GPU is faster up to here with what its walk kept; beyond, judging
shared states once is less work."""


@dataclass(frozen=True, kw_only=True)
class Chances:
    """All that is random in a step, drawn before it."""

    draws: Draws | Walked | None
    """For rollouts of append-only sequences; others draw their own on the way."""
    replay: list[Float64[Tensor, " B"]]
    """What is recalled from the buffer, update by update."""
    fits: list[Float64[Tensor, " B"]]
    """What the noise model learns from, round by round."""


class Rest(NamedTuple):
    """What a step leaves for later: nobody waits for it before the next rollouts."""

    lesson: Lesson | None
    loss: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    log_reward: Float[Tensor, " B"]
    length: Int[Tensor, " B"]


class Trainer(Learner):
    """Networks, optimisers, buffer and random state of one run; `step` never waits for the device."""

    def __init__(self, task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> None:
        super().__init__(task, device, METERS + (ENTROPY_METERS if task.config.watches_entropy else ()))
        self.offline = None if offline is None else offline.to(device)
        if OBJECTIVES[self.config.objective].tree and not self.env.tree:
            raise ValueError(
                f"objective {self.config.objective!r} needs a tree, and {task.name} is a graph with joins: use tb or kl"
            )
        if ENCODERS[self.config.net.encoder].sequences and sequence_of(self.env) is None:
            raise ValueError(f"net.encoder {self.config.net.encoder!r} reads sequences: use mlp for {task.name}")
        self.nets, self.dynamics = self._networks()
        self.optimiser, self.dynamics_optimiser = self._optimisers()
        self.objective = make_objective(self.config)
        self.figures = torch.zeros(len(ENTROPY_METERS), device=device)  # what the newest batch says of its entropy
        self.heat = torch.ones((), device=device)  # r_gamma of the batch before, where exploration follows it
        self.terms = torch.zeros(2, device=device)
        self.steps = torch.tensor(float(self.config.steps), device=device, dtype=torch.float64)  # for schedules
        self.plan()
        self.beside: Beside | None = None
        self.kernel = walking_kernel(self.env, self.nets.encoder, device)
        self._guess_log_z()
        needs_buffer = self.config.replay.updates > 0 or self.config.dynamics.mode == "replay"
        self.buffer = Replay(self.env, self.config.replay.capacity, device) if needs_buffer else None
        self.append_only = self._append_only()
        self.quick = self.append_only
        if needs_buffer and self.kernel is not None and not self.hidden_rate:
            self.quick = None  # until steps are compiled

    def _networks(self) -> tuple[FlowNets, DynamicsNet]:
        with seeded(self.config.seed):
            thought = self.config.thought
            nets = FlowNets(self.env, scored_as(self.config), self.config.net, thought.width if thought.layers else 0)
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

    def _append_only(self) -> AppendOnly | None:
        """The way of append-only sequences of one length, where it can be gone."""
        if self.config.offline_batch > 0 or not fits(self.env, self.nets, self.config):
            return None
        table = isinstance(self.env, TabulatedEnv) and not self.task.landscape.on_host
        way = AppendOnly(self.task, self.nets, self.dynamics, (self.optimiser, self.dynamics_optimiser), table)
        if self.kernel is not None and isinstance(self.env, TabulatedEnv) and not self.hidden_rate:
            way.walk_by(self.kernel, self.env)
        way.prepare()
        return way

    @property
    def hidden_rate(self) -> bool:
        """Whether episodes have rates of their own, which tables and the kernel that reads them do not know."""
        return isinstance(self.env.noise, HiddenRate)

    @torch.no_grad()
    def _guess_log_z(self) -> None:
        """Start log Z where the first trajectories balance on average, instead of spending hundreds of steps on it."""
        judge = self.judge(self.config.batch)
        batch = self.collect(judge)[1]
        thoughts = self.thoughts(batch)
        log_kernel = self.log_kernel(batch.states[:, :-1], thoughts)
        scores = score(self.scorer(judge, thoughts), batch, scored_as(self.config), log_kernel)
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
        levels = self.levels(states.shape[0]) if states.ndim == 3 else 0
        if levels and isinstance(self.env, TabulatedEnv):
            return share(self.dynamics.log_kernel, self.env, states, levels)
        return self.dynamics.log_kernel(states)

    def kernel_along(self, batch: Trajectories) -> LogKernel:
        """log P^ for the states of one batch: what it says there, history included."""
        thoughts = self.thoughts(batch)
        return lambda states: self.log_kernel(states, thoughts)

    def actor(self) -> Walker | Layered | LogPolicy:
        """Who acts in a rollout, at the present weights: with a cache or a memory where there is one."""
        if self.nets.reads_along:
            return Walker(self.nets, self.dynamics)
        encoder = self.nets.encoder
        return Layered(self.env, encoder, self.nets.policy) if type(encoder) is MLP else self.nets.log_policy

    def levels(self, batch: int) -> int:
        """How many levels of states to judge once for all; where a kernel walks, only for large batches."""
        return 0 if self.kernel is not None and batch <= LARGEST_WALK else shared_levels(self.env, self.nets, batch)

    def judge(self, batch: int) -> FlowNets | Judge:
        """The networks as they are now, set to act for and to judge a batch of that size."""
        plain = type(self.nets.encoder) is MLP and not self.nets.reads_along
        return Judge(self.env, self.nets, self.levels(batch)) if plain else self.nets

    def scorer(self, judge: FlowNets | Judge, thoughts: Float[Tensor, "B N W"] | None) -> Scorer:
        """Who judges a batch with those thoughts: the judge, unless states are read along their trajectories."""
        return Along(self.nets, thoughts) if self.nets.reads_along else judge

    def step(self) -> None:
        """One batch of rollouts, the updates that follow from it, and the meters."""
        chances = self.chances()
        if self.beside is None:
            return self.advance(chances)
        self.beside.settle()
        return self.beside.do(self.conclude, self.begin(chances))

    def settle(self) -> None:
        """What is asked of the device from here on comes after what runs beside."""
        if self.beside is not None:
            self.beside.settle()

    def chances(self) -> Chances:
        """The random numbers of a step, in the same order however steps are run."""
        config, draws = self.config, None
        rounds = config.dynamics.rounds if config.dynamics.mode == "replay" else 0
        replay = [chances(config.replay.batch or config.batch, self.generator) for _ in range(config.replay.updates)]
        fits = [chances(config.batch, self.generator) for _ in range(rounds)]
        if self.quick is not None:
            draws = self.quick.roller.draw(config.batch, self.generator, config.explore, self.temperature)
        return Chances(draws=draws, replay=replay, fits=fits)

    def advance(self, chances: Chances) -> None:
        """A step that follows from its random numbers, but for rollouts that draw their own."""
        self.conclude(self.begin(chances))

    def begin(self, chances: Chances) -> Rest:
        """A step up to what the next rollouts depend on."""
        beta, rate = self.terms.unbind()
        own, loss, nll, lesson = self.learn(chances.draws, beta, rate)
        if self.buffer is not None:
            if lesson is not None and self.quick is not None:  # recalled batches are judged by it
                self.quick.teach(lesson, rate)
                lesson = None
            self.buffer.add(own)
            for uniform in chances.replay:
                self.recall(self.buffer.pick(uniform), beta, rate)
            for uniform in chances.fits:
                nll = self.refit(self.buffer.pick(uniform), rate)
        return Rest(lesson=lesson, loss=loss, nll=nll, log_reward=own.log_reward, length=own.length)

    def conclude(self, rest: Rest) -> None:
        """What is left of a step: the noise model's lesson, the meters and the plan."""
        if rest.lesson is not None and self.quick is not None:
            self.quick.teach(rest.lesson, self.terms[1])
        if self.optimiser.counted_later:
            self.optimiser.tick()
        self._record(rest)
        self.index += 1.0
        self.plan()

    def plan(self) -> None:
        """What the schedules say of the step to come: the reward's exponent, and the share of the learning rate."""
        beta = beta_at(self.index, self.task.beta, self.config.reward.ramp)
        self.terms.copy_(torch.stack([beta, schedule(self.index, self.steps, self.config.optim)]))

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from a saved state."""
        super().load(state)
        self.plan()

    def learn(
        self, draws: Draws | Walked | None, beta: Tensor, rate: Tensor
    ) -> tuple[Episodes, Tensor, Tensor, Lesson | None]:
        """A batch of rollouts and an update: the agent's own part, both losses, what the noise model has to learn."""
        if self.quick is not None and draws is not None:
            own, found = self.quick.learn(draws, beta, rate)
            if found.figures is not None:
                self.heed(found.figures)
            return own, found.loss, found.nll, found.lesson
        judge = self.judge(self.config.batch)
        own, batch = self.collect(judge)
        return own, *self.update(judge, own, batch, beta, rate), None

    def collect(self, judge: FlowNets | Judge) -> tuple[Trajectories, Trajectories]:
        """The agent's own trajectories, and the whole batch with its offline share."""
        config = self.config
        known = self.config.offline_batch if self.offline is not None else 0
        own = rollout(
            self.env,
            judge if isinstance(judge, Judge) else self.actor(),
            self.task.log_reward,
            batch=config.batch - known,
            generator=self.generator,
            explore=config.explore,
            temperature=self.temperature,
        )
        if self.offline is None or known == 0:
            return own, own
        if isinstance(judge, Judge):
            judge.forget()
        rows = torch.randint(self.offline.shape[0], (known,), generator=self.generator, device=self.device)
        return own, concatenate(own, self.retraced(self.offline[rows]))

    @property
    def temperature(self) -> float | Tensor:
        """Of sampling: constant, or heated by the entropy ratio of the batch before."""
        config = self.config
        return config.temperature * self.heat if config.exploration == "entropy" else config.temperature

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
        scores, raised = self.judged(self.scorer(judge, thoughts), batch, beta, log_kernel)
        loss = self.objective(scores, raised).mean()
        if self.config.dynamics.mode == "batch":
            step_together([(self.optimiser, loss), (self.dynamics_optimiser, nll)], rate)
        else:
            self.optimiser.step(loss, rate)
        if self.config.watches_entropy:
            self.watch(scores, batch)
        return loss.detach(), nll.detach()

    def recall(self, past: Past, beta: Tensor, rate: Tensor) -> None:
        """Balance objective on past trajectories: balance holds off-policy."""
        if self.quick is not None:
            return self.quick.recall(past, beta, rate)
        assert self.buffer is not None
        batch = self.buffer.rebuild(*past)
        with torch.no_grad():
            thoughts = self.thoughts(batch)
            log_kernel = self.log_kernel(batch.states[:, :-1], thoughts)
        scorer = self.scorer(self.judge(batch.valid.shape[0]), thoughts)
        return self.optimiser.step(self.balance(scorer, batch, beta, log_kernel), rate)

    def balance(self, scorer: Scorer, batch: Trajectories, beta: Tensor, log_kernel: Tensor) -> Float[Tensor, ""]:
        """Mean objective of a batch at a reward exponent."""
        return self.objective(*self.judged(scorer, batch, beta, log_kernel)).mean()

    def judged(
        self, scorer: Scorer, batch: Trajectories, beta: Tensor, log_kernel: Tensor
    ) -> tuple[Scores, Trajectories]:
        """What the objective reads: scores, and the batch at the current reward exponent."""
        raised = tempered(batch, beta)
        if reads_scores(self.config, "expected"):
            reward = lambda x: beta * self.task.log_reward(x)  # noqa: E731
            return score_expected(self.env, self.nets, batch, log_kernel, reward), raised
        return score(scorer, batch, scored_as(self.config), log_kernel), raised

    @torch.no_grad()
    def watch(self, scores: Scores, batch: Episodes) -> None:
        """Note the entropy's figures."""
        self.heed(entropy_figures(entropy_terms(scores, batch, self.config.entropy), batch))

    def heed(self, figures: Float[Tensor, " N"]) -> None:
        """Keep figures for the meters, and the ratio that the next rollout's temperature may follow."""
        self.figures.copy_(figures)
        self.heat.copy_(figures[ENTROPY_METERS.index("ratio")])

    def refit(self, past: Past, rate: Tensor) -> Tensor:
        """One round of maximum likelihood on past outcomes."""
        if self.quick is not None:
            return self.quick.refit(past, rate)
        assert self.buffer is not None
        return self.fit_dynamics(self.buffer.rebuild(*past), rate)

    def fit_dynamics(self, batch: Trajectories, rate: Tensor) -> Tensor:
        """Maximum likelihood on outcomes."""
        thoughts = self.thoughts(batch)
        log_kernel = self.dynamics.log_kernel(batch.states[:, :-1], None if thoughts is None else thoughts[:, :-1])
        nll = dynamics.negative_log_likelihood(log_kernel, batch)
        self.dynamics_optimiser.step(nll, rate)
        return nll.detach()

    def _record(self, rest: Rest) -> None:
        log_reward = rest.log_reward
        plain = [rest.loss, rest.nll, log_reward.mean(), rest.length.float().mean(), log_reward.exp().mean()]
        self.record(*plain, *(self.figures.unbind() if self.config.watches_entropy else ()))

    def readings(self) -> dict[str, Tensor]:
        """The partition function as learned."""
        return {"log_z": self.nets.log_z}

    def calibrated(self, batch: int, seed: int) -> dict[str, float | None]:
        """The noise model against the true kernel, on the policy's own trajectories."""
        generator = torch.Generator(self.device).manual_seed(seed)
        own = rollout(self.env, self.actor(), self.task.log_reward, batch=batch, generator=generator)
        with torch.no_grad():
            return {**dynamics.calibration(self.env, self.kernel_along(own), own)}

    @property
    def trajectories(self) -> int:
        """A batch more than the steps had was drawn, to guess log Z; offline ones are no environment calls."""
        return (self.done + 1) * (self.config.batch - self.config.offline_batch)

    @property
    def compilable(self) -> bool:
        """Where rollouts are append-only and scores are looked up: compiling an edit distance takes minutes."""
        return self.append_only is not None and self.append_only.rewards is not None

    def compile(self) -> None:
        """All but random numbers, and rollouts where a kernel makes them."""
        assert self.append_only is not None
        self.quick = self.append_only
        for optimiser in self.optimisers().values():
            optimiser.correct()
        if not isinstance(self.quick.roller, KernelRoller):
            self.advance = compiled(self.advance, self.device)
            return
        self.optimiser.counted_later = self.buffer is None  # one update in a step
        self.begin, self.conclude = compiled(self.begin, self.device), compiled(self.conclude, self.device)
        if self.config.batch <= LARGEST_KEPT:  # the walk leaves most of the GPU to others
            self.beside = Beside()

    @property
    def block(self) -> int:
        """A transformer holds a row for every prefix of each state."""
        return 65536 if not self.nets.reads_along else max(64, 65536 // (self.env.horizon + 1))

    def memoryless(self) -> LogPolicy | None:
        """The policy network, unless it reads thoughts."""
        return self.nets.log_policy if self.dynamics.thought is None else None

    @property
    def has_law(self) -> bool:
        """A policy with a memory has a law where every history can be followed."""
        return self.dynamics.thought is None or histories.enumerable(self.task.env)

    def law(self) -> Float[Tensor, " N"]:
        """Exact law of the current policy under the true noise, through all histories where it remembers."""
        return super().law() if self.dynamics.thought is None else self.follow().law

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

    def optimisers(self) -> dict[str, Optimiser]:
        """Of the balance, and of the noise model."""
        return {"optimiser": self.optimiser, "dynamics_optimiser": self.dynamics_optimiser}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The replay buffer, and the ratio that heats the next rollout."""
        heat = {"exploration": {"heat": self.heat}} if self.config.watches_entropy else {}
        return heat | ({} if self.buffer is None else {"buffer": self.buffer.state()})
