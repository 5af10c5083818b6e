"""Every example's main is called."""

from examples.own_landscape import main

from sgfn.config import TrainConfig


def test_own_landscape_learns() -> None:
    config = TrainConfig().with_(batch=64, net__hidden=64, noise__alpha=0.2, optim__lr=3e-3)
    tv, floor = main(config.with_(steps=200))
    untrained, _ = main(config.with_(steps=1))
    assert tv < floor + 0.1
    assert untrained > floor + 0.2
