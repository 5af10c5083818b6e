"""The KL family on TFBind8: `kl`, marginal, published, `eflow` and `kl-entropy`, five noise levels, two exponents.

Every run has the same budget: MLP 256 x 2, 5,000 updates of 256 trajectories, noise model learned. One command
rebuilds results/kl_family.json:

    python -m benchmarks.kl_family --device cuda --seeds 3
"""

from typing import Any

import torch

from benchmarks.common import Row, arguments, measure, rounded, spread, train_together, write_cells
from sgfn.config import TrainConfig
from sgfn.envs.laws import check_size
from sgfn.evaluation import exact
from sgfn.evaluation.metrics.samples import greedy_modes, top_k
from sgfn.learning.learner import Learner

ALPHAS, BETAS = (0.0, 0.1, 0.25, 0.5, 0.75), (3.0, 10.0)
LOOKS = 20


def entropy(gamma: float, kl: float, dynamics: float, **more: Any) -> dict[str, Any]:
    """A cell of the `kl-entropy` grid."""
    weights = {"entropy__gamma": gamma, "entropy__weight_kl": kl, "entropy__weight_dynamics": dynamics}
    return {"objective": "kl-entropy", **weights, **more}


METHODS: dict[str, dict[str, Any]] = {
    "marginal TB": {"objective": "tb"},
    "marginal DB": {"objective": "db"},
    "published TB": {"objective": "tb", "form": "published"},
    "published DB": {"objective": "db", "form": "published"},
    "kl, TB flow": {"objective": "kl"},
    "kl, DB flow": {"objective": "kl", "kl__flow": "db"},
    "eflow": {"objective": "eflow"},
    "entropy exploration": {"objective": "tb", "exploration": "entropy"},
    "entropy .5/.01/.01": entropy(0.5, 0.01, 0.01),
    "entropy .1/.1/.1": entropy(0.1, 0.1, 0.1),
    "entropy .5/.1/.1": entropy(0.5, 0.1, 0.1),
    "entropy .9/.1/.1": entropy(0.9, 0.1, 0.1),
    "entropy .5/.1/0": entropy(0.5, 0.1, 0.0),
    "entropy .5/0/.1": entropy(0.5, 0.0, 0.1),
    "entropy per-state .5/.1/.1": entropy(0.5, 0.1, 0.1, entropy__variant="per-state"),
    "entropy exponential .5/.1/.1": entropy(0.5, 0.1, 0.1, entropy__variant="exponential"),
    "entropy on published DB .5/.01/.01": entropy(0.5, 0.01, 0.01, form="published", entropy__base="db"),
    "entropy on kl .5/.01/.01": entropy(0.5, 0.01, 0.01, entropy__base="kl"),
}
"""Name -> what differs from the default; an entropy cell is named by gamma / lambda_kl / lambda_dyn."""


def configs(alpha: float, beta: float, seeds: int, steps: int) -> list[tuple[str, TrainConfig]]:
    """All methods and seeds at one noise level and exponent."""
    base = TrainConfig().with_(batch=256, steps=steps, noise__alpha=alpha, beta=beta)
    return [(name, base.with_(seed=seed, **changes)) for name, changes in METHODS.items() for seed in range(seeds)]


def sampled(trainer: Learner, law: torch.Tensor, known: exact.ReferenceLaws, seed: int) -> dict[str, Any]:
    """Top-100 and greedy modes of 2,048 draws from an exact law."""
    rows = torch.multinomial(law, 2048, replacement=True, generator=torch.Generator().manual_seed(seed))
    objects, scores = check_size(trainer.task.env).all_objects()[rows].numpy(), known.scores[rows].numpy()
    level = trainer.task.landscape.mode_level - 1e-6
    return {
        "top100_mean": top_k(objects, scores, 100).mean,
        "modes_greedy": len(greedy_modes(objects, scores, level=level)),
    }


def steps_to(curve: list[tuple[int, float]], share: float = 0.9) -> int:
    """First look at which this share of the whole improvement in TV has been made."""
    first, last = curve[0][1], curve[-1][1]
    return next(step for step, tv in curve if first - tv >= share * (first - last))


def study(alpha: float, beta: float, seeds: int, steps: int, device: str) -> list[Row]:
    """All runs of one noise level and exponent."""
    named = configs(alpha, beta, seeds, steps)
    curves: list[list[tuple[int, float]]] = [[] for _ in named]

    def look(step: int, trainers: list[Learner]) -> None:
        target = measure().of(trainers[0]).target
        for curve, trainer in zip(curves, trainers, strict=True):
            curve.append((step, exact.total_variation(trainer.law(), target)))

    every = max(1, steps // LOOKS)
    trainers, seconds = train_together("tfbind8", [config for _, config in named], torch.device(device), look, every)
    look(steps, trainers)
    print(f"alpha {alpha} beta {beta:g}: {len(named)} runs in {seconds:.0f} s", flush=True)
    rows = []
    for (name, config), trainer, curve in zip(named, trainers, curves, strict=True):
        known, law = measure().of(trainer), trainer.law()
        figures = exact.distances(law, known)
        kept = ("tv", "tv_floor", "kl", "expected_reward", "target_expected_reward", "floor_expected_reward")
        row = {name: figures[name] for name in kept} | sampled(trainer, law, known, config.seed)
        described = {"method": name, "alpha": alpha, "beta": beta, "seed": config.seed}
        rows.append({**described, **rounded(row), "steps_to_90": steps_to(curve)})
    return rows


def told(rows: list[Row]) -> None:
    """Print the medians of one noise level and exponent."""
    for name in METHODS:
        tv = spread(row["tv"] for row in rows if row["method"] == name)
        print(f"  {name}: TV %.4f [%.4f, %.4f]" % tv, f"floor {rows[0]['tv_floor']:.4f}", flush=True)


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "kl_family.json", cells=True)
    more = (args.seeds, args.steps or 5000, args.device)
    cells = {f"beta {beta:g}, alpha {alpha}": (alpha, beta, *more) for beta in BETAS for alpha in ALPHAS}
    write_cells(args, "kl_family", cells, study, told)


if __name__ == "__main__":
    main()
