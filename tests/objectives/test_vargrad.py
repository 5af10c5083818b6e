"""VarGrad on a long sequence with a sharp reward: its loss falls where that of trajectory balance rises first."""

import sgfn

VALUES = "1.8 -4.5 -3.5 -3.5 2.5 -3.5 -3.5 -0.4 -3.2 4.5 3.8 -3.9 1.9 2.8 -1.6 -0.8 -0.7 -0.9 -1.3 4.2"
HYDROPATHY = dict(zip("ARNDCQEGHILKMFPSTWYV", map(float, VALUES.split()), strict=True))
"""Kyte and Doolittle (1982), J. Mol. Biol. 157:105."""


def mean_hydropathy(texts: list[str]) -> list[float]:
    return [sum((HYDROPATHY[letter] + 4.5) / 9 for letter in text) / len(text) for text in texts]


def losses(objective: str) -> list[float]:
    """The logged losses of a short run on 50 residues at exponent 100, under noise."""
    env = sgfn.Sequences("ACDEFGHIKLMNPQRSTVWY", 50, noise=0.1)
    small = {"net__hidden": 32, "net__layers": 1, "optim__warmup": 5, "optim__lr": 3e-3, "log__every": 5}
    model = sgfn.fit(
        env, reward=mean_hydropathy, objective=objective, beta=100, steps=50, batch=32, seed=0, progress=False, **small
    )
    return model.metrics["loss"].tolist()


def test_its_loss_does_not_rise_on_a_protein_at_exponent_100() -> None:
    found = losses("vargrad")
    assert max(found) < 1.5 * found[0]
    assert found[-1] < 0.3 * found[0]
    balance = losses("tb")  # has to learn log Z while the policy moves: what the other is for
    assert balance[-1] > 2 * balance[0]
