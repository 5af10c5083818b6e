"""Hidden-rate noise with and without a thought encoder: equal budgets, noise model learned.

Each episode draws its own slip rate from a Beta law of mean .3 and concentration 2; nobody sees it. Three tasks: `peak`
and `fork` (eight letters of two kinds), with exact laws over all histories, and `tfbind8`, whose expected score comes
from samples. `peak`: R = 3^n for n right letters. `fork`: four free letters, then a choice: B forgives (any three
letters after it have R = 1/8), A does not (R = 1 for AAA, .001 else); under the target both sides are about equally
likely. Who knows the rate can leave A to the episodes of low noise: there a memory changes which laws can be reached.

What memory can give is known beforehand, by exact laws that stand beside the runs:
- `mean rate`: the target projected on the noise of the mean rate, as if every step were on its own.
- `state`: projected on what the written letters tell of the rate, E[rate|s], which is what a noise model without a
  memory learns from its data. On its own data this is right: the law of the next letter given the letters so far is
  all that the law of whole strings is made of. On data of another policy (`explore` is the share of uniform
  intentions) it is wrong, for what letters tell of the rate depends on who intended them.
- `filter`: projected at every history on the exact Bayes filter, which is the same whoever acts; that is what a thought
  encoder can come to. Where the rate seems too high for the target it falls short, history by history.

Without a memory the networks get one more layer each, as the thought's join is one. One command rebuilds
results/thought.json on two processor cores:

    OMP_NUM_THREADS=1 python -m benchmarks.thought --device cpu
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from benchmarks.common import Row, arguments, rounded, spread, write_cells
from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv, laws
from sgfn.evaluation import exact
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import Task, make_task, sequences
from sgfn.learning.dynamics import calibration
from sgfn.learning.execution import stepper
from sgfn.learning.rollout import rollout
from sgfn.learning.trainer import Trainer
from sgfn.noise import slip_project

MEAN, CONCENTRATION = 0.3, 2.0
LENGTH, FREE, STEPS, BATCH, DRAWS, WORKERS = 8, 4, 700, 128, 131_072, 2
METHODS: dict[str, dict[str, Any]] = {
    "without": {"net__layers": 3, "dynamics__layers": 2},
    "with": {"thought__layers": 1},
}
CELLS = (
    ("fork", 0.01, "tb"),
    ("fork", 0.01, "kl"),
    ("peak", 0.01, "tb"),
    ("peak", 0.8, "tb"),
    ("tfbind8", 0.01, "tb"),
)
"""Tasks, the share of uniform intentions in the data, and the objective."""


def configuration(method: str, explore: float, objective: str, seed: int, steps: int) -> TrainConfig:
    """The shared budget, and what the method adds."""
    base = TrainConfig().with_(steps=steps, batch=BATCH, seed=seed, explore=explore, objective=objective)
    base = base.with_(net__hidden=64)
    base = base.with_(optim__lr=5e-3, dynamics__lr=5e-3)
    noise = {"noise__kind": "hidden", "noise__alpha": MEAN, "noise__concentration": CONCENTRATION}
    return base.with_(**noise, **METHODS[method])


def build(name: str, config: TrainConfig) -> Task:
    """A task by name; those with a table are this study's own."""
    if name not in TABLES:
        return make_task(name, config)
    env = sequences(config, length=LENGTH, alphabet="AB")
    landscape = TableLandscape(TABLES[name](env.all_objects() == 0), vocab=env.vocab, mode_level=0.9)
    return Task(name=name, summary="", env=env, landscape=landscape, beta=1.0, config=config)


def peak(is_a: Bool[Tensor, "N L"]) -> Float[Tensor, " N"]:
    """Rewards of the task `peak`: every A triples the reward."""
    return 3.0 ** (is_a.double().sum(-1) - LENGTH)


def fork(is_a: Bool[Tensor, "N L"]) -> Float[Tensor, " N"]:
    """Rewards of the task `fork`: after the free letters, A has one good ending, B endings as good as each other."""
    ending = is_a[:, FREE + 1 :]
    strict = torch.where(ending.all(-1), 1.0, 1e-3)
    return torch.where(is_a[:, FREE], strict, 2.0 ** -ending.shape[1]).double()


TABLES: dict[str, Callable[[Bool[Tensor, "N L"]], Float[Tensor, " N"]]] = {"peak": peak, "fork": fork}
"""Rewards of all strings, given where they have an A."""


def target_of(task: Task) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """The target, and the score of each object."""
    objects = laws.check_size(task.env).all_objects()
    return exact.target(task.log_reward(objects), task.beta), task.landscape.scores(objects).double()


def quadrature(env: SequenceEnv) -> tuple[Float[Tensor, " J"], Float[Tensor, " J"]]:
    """Nodes and weights of the quadrature over hidden rates."""
    columns = zip(*env.noise.rates(env.length + 1), strict=True)
    rate, weight = (torch.tensor(column, dtype=torch.float64) for column in columns)
    return rate, weight


def state_law(env: SequenceEnv, conditionals: dict[int, Float[Tensor, "n K"]], explore: float) -> Float[Tensor, " N"]:
    """Law of the policy that projects on the noise of E[rate|s], as data with that share of exploration tell it."""
    rate, mass = quadrature(env)
    mass, table = mass[None], {}
    for depth, conditional in sorted(conditionals.items()):
        expected = (mass * rate).sum(-1) / mass.sum(-1)
        policy = slip_project(conditional, torch.ones_like(conditional, dtype=torch.bool), expected)[0]
        table[depth] = policy
        acting = ((1.0 - explore) * policy + explore / env.vocab)[..., None]
        mass = (mass[:, None] * (acting * (1.0 - rate) + rate / env.vocab)).flatten(0, 1)
    return laws.law(env, laws.table_policy(env, table))


def filter_law(env: SequenceEnv, conditionals: dict[int, Float[Tensor, "n K"]]) -> Float[Tensor, " N"]:
    """Law of the policy that projects the target's conditionals on the Bayes filter's noise, history by history.

    How many of the past steps came out as intended is all that a history tells, so prefixes with that number suffice.
    """
    rate, prior = quadrature(env)
    slip = rate / env.vocab
    keep = 1.0 - rate + slip
    masses = {0: prior[None]}  # steps as intended -> one weight for each prefix and rate
    for depth, conditional in sorted(conditionals.items()):
        new: dict[int, Tensor] = {}
        for kept, mass in masses.items():
            weight = prior * keep**kept * slip ** (depth - kept)
            expected = float((weight * rate).sum() / weight.sum())
            policy = slip_project(conditional, torch.ones_like(conditional, dtype=torch.bool), expected)[0][..., None]
            for number, chance in ((kept + 1, policy * keep), (kept, (1.0 - policy) * slip)):
                moved = (mass[:, None] * chance).flatten(0, 1)
                new[number] = new[number] + moved if number in new else moved
        masses = new
    return torch.stack(list(masses.values())).sum((0, -1))


def references(name: str, explore: float, objective: str) -> list[dict[str, Any]]:
    """Figures of a task that are known without training."""
    task = build(name, configuration("without", explore, objective, 0, 1))
    target, scores = target_of(task)
    assert isinstance(task.env, SequenceEnv)
    _, conditionals = exact.flows(task.env, target)
    found = {
        "target": target,
        "mean rate": laws.law(task.env, exact.best_policy(task.env, conditionals)),
        "state": state_law(task.env, conditionals, explore),
        "filter": filter_law(task.env, conditionals),
    }
    where = {"task": name, "explore": explore, "objective": objective}
    return [{**where, "method": method, **rounded(distances(law, target, scores))} for method, law in found.items()]


def distances(law: Float[Tensor, " N"], target: Float[Tensor, " N"], scores: Float[Tensor, " N"]) -> dict[str, float]:
    """Exact distances of a law to the target, and its expected score."""
    tv, divergence = exact.total_variation(law, target), exact.kl(target, law)
    return {"tv": tv, "kl": divergence, "expected_score": float((law * scores).sum())}


def run(name: str, explore: float, objective: str, method: str, seed: int, steps: int, device: str) -> list[Row]:
    """Train and measure one run: exactly where its histories can be enumerated, else by samples."""
    torch.set_num_threads(1)
    trainer = Trainer(build(name, configuration(method, explore, objective, seed, steps)), torch.device(device))
    step = stepper(trainer)
    for _ in range(steps):
        step()
    trainer.check_finite()
    generator = torch.Generator(trainer.device).manual_seed(seed)
    batch = rollout(trainer.env, trainer.actor(), trainer.task.log_reward, batch=8192, generator=generator)
    with torch.no_grad():
        figures = calibration(trainer.env, trainer.general.kernel_along(batch), batch)
    if name not in TABLES:
        scores = trainer.draw(DRAWS, seed).scores
        figures |= {"sample_mean": float(scores.mean()), "sample_error": float(scores.std()) / DRAWS**0.5}
    trainer.task.landscape.to(torch.device("cpu"))
    if trainer.has_law:
        figures |= distances(trainer.law(), *target_of(trainer.task))
    described = {"task": name, "explore": explore, "objective": objective, "method": method, "seed": seed}
    return [{**described, **rounded(figures)}]


KEYS = ("tv", "kl", "expected_score", "sample_mean", "dynamics_nll", "dynamics_entropy")


def tell(rows: list[dict[str, Any]]) -> None:
    """Median and range of each figure."""
    for name, explore, objective in CELLS:
        print(f"{name}, {explore:g} of the intentions uniform, {objective}")
        for method in ("target", "mean rate", "state", "filter", *METHODS):
            cell = {"task": name, "explore": explore, "objective": objective, "method": method}
            mine = [row for row in rows if cell.items() <= row.items()]
            found = {key: [row[key] for row in mine if key in row] for key in KEYS}
            words = [f"{key} %.4f [%.4f, %.4f]" % spread(values) for key, values in found.items() if values]
            print(f"  {method}: " + "; ".join(words), flush=True)


def main() -> None:
    """Run the study, two runs at a time."""
    args = arguments(__doc__ or "", "thought.json", cells=True)
    steps = args.steps or STEPS
    known = [row for cell in CELLS for row in references(*cell)]
    runs = [(*cell, method, seed) for seed in range(args.seeds) for cell in CELLS for method in METHODS]
    cells = {str(one): (*one, steps, args.device) for one in runs}
    noise = {"kind": "hidden", "mean": MEAN, "concentration": CONCENTRATION}
    about = {"steps": steps, "batch": BATCH, "noise": noise}
    tell(write_cells(args, "thought", cells, run, first=known, jobs=WORKERS, **about))


if __name__ == "__main__":
    main()
