"""The trainer of flow networks: each step rolls out a batch and updates networks and noise model on it."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn

from sgfn.config.checks import is_ours
from sgfn.envs import histories
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Episodes, Trajectories, first_of
from sgfn.landscapes.base import Landscape, beta_at
from sgfn.landscapes.tasks import Task
from sgfn.learning import dynamics
from sgfn.learning.aim import AimedExponent, refuse_own_reward
from sgfn.learning.backend import Backend, Learned, LogRewards, Objective, Past, Setup
from sgfn.learning.compilation import compiled
from sgfn.learning.compiled import CompiledBackend
from sgfn.learning.exploration.explorer import Explorer
from sgfn.learning.exploration.registry import chosen_ways
from sgfn.learning.forms import form_entry
from sgfn.learning.general import GeneralBackend
from sgfn.learning.kernels import fixed_length
from sgfn.learning.kernels.fixed_length import FixedLengthBackend
from sgfn.learning.kernels.fixed_length_rollout import MAX_BATCH_KEEPING_SUMS, KernelSequenceRollouts
from sgfn.learning.learner import Learner, StatesDone, seeded
from sgfn.learning.optimisation import Optimiser, schedule
from sgfn.learning.replay import Replay, uniform_draws
from sgfn.learning.rollout import LogPolicy, Policy, rollout
from sgfn.learning.samplers import arranged
from sgfn.learning.scoring import score
from sgfn.learning.side_stream import SideStream
from sgfn.learning.steps import BegunStep, StepDraws, StepRemainder
from sgfn.learning.suitability import check_task
from sgfn.nets.dynamics import NoiseModel, make_noise_model
from sgfn.nets.heads import FlowNets
from sgfn.objectives import reads_scores, scored_as
from sgfn.objectives.checks import CheckedObjective
from sgfn.objectives.making import make_objective
from sgfn.objectives.registry import chain

MOST_DRAWN = 900
"""Entries of the largest kernel that is drawn."""
FEW = 4  # trajectories by which the parts of an objective are found
METERS = ("loss", "dynamics_nll", "log_reward", "length", "reward")


class Trainer(Learner):
    """Networks, optimisers, buffer and random state of one run; `step` never waits for the device.

    In place of the configured ones, `objective` may be any function of (scores, trajectories) that gives one loss per
    trajectory, and `encoder` any module from features to representations.
    """

    def __init__(
        self,
        task: Task,
        device: torch.device,
        offline: Int[Tensor, "N O"] | None = None,
        *,
        objective: Objective | None = None,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__(task, device, METERS)
        check_task(task)
        if encoder is not None and self.config.actors:
            fix = "name it as module:name in net.encoder, or leave actors out"
            raise ValueError(f"actors make networks by settings alone, and know none that is given as a module: {fix}")
        self.offline, self.encoder = None if offline is None else offline.to(device), encoder
        self.nets, self.dynamics = self._networks()
        self.optimiser, self.dynamics_optimiser = self._optimisers()
        self.part_names: tuple[str, ...] = ()
        self._first: Trajectories | None = None  # some trajectories, by which parts of an objective are found
        self.entropy_ratio = torch.ones((), device=device)  # r_gamma of the batch before, where exploration follows it
        self.schedule_values = torch.zeros(2, device=device)  # see `update_schedules`
        self.steps = torch.tensor(float(self.config.steps), device=device, dtype=torch.float64)  # for schedules
        self.aimed = self._aimed()
        self.update_schedules()
        self.side_stream: SideStream | None = None
        self.is_compiled = False
        ways = chosen_ways(self.config)
        self.explorer = Explorer(task, self.env, device) if any(way.way for way in ways) else None
        self.changes_behaviour = any(way.behaviour for way in ways)
        needs_buffer = self.config.replay.updates > 0 or self.config.dynamics.mode == "replay"
        self.buffer = Replay(self.env, self.config.replay.capacity, device) if needs_buffer else None
        self._configured = make_objective(self.config)
        self.objective = objective or self._configured
        self._guess_log_z()
        self.start_calls = 0 if self.explorer is None else self.explorer.begin(self.general, self.generator)

    # the objective, and the backends that serve it

    @property
    def objective(self) -> Objective:
        """The function of (scores, trajectories) that is minimised, one loss per trajectory."""
        return self._objective

    @objective.setter
    def objective(self, objective: Objective) -> None:
        """Use another objective from now on; one that is not the configured one is given all scores."""
        if self.is_compiled:
            raise ValueError("the objective is part of the compiled step: set it before training begins")
        self._objective = objective
        own = objective is not self._configured
        setup = Setup(
            task=self.task,
            env=self.env,
            nets=self.nets,
            noise_model=self.dynamics,
            optimiser=self.optimiser,
            noise_optimiser=self.dynamics_optimiser,
            offline=self.offline,
            objective=CheckedObjective(objective) if own else objective,
            reads_flow=own or reads_scores(self.config, "flow"),
            reads_intentions=own or self.config.watches_entropy,
            balance_terms=self._balance_terms(own),
            weighed=self.weighed,
            behaviour=self.explorer.actor if self.explorer is not None and self.changes_behaviour else None,
        )
        self.general = GeneralBackend(setup)
        self.fixed_length = self._fixed_length(setup)
        general_until_compiled = self.buffer is not None and self.general.kernel is not None and not self.hidden_rate
        chosen = self.general if self.fixed_length is None or general_until_compiled else self.fixed_length
        self.backend: Backend = arranged(chosen, setup, self.index)
        if self._first is not None:
            self._name_parts(self._first)

    def weighed(self, mean: Float[Tensor, ""], valid: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
        """A mean over the valid steps of a batch as it is: the batch is no share of a larger one."""
        return mean

    def _balance_terms(self, own: bool) -> tuple[str, ...]:
        """Terms of the balance that are logged: none where there is no balance, and none that is always zero."""
        if not own and not any(entry.balance for entry in chain(self.config)):
            return ()
        form = form_entry(scored_as(self.config))
        flows = own or reads_scores(self.config, "flow")
        noisy = form.joint_backward or not is_ours(form.scoring)
        shown = {"log_flow": flows, "log_pf": True, "log_dynamics": noisy, "log_pb": noisy or self.nets.reads_final}
        return (*(name for name, wanted in shown.items() if wanted), "end_flow")

    def _name_parts(self, batch: Trajectories, *, finite: bool = False) -> None:
        """Give every part that is logged a meter; meters of the same names go on."""
        self._first = first_of(batch, FEW)
        self.part_names = self.general.part_names(batch, self.schedule_values[0], finite=finite)
        names = (*METERS, *self.part_names)
        if names != self.meter_names:
            self.meter_names, self.meters = names, torch.zeros(len(names) + 1, device=self.device)

    def _fixed_length(self, setup: Setup) -> FixedLengthBackend | None:
        """The backend for sequences of one length, where it fits and no GPU kernel makes whole rollouts without it."""
        if self.changes_behaviour or self.general.sequences is not None or not fixed_length.fits(setup):
            return None
        backend = FixedLengthBackend(setup)
        if self.general.kernel is not None and isinstance(self.env, TabulatedEnv) and not self.hidden_rate:
            backend.use_rollout_kernel(self.general.kernel, self.env)
        backend.prepare()
        return backend

    def _networks(self) -> tuple[FlowNets, NoiseModel]:
        with seeded(self.config.seed):
            thought, form = self.config.thought, form_entry(scored_as(self.config))
            width = thought.width if thought.layers else 0
            nets = FlowNets(
                self.env,
                self.config.net,
                width,
                self.encoder,
                joint_backward=form.joint_backward,
                outcome_policy=form.outcome_policy,
            )
            model = make_noise_model(self.env, self.config.dynamics, thought)
        return nets.to(self.device), model.to(self.device)

    def _optimisers(self) -> tuple[Optimiser, Optimiser]:
        optim, model = self.config.optim, self.config.dynamics
        body = [
            p for p in self.nets.parameters() if p.requires_grad and p is not self.nets.log_z
        ]  # none that is frozen
        groups = [(body, optim.lr), ([self.nets.log_z], optim.lr * optim.log_z_factor)]
        noise = [(list(self.dynamics.parameters()), model.lr * self.dynamics.rate_factor)]
        return Optimiser(groups, optim.clip, self.device), Optimiser(noise, model.clip, self.device)

    def _aimed(self) -> AimedExponent | None:
        """What finds the reward exponent while training; None where it is given."""
        config, landscape = self.config, self.task.landscape
        if config.aim is None:
            return None
        refuse_own_reward(type(landscape).log_reward is Landscape.log_reward, self.task.name)
        level = (config.aim, self.task.beta, config.reward.norm, config.steps)
        return AimedExponent(*level, shape=landscape.score_transform).to(self.device)

    @property
    def exponent(self) -> float:
        """The reward exponent of the target: as given, or as found so far."""
        return super().exponent if self.aimed is None else float(self.aimed.beta)

    @property
    def hidden_rate(self) -> bool:
        """Whether each episode has its own noise rate, which tables and the rollout kernel cannot represent."""
        return self.env.noise.has_hidden_rate

    @torch.no_grad()
    def _guess_log_z(self) -> None:
        """Initialise log Z so that a first batch balances on average, instead of spending hundreds of steps on it."""
        general, beta = self.general, beta_at(self.index, self.task.beta, self.config.reward.ramp)
        states = general.state_scorer(self.config.batch)
        batch = general.collect(states, general.draw(self.generator, self.temperature))[1]
        thoughts = general.thoughts(batch)
        kernel = general.noise_kernel(batch.states[:, :-1], thoughts)
        scorer = general.scorer(states, thoughts)
        scores = score(scorer, batch, scored_as(self.config), kernel)
        steps = (scores.log_pf + scores.log_dynamics - scores.log_pb).sum(1)
        self.nets.log_z.copy_((beta * batch.log_reward - steps).mean())
        own = isinstance(general.setup.objective, CheckedObjective)  # called once before training, with a whole batch
        self._name_parts(batch if own else first_of(batch, FEW), finite=own)

    # steps

    def step(self) -> None:
        """Roll out a batch, update on it, and record the meters."""
        draws = self.draws()
        if self.side_stream is None:
            return self.advance(draws)
        self.side_stream.settle()
        return self.side_stream.do(self.finish, self.update(draws))

    def settle(self) -> None:
        """Make the device wait for the work on the side stream."""
        if self.side_stream is not None:
            self.side_stream.settle()

    def draws(self) -> StepDraws:
        """Random numbers of a step, drawn in the same order however steps are run."""
        config = self.config
        rounds = config.dynamics.rounds if config.dynamics.mode == "replay" else 0
        size = config.replay.batch or config.batch
        replay = [uniform_draws(size, self.generator) for _ in range(config.replay.updates)]
        refits = [uniform_draws(config.dynamics.batch or config.batch, self.generator) for _ in range(rounds)]
        if self.explorer is not None and self.backend.extends:
            self.backend.extra = self.explorer.leave()
        rollouts = self.backend.draw(self.generator, self.temperature)
        return StepDraws(rollouts=rollouts, replay=replay, refits=refits)

    def advance(self, draws: StepDraws) -> None:
        """Run a step, given its random numbers: `update`, then `finish`."""
        self.finish(self.update(draws))

    def update(self, draws: StepDraws) -> StepRemainder:
        """Roll out, update policy and flow (also on replayed batches); returns the rest of the step for `finish`."""
        return self._updated(draws, *self.backend.learn(draws.rollouts, *self.schedule_values.unbind()))

    def begin_step(self) -> BegunStep:
        """Draw the random numbers of a step, and roll out its batch."""
        draws = self.draws()
        return BegunStep(draws=replace(draws, rollouts=None), batch=self.backend.begin(draws.rollouts))

    def score_step(self, begun: BegunStep) -> LogRewards:
        """Log-rewards of the batch of a step: the only part of it that may leave the device."""
        return self.backend.log_rewards(begun.batch)

    def complete_step(self, begun: BegunStep, log_rewards: LogRewards) -> None:
        """Do the rest of a step, given the log-rewards of its batch."""
        found = self.backend.complete(begun.batch, log_rewards, *self.schedule_values.unbind())
        self.finish(self._updated(begun.draws, *found))

    def _updated(self, draws: StepDraws, own: Episodes, found: Learned) -> StepRemainder:
        """What follows the update on the agent's own batch: that of the noise model, and updates on past batches."""
        beta, rate = self.schedule_values.unbind()
        if found.parts is not None and "r_gamma" in self.part_names:  # for the temperature of the next rollouts
            self.entropy_ratio.copy_(found.parts[self.part_names.index("r_gamma")])
        pending, nll = found.pending, found.noise_loss
        if pending is not None and (self.buffer is not None or self.explorer is not None):
            self.backend.update_noise_model(pending, rate)  # past batches are scored by the noise model as it is then
            pending = None
        if self.buffer is not None:
            self.buffer.add(own)
        if self.explorer is not None:
            self._explore(self.explorer, own, beta)
        if self.buffer is not None:
            for uniform in draws.replay:
                self.backend.relearn(self._past(self.buffer, uniform, beta), beta, rate)
            for uniform in draws.refits:
                nll = self.backend.refit_noise_model(self.buffer.pick(uniform), rate)
        return StepRemainder(pending, found.loss, nll, own.log_reward, own.length, found.parts)

    def _explore(self, explorer: Explorer, own: Episodes, beta: Float[Tensor, ""]) -> None:
        """Let the ways to explore learn from a batch, and keep the trajectories that they add to it."""
        for more in explorer.advance(own, self.general, beta, self.generator):
            if self.buffer is not None:
                self.buffer.add(more)

    def _past(self, buffer: Replay, uniform: Float64[Tensor, " B"], beta: Float[Tensor, ""]) -> Past:
        """Past trajectories for an update: uniformly from the buffer, unless a way to explore picks others."""
        if self.explorer is None:
            return buffer.pick(uniform)
        return self.explorer.pick(len(uniform), buffer, self.general, beta, self.generator)

    def finish(self, rest: StepRemainder) -> None:
        """Do the rest of a step: update the noise model, record the meters and advance the schedules."""
        if rest.pending is not None:
            self.backend.update_noise_model(rest.pending, self.schedule_values[1])
        if self.optimiser.caller_advances_count:
            self.optimiser.advance_count()
        self._record(rest)
        if self.aimed is not None:
            self.aimed.update(rest.log_reward, self.index)
        self.index += 1.0
        self.update_schedules()

    def update_schedules(self) -> None:
        """Compute the next step's reward exponent and factor of the learning rates, into `schedule_values`."""
        beta = self.aimed.beta if self.aimed is not None else self._ramped()
        self.schedule_values.copy_(torch.stack([beta, schedule(self.index, self.steps, self.config.optim)]))

    def _ramped(self) -> Float[Tensor, ""]:
        return beta_at(self.index, self.task.beta, self.config.reward.ramp)

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from a saved state; one of an older version does not tell all that exploration remembers."""
        memory = {} if self.explorer is None else self.explorer.memory()
        newer = [("archive", "news"), ("way-local", "worked"), *(("first", name) for name in memory.get("first", ()))]
        super().load({f"{part}.{name}": memory[part][name] for part, name in newer if part in memory} | state)
        self.backend.resume()
        self.update_schedules()

    @property
    def temperature(self) -> float | Tensor:
        """Temperature of sampling: constant, or multiplied by the entropy ratio of the batch before."""
        config = self.config
        return config.temperature * self.entropy_ratio if "entropy" in config.explorations else config.temperature

    def _record(self, rest: StepRemainder) -> None:
        log_reward = rest.log_reward
        plain = [rest.loss, rest.nll, log_reward.mean(), rest.length.float().mean(), log_reward.exp().mean()]
        self.record(*plain, *(() if rest.parts is None else rest.parts.unbind()))

    def readings(self) -> dict[str, Tensor]:
        """The reward exponent, log Z as learned, unless the objective tells another, and what ways to explore found."""
        found = {"beta": self.schedule_values[0]} | ({} if self.explorer is None else self.explorer.found())
        found |= self.backend.readings()
        return found if "log_z" in self.part_names else {"log_z": self.nets.log_z} | found

    def live(self) -> dict[str, float]:
        """What the backend tells of this moment."""
        return self.backend.live()

    def close(self) -> None:
        """End processes of the backend and of the task's rewards."""
        self.backend.close()
        super().close()

    def calibrated(self, batch: int, seed: int) -> dict[str, Any]:
        """Kind of the noise model, its likelihood and distance from the true kernel on the policy's trajectories."""
        generator = torch.Generator(self.device).manual_seed(seed)
        own = rollout(self.env, self.actor(), self.task.log_reward, batch=batch, generator=generator)
        kind = "known" if self.config.dynamics.mode == "known" else self.dynamics.kind
        with torch.no_grad():
            return {"dynamics_model": kind, **dynamics.calibration(self.env, self.general.kernel_along(own), own)}

    def kernels(self, batch: int, seed: int) -> dict[str, list[list[float | None]]] | None:
        """Mean true and learned noise by intention; None where the kernel is known, or too large for a picture."""
        if self.config.dynamics.mode == "known" or self.env.actions * self.env.outcomes > MOST_DRAWN:
            return None
        generator = torch.Generator(self.device).manual_seed(seed)
        with torch.no_grad():
            own = rollout(self.env, self.actor(), self.task.log_reward, batch=batch, generator=generator)
            return dynamics.mean_kernels(self.env, self.general.kernel_along(own), own)

    @property
    def why_no_law(self) -> str:
        """Why the law of a policy with memory is not to be had; empty where it is."""
        count = histories.count(self.task.env)
        most = histories.MAX_HISTORIES
        return "" if self.has_law else f"the policy remembers, and {count:.3g} histories are more than {most:,}"

    @property
    def trajectories(self) -> int:
        """Environment calls so far, with one batch for the first log Z; offline trajectories are not counted."""
        own = (self.done + 1) * (self.config.batch - self.config.offline_batch)
        return own if self.explorer is None else own + self.done * self.explorer.proposals + self.start_calls

    @property
    def capturable(self) -> bool:
        """Whether a step may be captured in a CUDA graph: not where a way to explore waits for the device."""
        return super().capturable and self.explorer is None and self.backend.alone

    @property
    def halves(self) -> bool:
        """Whether the host scores nothing but a batch's objects (eflow has it score children), between two halves."""
        plain = self.explorer is None and self.backend.alone and not self.general.reads_expected
        return plain and self.task.landscape.on_host and self.parts_are_ours

    @property
    def parts_are_ours(self) -> bool:
        """Whether environment, noise, objective and encoder are of this package: capture would freeze others."""
        named = self._objective is self._configured and ":" not in f"{self.config.objective}{self.config.form}"
        return named and all(map(is_ours, (self.task.env, self.task.env.noise, self.nets.encoder)))

    # compiling

    @property
    def compilable(self) -> bool:
        """Whether a step can be compiled: ways to explore and rewards of all children (eflow) are not part of one."""
        plain = self.explorer is None and not self.general.reads_expected
        return plain and self.backend.alone and self.optimiser.reduce is None

    @property
    def scores_in_table(self) -> bool:
        """Whether sequences have one length and scores are in a table, so that the whole step is compiled as one."""
        return self.fixed_length is not None and self.fixed_length.rewards is not None

    def compile(self) -> None:
        """Compile a step but for its random numbers, for rewards that are computed, and for rollouts by a GPU kernel.

        Raises `NotCompilableError`, with nothing changed, where a part of the user's own cannot be compiled.
        """
        if not self.scores_in_table or self.fixed_length is None:
            backend = CompiledBackend(self.general, rounded=self.rounds_products)
            backend.try_out(self.generator, self.temperature, self.schedule_values[0])
            self.backend, self.finish = backend, compiled(self.finish, self.device)
        self.is_compiled = True
        for optimiser in self.optimisers().values():
            optimiser.update_bias_corrections()
        if isinstance(self.backend, CompiledBackend):
            return
        assert self.fixed_length is not None
        self.backend = self.fixed_length
        if not isinstance(self.fixed_length.roller, KernelSequenceRollouts):
            self.advance = compiled(self.advance, self.device)
            return
        self.optimiser.caller_advances_count = self.buffer is None  # one update in a step
        self.update, self.finish = compiled(self.update, self.device), compiled(self.finish, self.device)
        if self.config.batch <= MAX_BATCH_KEEPING_SUMS:  # the kernel leaves most of the GPU to others
            self.side_stream = SideStream()

    # policies, laws and checkpoints

    def actor(self) -> Policy:
        """The actor of a rollout at the present weights, with a cache or a memory where the policy has one."""
        return self.general.actor()

    @property
    def block(self) -> int:
        """States scored at once outside of training: a transformer holds a row for every prefix of each."""
        return 65536 if not self.nets.reads_along else max(64, 65536 // (self.env.horizon + 1))

    def state_policy(self) -> LogPolicy | None:
        """The policy network; None where it depends on the history."""
        return self.nets.log_policy if self.dynamics.thought is None else None

    @property
    def has_law(self) -> bool:
        """Whether `law` works: for a policy with memory, whether all histories can be enumerated."""
        return self.dynamics.thought is None or histories.enumerable(self.task.env)

    def law(self, told: StatesDone | None = None) -> Float[Tensor, " N"]:
        """Exact law of the current policy under the true noise; of one with memory by enumerating all histories."""
        return super().law(told) if self.dynamics.thought is None else self.enumerate_histories().law

    def enumerate_histories(self) -> histories.Histories:
        """Law of the policy and likelihood of the noise model, over all histories of the task."""
        return histories.enumerate_histories(self.task.env, self.history_policy)

    @torch.no_grad()
    def history_policy(
        self, states: Int[Tensor, "N S"], intended: Int[Tensor, "N t"], realised: Int[Tensor, "N t"]
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N A K"]]:
        """pi(.|s, history) and log P^(.|s,a, history) of raw states, in blocks."""
        found = []
        for rows in torch.arange(states.shape[0]).split(self.block):
            state = self.env.embed(states[rows]).to(self.device)
            thoughts = self.dynamics.thoughts(intended[rows].to(self.device), realised[rows].to(self.device))
            thought = None if thoughts is None else thoughts[:, -1]
            policy = self.nets.log_policy_of(self.nets.represent(state), state, thought).exp()
            kernel = self.general.noise_kernel(state) if thought is None else self.dynamics.operator(state, thought)
            found.append((policy.cpu().double(), kernel.log_matrix().cpu().double()))
        policies, kernels = zip(*found, strict=True)
        return torch.cat(policies), torch.cat(kernels)

    def modules(self) -> dict[str, nn.Module]:
        """Networks by name, and the reward exponent where it is found while training."""
        found: dict[str, nn.Module] = {"nets": self.nets, "dynamics": self.dynamics}
        found |= {} if self.aimed is None else {"exponent": self.aimed}
        return found | ({} if self.explorer is None else self.explorer.modules())

    def optimisers(self) -> dict[str, Optimiser]:
        """Optimisers by name: of the balance, and of the noise model."""
        more = {} if self.explorer is None else self.explorer.optimisers()
        return {"optimiser": self.optimiser, "dynamics_optimiser": self.dynamics_optimiser} | more

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The replay buffer, and the entropy ratio for the next temperature (`exploration.heat` in checkpoints)."""
        ratio = {"exploration": {"heat": self.entropy_ratio}} if self.config.watches_entropy else {}
        explored = {} if self.explorer is None else self.explorer.memory()
        kept = ratio | ({} if self.buffer is None else {"buffer": self.buffer.state()}) | explored
        return kept | self.backend.memory()
