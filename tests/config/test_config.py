"""Every field is checked, named with its range, and survives a trip through JSON."""

import json
import math
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn import config as module
from sgfn.config import OfflineConfig, OptimConfig, TrainConfig, from_dict, to_dict
from sgfn.config.checks import _slips, in_range, nearest, one_of
from sgfn.config.presets import PRESETS
from sgfn.learning.forms import FORMS
from sgfn.objectives import OBJECTIVES

# Field: values just inside, values just outside.
EDGES: dict[str, tuple[list[Any], list[Any]]] = {
    "subtb_lambda": ([0.0, 2.0], [-1e-9, 2.01]),
    "beta": ([0.0, 1000.0], [-1e-9, 1000.1]),
    "aim": ([1e-30, 1e9], [0.0, -1.0]),
    "steps": ([1, 10**9], [0, 10**9 + 1, 10**400]),
    "batch": ([1, 10**7], [0, 10**7 + 1]),
    "seed": ([0, 2**31 - 1], [-1, 2**31]),
    "explore": ([0.0, 0.999], [-1e-9, 1.0]),
    "temperature": ([1e-3, 1e3], [0.0, 1000.1]),
    "noise__alpha": ([0.0, 0.999], [-1e-9, 1.0]),
    "noise__concentration": ([0.1, 1e6], [0.09, 1.1e6]),
    "noise__substitution": ([0.0, 0.999], [-1e-9, 1.0]),
    "noise__deletion": ([0.0, 0.999], [-1e-9, 1.0]),
    "noise__insertion": ([0.0, 0.999], [-1e-9, 1.0]),
    "noise__scale": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "noise__spare": ([0, 1000], [-1, 1001]),
    "grid__ndim": ([1, 16], [0, 17]),
    "grid__side": ([2, 4096], [1, 4097]),
    "motif__length": ([1, 512], [0, 513]),
    "bits__length": ([8, 512], [7, 513]),
    "bits__k": ([1, 8], [0, 9]),
    "bits__modes": ([1, 10000], [0, 10001]),
    "bits__seed": ([0, 2**31 - 1], [-1, 2**31]),
    "series__horizon": ([1, 4096], [-1, 0, 4097]),
    "series__context": ([0, 16384], [-1, 16385]),
    "series__season": ([0, 100_000], [-1, 100_001]),
    "series__cycles": ([1, 1000], [0, 1001]),
    "series__bins": ([2, 4096], [1, 4097]),
    "series__smooth": ([0.0, 1e3], [-1e-9, 1001.0]),
    "series__deviation": ([0.0, 1e9], [-1e-9]),
    "series__dropout": ([0.0, 0.999], [-1e-9, 1.0]),
    "series__hide": ([0.0, 0.999], [-1e-9, 1.0]),
    "series__members": ([1, 256], [0, 257]),
    "series__folds": ([0, 2, 1000], [-1, 1001]),
    "series__check": ([1, 10**9], [0, 10**9 + 1]),
    "series__patience": ([1, 10**9], [0, 10**9 + 1]),
    "series__average": ([0.0, 0.999], [-1e-9, 1.0]),
    "series__recall": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "series__refresh": ([0.0, 0.999], [-1e-9, 1.0]),
    "series__spare": ([0, 10**9], [-1, 10**9 + 1]),
    "ehrlich__vocab": ([3, 62], [2, 63]),
    "ehrlich__length": ([1, 512], [0, 513]),
    "ehrlich__motifs": ([1, 512], [0, 513]),
    "ehrlich__motif_length": ([1, 512], [0, 513]),
    "ehrlich__quantisation": ([1, 512], [0, 513]),
    "ehrlich__seed": ([0, 2**31 - 1], [-1, 2**31]),
    "rna__length": ([1, 512], [0, 513]),
    "rna__workers": ([1, 256], [0, 257]),
    "table__decay": ([0.0, 1.0], [-1e-9, 1.1]),
    "callable__length": ([1, 512], [0, 513]),
    "callable__min_length": ([1, 8], [0, 9]),
    "callable__retries": ([0, 100], [-1, 101]),
    "callable__workers": ([1, 4096], [0, 4097]),
    "callable__timeout": ([0.0, 1e7], [-1e-9, 2e7]),
    "ahead": ([0, 1000], [-1, 1001]),
    "actors": ([0, 4096], [-1, 4097]),
    "actors_lag": ([0, 10**6], [-1, 10**6 + 1]),
    "proxy__folds": ([2, 100], [1, 101]),
    "proxy__seed": ([0, 2**31 - 1], [-1, 2**31]),
    "callable__maximum": ([0.0, 1e30], [-1e-9]),
    "callable__mode_level": ([0.0, 1e30], [-1e-9]),
    "reward__minimum": ([1e-30, 1e30], [0.0]),
    "reward__norm": ([1e-30, 1e30], [0.0, -1.0]),
    "reward__ramp": ([0.0, 1e30], [-1e-9]),
    "net__hidden": ([1, 65536], [0, 65537]),
    "net__layers": ([1, 64], [0, 65]),
    "net__heads": ([1, 1024], [0, 1025]),
    "rl__temperature": ([0.0, 1e3], [-1e-9, 1001.0]),
    "rl__trace": ([0.0, 1.0], [-1e-9, 1.1]),
    "rl__value_weight": ([0.0, 1e3], [-1e-9, 1001.0]),
    "rl__epochs": ([1, 1000], [0, 1001]),
    "rl__clip": ([1e-3, 1.0], [1e-4, 1.1]),
    "rl__updates": ([1, 1000], [0, 1001]),
    "rl__average": ([1e-6, 1.0], [0.0, 1.1]),
    "chain__keep": ([1, 10**7], [0, 10**7 + 1]),
    "chain__learn": ([0.0, 10.0], [-1e-9, 10.1]),
    "chain__floor": ([1e-3, 1.0], [1e-4, 1.1]),
    "chain__successes": ([1, 10**7], [0, 10**7 + 1]),
    "thought__layers": ([0, 64], [-1, 65]),
    "thought__width": ([1, 65536], [0, 65537]),
    "thought__heads": ([1, 1024], [0, 1025]),
    "dynamics__hidden": ([1, 65536], [0, 65537]),
    "dynamics__layers": ([1, 64], [0, 65]),
    "dynamics__lr": ([0.0, 10.0], [-1e-9, 10.1]),
    "dynamics__clip": ([0.0, 1e30], [-1e-9]),
    "dynamics__rounds": ([1, 1000], [0, 1001]),
    "dynamics__batch": ([0, 10**7], [-1, 10**7 + 1]),
    "kl__weight": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "entropy__gamma": ([0.001, 0.999], [0.0, 1.0]),
    "entropy__quantile": ([0.5, 1.0], [0.49, 1.01]),
    "entropy__rate_high": ([0.0, 20.0], [-1e-9, 20.1]),
    "entropy__rate_low": ([0.0, 20.0], [-1e-9, 20.1]),
    "entropy__weight_kl": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "entropy__weight_dynamics": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "constraints__max_run": ([1, 512], [0, 513]),
    "constraints__max_mutations": ([0, 512], [-1, 513]),
    "constraints__min_length": ([1, 512], [0, 513]),
    "constraints__max_length": ([1, 512], [0, 513]),
    "replay__capacity": ([1, 10**9], [0, 10**9 + 1]),
    "replay__updates": ([0, 10000], [-1, 10001]),
    "replay__batch": ([0, 10**7], [-1, 10**7 + 1]),
    "offline__share": ([0.0], [-1e-9, 1.0]),
    "grid__r0": ([0.0, 1.0], [-1e-9, 1.1]),
    "archive__capacity": ([1, 10**7], [0, 10**7 + 1]),
    "archive__share": ([0.0, 1.0], [-1e-9, 1.01]),
    "local__count": ([1, 10**7], [0, 10**7 + 1]),
    "local__rounds": ([1, 10**4], [0, 10**4 + 1]),
    "local__rebuilt": ([0.0, 1.0], [-1e-9, 1.01]),
    "surprise__candidates": ([2, 1000], [1, 1001]),
    "surprise__share": ([0.0, 1.0], [-1e-9, 1.01]),
    "novelty__weight": ([0.0, 1e3], [-1e-9, 1.1e3]),
    "novelty__hidden": ([1, 65536], [0, 65537]),
    "novelty__lr": ([0.0, 10.0], [-1e-9, 10.1]),
    "thompson__heads": ([1, 64], [0, 65]),
    "thompson__prior": ([0.0, 100.0], [-1e-9, 100.1]),
    "thompson__hidden": ([1, 65536], [0, 65537]),
    "thompson__lr": ([0.0, 10.0], [-1e-9, 10.1]),
    "teacher__share": ([0.0, 1.0], [-1e-9, 1.01]),
    "teacher__boost": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "teacher__mix": ([0.0, 10.0], [-1e-9, 10.1]),
    "teacher__hidden": ([1, 65536], [0, 65537]),
    "teacher__lr": ([0.0, 10.0], [-1e-9, 10.1]),
    "optim__lr": ([0.0, 10.0], [-1e-9, 10.1]),
    "optim__log_z_factor": ([0.0, 1e6], [-1e-9, 1.1e6]),
    "optim__clip": ([0.0, 1e30], [-1e-9]),
    "optim__warmup": ([0, 10**9], [-1, 10**9 + 1]),
    "optim__final": ([0.0, 1.0], [-1e-9, 1.01]),
    "log__every": ([1, 10**12], [0, -5]),
    "log__exact_every": ([0, 10**12], [-1]),
    "log__checkpoint_every": ([1, 10**12], [0]),
}
LITERALS = {
    "motif__score": "bst",
    "bits__distance": "haming",
    "dynamics__model": "shred",
    "rna__mode": "bnd",
    "table__scale": "minmx",
    "table__transform": "lgo",
    "callable__on_error": "rety",
    "table__duplicates": "maen",
    "table__unseen": "neares",
    "net__activation": "rleu",
    "dynamics__mode": "bach",
    "grid__shape": "deceptiv",
    "entropy__variant": "quantil",
    "series__dataset": "birhts",
    "series__reference": "seasn",
    "series__scaling": "siz",
    "series__noise": "knwon",
    "series__effort": "bset",
}


def leaves(cls: type, prefix: str = "") -> dict[str, Any]:
    """Name and type of every field that is not itself a component."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(cls).items():
        found |= leaves(hint, f"{name}__") if is_dataclass(hint) else {prefix + name: hint}
    return found


def wrong_values() -> list[tuple[str, Any]]:
    cases = [(name, value) for name, (_, outside) in EDGES.items() for value in outside]
    floats = [name for name, (inside, _) in EDGES.items() if isinstance(inside[0], float)]
    return cases + [(name, value) for name in floats for value in (math.nan, math.inf, -math.inf)]


def test_every_field_is_covered_here() -> None:
    kinds = leaves(TrainConfig)
    literals = {name for name, hint in kinds.items() if get_origin(hint) is Literal}
    assert set(LITERALS) == literals
    others = {name for name, hint in kinds.items() if hint in (bool, str, str | None, Path | None)}
    assert set(EDGES) == kinds.keys() - literals - others
    assert len(kinds) > len(fields(TrainConfig))


@pytest.mark.parametrize(
    ("name", "value"), wrong_values(), ids=lambda v: v if isinstance(v, str) else f"{v:g}" if abs(v) < 1e99 else "huge"
)
def test_a_value_out_of_range_is_named_with_the_range(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name.replace('__', '.')} must lie in \[") as caught:
        TrainConfig().with_(**{name: value})
    text = str(caught.value)
    assert text.endswith(f"got {value}")
    low, high = (float(edge) for edge in re.findall(r"[\[ ]([\d.e+-]+|inf)[,\])]", text)[:2])
    assert not (low <= value <= high and math.isfinite(value)) or (text.count(")") == 1 and value == high)
    for inside in EDGES[name][0]:  # the neighbours inside pass, and the message agrees with them
        assert low <= inside <= high * (1 + 1e-5)  # six digits are shown
        TrainConfig().with_(**{name: inside})


def test_in_range_by_hand() -> None:
    in_range("x", 1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"^x must lie in \[0, 1\), got 1\.0$"):
        in_range("x", 1.0, 0.0, 1.0, open_high=True)
    with pytest.raises(ValueError, match=r"^x must lie in \[1, inf\), got 0$"):
        in_range("x", 0, 1)


@pytest.mark.parametrize("name", LITERALS)
def test_an_unknown_choice_suggests_the_nearest(name: str) -> None:
    """Behind the type checker, which the command line and a run folder do not have in front."""
    part, _, inner = name.rpartition("__")
    config = getattr(TrainConfig(), part) if part else TrainConfig()
    allowed = get_args(leaves(TrainConfig)[name])
    broken = object.__new__(type(config))
    for key, value in (vars(config) | {inner: LITERALS[name]}).items():
        object.__setattr__(broken, key, value)
    with pytest.raises(ValueError, match="is unknown: choose from") as caught:
        broken.__post_init__()
    assert str(caught.value).startswith(name.replace("__", "."))
    assert all(choice in str(caught.value) for choice in allowed)
    assert re.search(r"did you mean '(\w+)'\?$", str(caught.value))[1] in allowed
    object.__setattr__(broken, inner, allowed[-1])
    broken.__post_init__()


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    with pytest.raises(ValueError, match=r"^task 'xyz' is unknown: choose from grid, words$"):
        one_of("task", "xyz", ["grid", "words"])
    one_of("task", "grid", ["grid", "words"])


changes = st.fixed_dictionaries(
    {
        "objective": st.sampled_from(list(OBJECTIVES)),
        "form": st.sampled_from(list(FORMS)),
        "beta": st.none() | st.floats(0.0, 1000.0),
        "steps": st.integers(1, 10**9),
        "explore": st.floats(0.0, 1.0, exclude_max=True),
        "noise__alpha": st.floats(0.0, 1.0, exclude_max=True),
        "net__activation": st.sampled_from(["relu", "gelu", "silu"]),
        "dynamics__mode": st.sampled_from(["batch", "replay", "known"]),
        "offline": st.tuples(st.sampled_from([Path("a.csv"), Path("/b/é.txt")]), st.just(0.0) | st.floats(0.05, 0.5)),
        "table__file": st.none() | st.just(Path("/b/t.csv")),
        "callable__function": st.none() | st.just("scores:affinity"),
        "callable__min_length": st.none() | st.integers(1, 8),
        "motif__factor": st.sampled_from(["CTCF", "FOS::JUN"]),
        "optim__warmup": st.integers(0, 10**9),
        "optim__clip": st.floats(0.0, 1e300),
    }
)


@PROPERTY
@given(changes=changes)
def test_a_configuration_survives_json(changes: dict[str, Any]) -> None:
    file, share = changes["offline"]
    config = TrainConfig().with_(**changes | {"offline": OfflineConfig(file=file, share=share)})
    data = json.loads(json.dumps(to_dict(config)))
    assert from_dict(TrainConfig, data) == config
    data["steps"] = config.steps % 10**9 + 1
    assert from_dict(TrainConfig, data) != config


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"stepz": 1}, r"^config: field 'stepz' is unknown: .*did you mean 'steps'\?$"),
        ({"noise": {"alfa": 0.1}}, r"^config\.noise: field 'alfa' is unknown: .*did you mean 'alpha'\?$"),
        ({"steps": "5"}, r"^config\.steps must be a whole number, got '5'$"),
        ({"steps": 5.0}, r"^config\.steps must be a whole number, got 5\.0$"),
        ({"steps": True}, r"^config\.steps must be a whole number, got True$"),
        ({"steps": None}, r"^config\.steps must be a whole number, got None$"),
        ({"beta": True}, r"^config\.beta must be a number or None, got True$"),
        ({"beta": "3"}, r"^config\.beta must be a number or None, got '3'$"),
        ({"objective": 3}, r"^config\.objective must be a text, got 3$"),
        ({"objective": ["tb"]}, r"^config\.objective must be a text, got \['tb'\]$"),
        ({"net": {"activation": "rleu"}}, r"^config\.net\.activation 'rleu' is unknown.*'relu'\?$"),
        ({"offline": {"file": 3}}, r"^config\.offline\.file must be the path of a file or None, got 3$"),
        ({"motif": {"factor": 3}}, r"^config\.motif\.factor must be a text, got 3$"),
        ({"callable": {"function": 3}}, r"^config\.callable\.function must be a text or None, got 3$"),
        ({"noise": 3}, r"^config\.noise must be an object, got int$"),
        ({"log": None}, r"^config\.log must be an object, got NoneType$"),
        ([1], r"^config must be an object, got list$"),
        ({"noise": {"alpha": math.nan}}, r"^noise\.alpha must lie in \[0, 1\), got nan$"),
        ({"seed": -1}, r"^seed must lie in \[0, "),
    ],
)
def test_wrong_data_is_named(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_dict(TrainConfig, data)
    assert from_dict(TrainConfig, {"noise": {"alpha": 0}, "beta": 2}) == TrainConfig().with_(noise__alpha=0.0, beta=2.0)


def test_with_reaches_into_components_and_leaves_the_rest() -> None:
    base = TrainConfig().with_(noise__alpha=0.1, steps=7)
    changed = base.with_(optim__lr=0.5, optim__clip=0.0, seed=3)
    assert (changed.optim.lr, changed.optim.clip, changed.seed) == (0.5, 0.0, 3)
    assert (changed.noise.alpha, changed.steps, changed.optim.warmup) == (0.1, 7, base.optim.warmup)
    assert (base.optim.lr, base.seed) == (1e-3, 0)
    whole = base.with_(optim=OptimConfig(warmup=5), optim__final=1.0)
    assert (whole.optim.warmup, whole.optim.final, whole.optim.lr) == (5, 1.0, 1e-3)
    with pytest.raises(ValueError, match=r"^config: field 'optim\.clipp' is unknown: .*did you mean 'optim\.clip'\?$"):
        base.with_(optim__clipp=1.0)
    with pytest.raises(ValueError, match=r"^config: field 'stepz' is unknown: .*did you mean 'steps'\?$"):
        base.with_(stepz=1)
    with pytest.raises(ValueError, match=r"^config: field 'optimiser' is unknown: .*did you mean 'optim'\?$"):
        base.with_(optimiser__lr=1.0)
    with pytest.raises(ValueError, match=r"^config: field 'steps' is unknown"):
        base.with_(steps__lr=1.0)
    for name, value in (("steps", "ten"), ("steps", 10.5), ("seed", True), ("noise__alpha", "x"), ("steps", None)):
        with pytest.raises(ValueError, match=rf"^{name.replace('__', '.')} must be .*, got "):
            base.with_(**{name: value})
    with pytest.raises(ValueError, match=r"^optim\.lr must"):
        base.with_(optim__lr=-1.0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hiden", "'net.hidden' or 'dynamics.hidden' or 'novelty.hidden'"),
        ("lrs", "'optim.lr' or 'dynamics.lr' or 'novelty.lr'"),  # not 'rl', which is as near
        ("gamma", "'entropy.gamma'"),
    ],
)
def test_a_field_of_a_component_is_suggested_with_it(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"^config: field '{name}' is unknown; did you mean {said}\?$"):
        TrainConfig().with_(**{name: 1})


SLIPS = {
    "hiden": "hidden",
    "stepz": "steps",
    "lenght": "length",
    "HIDDEN": "hidden",
    "len": "length",
    "zteps": "steps",
    "chian": "",
    "epochs": "",
    "rn": "",
    "": "",
    "x" * 10_000: "",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_name_is_suggested_only_when_it_is_near(slip: str) -> None:
    assert nearest(slip, ["steps", "hidden", "length", "gamma"]) == SLIPS[slip]


@PROPERTY
@given(st.text(max_size=8), st.text(max_size=8))
def test_slips_are_a_distance(one: str, other: str) -> None:
    found = _slips(one, other)
    assert found == _slips(other, one)
    assert (found == 0) == (one == other)
    assert abs(len(one) - len(other)) <= found <= max(len(one), len(other))
    if one:
        assert _slips(one, one[1:]) == _slips(one, one + "x") == 1
    if len(one) > 1 and one[0] != one[1]:
        assert _slips(one, one[1] + one[0] + one[2:]) == 1


@pytest.mark.parametrize("kind", [None, "hidden", "indel"])
def test_a_preset_after_json_is_a_preset_before_it(kind: str | None) -> None:
    config = TrainConfig() if kind is None else TrainConfig().with_(noise__kind=kind)
    read = from_dict(TrainConfig, json.loads(json.dumps(to_dict(config))))
    preset = {"noise__preset": "storage-erlich"}
    assert read.with_(**preset).noise == config.with_(**preset).noise
    assert read.with_(**preset).noise.kind == (kind or "indel")


def test_a_kind_beside_a_preset_in_json_was_given() -> None:
    preset = {"preset": "storage-erlich"}
    assert from_dict(TrainConfig, {"noise": {"kind": "uniform"} | preset}).noise.kind == "uniform"
    assert from_dict(TrainConfig, {"noise": preset}).noise.kind == "indel"


def test_presets_equal_the_config() -> None:
    assert set(PRESETS) == set(get_args(module.Preset))
    assert PRESETS["none"] == TrainConfig()
    assert len({json.dumps(to_dict(config)) for config in PRESETS.values()}) == len(PRESETS)
    for config in PRESETS.values():
        assert from_dict(TrainConfig, to_dict(config)) == config
