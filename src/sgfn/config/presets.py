"""Named recipes: complete configurations to start from; every flag still overrides."""

from sgfn.config import TrainConfig

PRESETS: dict[str, TrainConfig] = {
    "none": TrainConfig(),
    "demo": TrainConfig().with_(steps=2000, batch=256, net__layers=3, optim__lr=2e-3),
    "exact": TrainConfig().with_(
        steps=12000,
        batch=16384,
        net__hidden=512,
        net__layers=4,
        dynamics__mode="known",
        optim__lr=3e-3,
        log__every=500,
        log__exact_every=2000,
        log__checkpoint_every=6000,
    ),
    "frugal": TrainConfig().with_(
        steps=2499,  # and one batch to guess log Z: 160,000 trajectories in all
        batch=64,
        explore=0.1,
        net__hidden=512,
        net__layers=3,
        replay__capacity=160000,
        replay__updates=5,
        replay__batch=16384,
        optim__lr=3e-3,
    ),
    "forecast": TrainConfig().with_(
        method="forecast",
        steps=800,
        batch=32,
        net__encoder="transformer",
        net__hidden=64,
        net__layers=2,
        optim__lr=2e-3,
        optim__clip=1.0,
        optim__warmup=50,
        optim__final=1.0,
        log__every=25,
        log__exact_every=0,
        log__checkpoint_every=100,
    ),
    # Budgets of Pan et al. (2023), UAI; noise .1, .3, .5 (grid: .25, .5, .9) is chosen with --noise.alpha or --alphas.
    "published-tfbind8": TrainConfig().with_(steps=5000, batch=16, log__exact_every=250),
    "published-grid": TrainConfig().with_(steps=20000, batch=16, log__exact_every=1000, log__checkpoint_every=5000),
    "published-bits": TrainConfig().with_(steps=50000, batch=16, log__every=500, log__checkpoint_every=5000),
}
