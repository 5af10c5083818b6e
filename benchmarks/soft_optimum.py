"""Where entropy-regularised reinforcement learning ends, exactly: its optimum's law against the target, on TFBind8.

One command rebuilds results/soft_optimum.json; nothing is trained:

    python -m benchmarks.soft_optimum --device cpu
"""

from benchmarks.common import Row, arguments, write_cells
from sgfn.config import TrainConfig
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.landscapes.tasks import make_task

ALPHAS = (0.0, 0.1, 0.25, 0.3, 0.5)
TEMPERATURES = tuple(round(0.1 * tenths, 1) for tenths in range(1, 11))


def optima(alpha: float) -> list[Row]:
    """Rows of one noise level at every temperature."""
    task, rows = make_task("tfbind8", TrainConfig().with_(noise__alpha=alpha)), list[Row]()
    env, known = laws.check_size(task.env), reference(task)
    log_reward = task.beta * task.log_reward(env.all_objects()).double()
    for temperature in TEMPERATURES:
        table = exact.soft_policy(env, log_reward, temperature)
        figures = exact.distances(laws.law(env, laws.table_policy(env, table)), known)
        kept = {name: round(figures[name], 5) for name in ("tv", "tv_floor", "expected_reward")}
        rows.append({"alpha": alpha, "temperature": temperature, **kept})
    return rows


def main() -> None:
    """Every noise level at every temperature."""
    args = arguments(__doc__ or "", "soft_optimum.json", cells=True)
    write_cells(args, "soft_optimum", {f"alpha {alpha}": (alpha,) for alpha in ALPHAS}, optima)


if __name__ == "__main__":
    main()
