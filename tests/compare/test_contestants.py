"""Methods by name: each is a configuration of its own, and nothing of another is left over."""

import pytest

from sgfn.compare.contestants import CHOSEN, CONTESTANTS, contestant
from sgfn.compare.names import DEFAULT
from sgfn.config import TrainConfig
from sgfn.learning.forms import FORMS
from sgfn.learning.registry import METHODS
from sgfn.objectives import OBJECTIVES
from sgfn.objectives.registry import bases


@pytest.mark.parametrize("name", CONTESTANTS)
def test_a_name_decides_what_it_must_and_keeps_the_rest(name: str) -> None:
    base = TrainConfig().with_(steps=7, noise__alpha=0.5, net__hidden=9)
    config = contestant(base, name)
    method = CONTESTANTS[name]["method"]
    bare = base.with_(net__hidden=TrainConfig().net.hidden)
    has_network = method not in ("random", "mh")
    usual = {"entropy__base": base.entropy.base}  # what kl-entropy-on-db decides besides
    chosen = {field: getattr(base, field) for field in CHOSEN} | usual
    assert config.with_(**chosen) == (base if has_network else bare)
    base = bare
    config = contestant(base, name)
    assert set(CONTESTANTS[name]) == {*CHOSEN, *(usual if "-on-" in name else ())}
    for other in CONTESTANTS:
        plain = name.partition("-on-")[0]  # the plain name keeps the base that is configured
        assert (contestant(config, other) == config) == (other in (name, plain))


def test_every_objective_form_and_peer_has_a_name() -> None:
    forms = {form: "" if form == "marginal" else f"{form}-" for form in FORMS}
    balances = {f"{prefix}{balance}" for prefix in forms.values() for balance in bases(OBJECTIVES["kl"])}
    peers = set(METHODS) - {"gfn", "forecast"}  # a forecaster has no peers among samplers
    family = {"kl-entropy-on-db", "kl-entropy-on-kl", "published-kl-entropy", "published-kl-entropy-on-db"}
    assert set(CONTESTANTS) == balances | set(OBJECTIVES) | family | peers
    built = contestant(TrainConfig(), "published-kl-entropy-on-db")
    assert (built.objective, built.form, built.entropy.base) == ("kl-entropy", "published", "db")
    assert contestant(TrainConfig(), "published-db") == TrainConfig(objective="db", form="published")
    assert contestant(TrainConfig(), "ppo") == TrainConfig(method="ppo")
    assert set(DEFAULT) < set(CONTESTANTS)


def test_what_is_wrong_names_the_method() -> None:
    with pytest.raises(ValueError, match=r"^method 'publishd-db' is unknown: .*; did you mean 'published-db'\?$"):
        contestant(TrainConfig(), "publishd-db")
    thoughtful = TrainConfig().with_(thought__layers=1)
    assert contestant(thoughtful, "kl").thought.layers == 1
    with pytest.raises(ValueError, match=r"^method 'blind-tb': thought\.layers .*leave it out of --methods$"):
        contestant(thoughtful, "blind-tb")
