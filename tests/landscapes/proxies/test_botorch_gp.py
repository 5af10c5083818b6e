"""BoTorch's Gaussian process as a proxy: where the extra is missing one line says so, else figures are its own."""

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from safetensors.torch import load, save

from sgfn.landscapes.proxies import Proxy, fit_proxy

TEXTS = ["".join(letters) for letters in product("ACGT", repeat=3)][::2]
SCORES = np.array([text.count("A") + 2.0 * (text[0] == text[2]) for text in TEXTS])


@pytest.mark.skipif(find_spec("botorch") is not None, reason="the extra is installed")
def test_without_the_extra_one_line_names_it() -> None:
    with pytest.raises(
        ValueError, match=r"proxy 'botorch' needs botorch; install it with pip install 'sgfn\[gp\]', or"
    ):
        fit_proxy(TEXTS, SCORES, alphabet="ACGT", kind="botorch")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("botorch") is None, reason="needs the extra gp")
def test_predictions_out_of_fold_draws_and_what_is_saved() -> None:
    found = fit_proxy(TEXTS, SCORES, alphabet="ACGT", kind="botorch", folds=4)
    assert found.report.spearman > 0.5
    drawn = found.members(TEXTS)
    assert drawn.shape == (15, len(TEXTS))
    np.testing.assert_allclose(found.members(TEXTS[:5]), drawn[:, :5], rtol=1e-6)  # the same functions in every call
    assert np.abs(drawn.mean(0) - found.predict(TEXTS).mean).max() < 3 * drawn.std(0).max()
    again = Proxy.from_tensors(load(save(found.to_tensors())))
    np.testing.assert_allclose(again.predict(TEXTS).mean, found.predict(TEXTS).mean)
    np.testing.assert_allclose(again.members(TEXTS), drawn)
