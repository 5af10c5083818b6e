"""Functions are seen to read what they read; settings that are kept may be read later."""

from dataclasses import asdict, replace

import pytest

from sgfn.config import TrainConfig
from sgfn.config.reads import leaves
from sgfn.config.recording import Observed, fields_read, plain

CONFIG = TrainConfig().with_(grid__side=5, beta=2.0)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda config: None, set()),
        (lambda config: config.grid.side, {"grid.side"}),
        (lambda config: (config.beta, config.noise.alpha), {"beta", "noise.alpha"}),
        (lambda config: dict(vars(config.grid)), {"grid.ndim", "grid.side", "grid.r0", "grid.shape"}),
        (lambda config: config.grid == CONFIG.grid, {"grid.ndim", "grid.side", "grid.r0", "grid.shape"}),
        (asdict, set(leaves(CONFIG))),
    ],
)
def test_what_is_read_is_noted(function, names: set[str]) -> None:
    made, seen = fields_read(function, CONFIG)
    assert seen == names
    assert made == function(CONFIG)


def test_settings_that_are_kept_are_read_by_nobody_knows_whom() -> None:
    for keep in (lambda config: [config], lambda config: [config.grid], lambda config: lambda: config.beta):
        assert fields_read(keep, CONFIG)[1] is None
    kept, seen = fields_read(lambda config: [plain(config)], CONFIG)
    assert kept == [CONFIG]
    assert type(kept[0]) is type(CONFIG)
    assert type(kept[0].grid) is type(CONFIG.grid)
    assert seen == set()


def test_changed_copies_are_settings_as_ever() -> None:
    changed, _ = fields_read(lambda config: plain(replace(config, beta=3.0)), CONFIG)
    assert changed == CONFIG.with_(beta=3.0)
    assert changed != CONFIG
    assert fields_read(lambda config: isinstance(config, TrainConfig), CONFIG)[0]


def test_what_one_call_reads_is_added_to_the_others() -> None:
    observed = Observed()
    assert observed.fields("mine:f") is None
    for name in ("beta", "steps"):
        observed.call("mine:f", lambda config, name=name: getattr(config, name), CONFIG)
    assert observed.fields("mine:f") == {"beta", "steps"}
    observed.call("mine:f", lambda config: [config], CONFIG)
    observed.call("mine:f", lambda config: config.seed, CONFIG)
    assert observed.fields("mine:f") is None
