"""A pool of proxies: a mixture of its kinds in equal parts, of the good kinds alone, saved and read again."""

from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch.testing import assert_close

from sgfn.landscapes.proxies import PROXIES, Proxy, fit_proxy
from sgfn.landscapes.proxies.base import FittedModel, TrainingSet
from sgfn.landscapes.proxies.fitting import fold_numbers, training_set
from sgfn.landscapes.proxies.pool import WITHIN, Pool, pool_of

TEXTS = ["".join(letters) for letters in product("ACGT", repeat=4)][::6]


def scores() -> np.ndarray:
    return np.array([text.count("A") + 2.0 * (text[0] == text[2]) for text in TEXTS])


@pytest.fixture(scope="module")
def data() -> TrainingSet:
    found, _ = training_set(TEXTS, scores(), None, np.ones(len(TEXTS)), "ACGT", None)
    return TrainingSet(**{**vars(found), "fold": fold_numbers(len(TEXTS), 5, 0)})


@pytest.fixture(scope="module")
def parts(data: TrainingSet) -> dict[str, FittedModel]:
    with torch.no_grad():
        return {kind: PROXIES[kind].fit(data) for kind in ("ridge", "gp")}


def test_a_pool_is_a_mixture_in_equal_parts(data: TrainingSet, parts: dict[str, FittedModel]) -> None:
    found = Pool({kind: one.model for kind, one in parts.items()})
    with torch.no_grad():
        mean, sd = found.moments(data.tokens)
        (one, one_sd), (other, other_sd) = (part.model.moments(data.tokens) for part in parts.values())
        assert_close(mean, (one + other) / 2)
        second = (one_sd**2 + one**2 + other_sd**2 + other**2) / 2
        assert_close(sd, (second - mean**2).sqrt(), rtol=1e-5, atol=1e-7)
        assert_close(found.mean(data.tokens), mean, rtol=1e-5, atol=1e-5)
        drawn = found.draws(data.tokens)
        assert_close(drawn, torch.cat([part.model.draws(data.tokens) for part in parts.values()]))


def test_a_kind_that_predicts_much_worse_is_left_out(data: TrainingSet, parts: dict[str, FittedModel]) -> None:
    error = {kind: float((data.targets - one.mean).square().mean().sqrt()) for kind, one in parts.items()}
    best = min(error, key=lambda kind: error[kind])
    scaled = {}
    for factor in (0.999 * WITHIN, 1.001 * WITHIN):
        wrong = data.targets + factor * (parts[best].mean - data.targets)
        worse = FittedModel(model=parts[best].model, mean=wrong, sd=parts[best].sd)
        model = pool_of({"gp": parts[best], "ridge": worse}, data).model
        assert isinstance(model, Pool)
        scaled[factor] = [*model.models]
    assert [*scaled.values()] == [["gp", "ridge"], ["gp"]]


def test_a_pool_is_saved_and_read_again_and_holds_no_code() -> None:
    found = fit_proxy(TEXTS, scores(), alphabet="ACGT", kind="pool", seed=1)
    again = Proxy.from_tensors(load(save(found.to_tensors())))
    assert again.kind == "pool"
    np.testing.assert_allclose(again.predict(TEXTS).mean, found.predict(TEXTS).mean, rtol=1e-6)
    np.testing.assert_allclose(again.members(TEXTS), found.members(TEXTS), rtol=1e-5, atol=1e-6)
    state = found.model.state()
    for kind in ("os:system", "pool", "nothing"):
        forged = {**state, "kinds": torch.tensor(list(kind.encode()), dtype=torch.uint8)}
        with pytest.raises(ValueError, match="a pool holds no"):
            Pool.restore(forged, "ACGT")
