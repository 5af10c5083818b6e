"""Names from elsewhere: hints for unknown flags, and docs that hold the same tables."""

from operator import attrgetter
from pathlib import Path

import pytest
from small_runs import complaint

from sgfn.config import TrainConfig
from sgfn.config.names import ELSEWHERE, hint
from sgfn.objectives.parts import BESIDE, MEANINGS

PAGE = (Path(__file__).parents[2] / "docs" / "names.md").read_text(encoding="utf-8")


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def test_the_page_holds_both_tables() -> None:
    for name, known in ELSEWHERE.items():
        assert row(f"`{name}`", f"`{known.ours}`", known.about) in PAGE
    for name, about in (MEANINGS | BESIDE).items():
        assert row(f"`{name}`", about) in PAGE
    assert row("`ll_diff`", "`loss`", "something else") not in PAGE


@pytest.mark.parametrize("name", [n for n, known in ELSEWHERE.items() if known.ours.startswith("--")])
def test_what_a_name_points_to_is_a_setting(name: str) -> None:
    flag, _, value = ELSEWHERE[name].ours[2:].partition(" ")
    config = TrainConfig()
    attrgetter(flag.replace("-", "_"))(config)
    if value:
        config.with_(**{flag.replace(".", "__").replace("-", "_"): value})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lr", "1"], "--lr is unknown: use --optim.lr (learning rate of policy and flow)"),
        (["--thought=2"], "--thought is unknown: use --thought.layers"),
        (["--reward-exp", "3"], "--reward-exp is unknown: use --beta"),
        (["--ll_diff", "1"], "--ll_diff is unknown: here it is loss"),
        (["--stick", ".1", "--lr", "1"], "--stick is unknown: use --noise.alpha"),
    ],
)
def test_flags_of_other_systems_get_a_hint(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = complaint(capsys, ["train", "grid", *words])
    assert found.startswith(said)
    assert ("; --lr is unknown" in found) == (len(words) == 4)


def test_other_words_get_none() -> None:
    assert hint("--nonsense") == hint("lr") == hint("--optim.lr") == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lr", "config: field 'lr' is unknown: use optim.lr (learning rate of policy and flow)"),
        ("reward_exp", "config: field 'reward_exp' is unknown: use beta (exponent of the reward)"),
        ("entropy_ratio", "config: field 'entropy_ratio' is unknown: use objective kl-entropy"),
        ("ll_diff", "config: field 'll_diff' is unknown: here it is loss"),
    ],
)
def test_settings_of_other_systems_get_a_hint_in_code_too(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        TrainConfig().with_(**{name: 1})
    assert str(caught.value).startswith(said)
