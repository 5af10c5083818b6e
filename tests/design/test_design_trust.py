"""A folder of somebody else's rounds runs no code that only it names, and opens no file beside it."""

import itertools
import json
import shutil
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest
from strange_runs import Payload

from sgfn.cli import main
from sgfn.config import registry
from sgfn.design.designer import Designer
from sgfn.design.rounds import read_round_folder
from sgfn.design.settings import CODE, DesignConfig
from sgfn.runs import trust as trusting

COUNT = itertools.count()
PAYLOAD = """
from pathlib import Path
import sgfn.design.acquisition as ours
from sgfn.landscapes.proxies import PROXIES
from sgfn.noise import UniformSlip
Path({marker!r}).touch()
def acquisition(members, request):
    return ours.greedy(members, request)
proxy = PROXIES["ridge"]
class Mine(UniformSlip):
    pass
def noise(config, letters, positions):
    return Mine(alpha=config.alpha)
"""
TEXTS = ["".join(letters) for letters in itertools.product("ACGT", repeat=3)][::2]
TABLE = pd.DataFrame({"sequence": TEXTS, "score": [text.count("A") + 0.1 * text.count("C") for text in TEXTS]})


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    """In the current folder, beside the round."""
    name, mark = f"design_payload_{next(COUNT)}", tmp_path / "mark"
    (tmp_path / f"{name}.py").write_text(PAYLOAD.format(marker=str(mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trusting, "CREATED", set())  # nothing was named in this process
    page = "sgfn.reports.pages.design.write_design_page"  # drawing takes most of the time
    monkeypatch.setattr(page, lambda path, *parts: path.write_text(""))
    return Payload(name, mark)


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a first round."""
    folder = tmp_path_factory.mktemp("theirs") / "1"
    made = Designer("dna", proxy="ridge", acquisition="greedy").fit(TABLE)
    made.propose(2)
    made.save(folder)
    return folder


@pytest.fixture
def theirs(proposed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(proposed, tmp_path / "theirs"))


def rewrite(folder: Path, **changes: object) -> None:
    """Change settings in a folder's design.json."""
    data = json.loads((folder / "design.json").read_text())
    data["settings"]["design"] |= changes
    (folder / "design.json").write_text(json.dumps(data))


@pytest.mark.parametrize("field", CODE)
def test_no_code_that_only_the_folder_names_is_imported(
    field: str, payload: Payload, theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{payload.name}:{field}"
    rewrite(theirs, **{field: name})
    words = ["design", "propose", "theirs", "--orders", "2", "--out"]
    assert main([*words, "no"]) == 2
    told = capsys.readouterr().err
    assert f"theirs names code that would be run ({field} '{name}'): name it again with --{field} {name}" in told
    assert "or add --trust" in told
    assert not Path("no").exists()
    with pytest.raises(ValueError, match="names code that would be run"):
        Designer.load(theirs)
    with pytest.raises(ValueError, match="names code that would be run"):
        read_round_folder(theirs, {field: "other:f"})
    other = next(other for other in CODE if other != field)
    with pytest.raises(ValueError, match="names code that would be run"):
        read_round_folder(theirs, replaced=[other])
    assert not payload.ran
    for number, flags in enumerate((["--trust"], [f"--{field}", name])):  # and the test can fail
        assert main([*words, str(number), *flags]) == 0
        assert payload.ran
        following = capsys.readouterr().out.splitlines()[-1]
        assert following.endswith(f"sgfn design propose {number} --measured new.csv --out 3 --{field} {name}")
        trusting.CREATED.clear()
    assert main([*words, "ours", f"--{field}", {"acquisition": "greedy", "proxy": "ridge"}[field]]) == 0
    assert not payload.ran  # what is replaced is not imported


def test_a_folder_that_this_process_wrote_is_its_own(payload: Payload, tmp_path: Path) -> None:
    made = Designer("dna", proxy="ridge", acquisition=f"{payload.name}:acquisition").fit(TABLE)
    made.save(tmp_path / "mine")
    assert Designer.load(tmp_path / "mine").config == made.config
    trusting.CREATED.clear()  # as in another process
    with pytest.raises(ValueError, match="names code"):
        Designer.load(tmp_path / "mine")


def test_every_setting_that_a_registry_resolves_is_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text of the settings is code in turn: those that are looked for are those of CODE."""
    asked: list[str] = []

    def find(name: str, what: str) -> object:
        asked.append(name)
        raise ValueError("nobody's")

    monkeypatch.setattr(registry, "find", find)
    texts = [part.name for part in fields(DesignConfig) if not isinstance(part.default, bool | int | float)]
    assert {"sampler", "transform", "sd_column", *CODE} <= {*texts}
    for name in texts:
        named, table = f"nobody:{name}", TABLE.assign(weight=1.0, sd=0.1)
        column = {"sequence_column": "sequence", "score_column": "score", "sd_column": "sd", "weight_column": "weight"}
        with suppress(ValueError, TypeError):
            made = Designer(**({"alphabet": "dna", "proxy": "ridge", "acquisition": "greedy"} | {name: named}))
            made.fit(table.rename(columns={column[name]: named} if name in column else {})).propose(2)
    assert {name.partition(":")[2] for name in asked} == {*CODE}


# Links


@pytest.mark.parametrize("name", [".lock", ".sgfn-new", ".sgfn-ready"])
def test_hidden_links_are_refused_before_anything_is_fitted(
    name: str, payload: Payload, theirs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def propose(self: Designer, count: int = 96) -> object:
        raise AssertionError("it was fitted")

    monkeypatch.setattr(Designer, "propose", propose)
    TABLE.to_csv("t.csv", index=False)
    Path("out").mkdir()
    (Path("out") / name).symlink_to("elsewhere")
    assert main(["design", "propose", "t.csv", "--out", "out"]) == 2
    assert f"out/{name} is a link, which sgfn never makes: remove it" in capsys.readouterr().err
    (theirs / name).unlink(missing_ok=True)
    (theirs / name).symlink_to("elsewhere")
    assert main(["design", "propose", "theirs", "--out", "next"]) == 2
    assert f"theirs/{name} is a link" in capsys.readouterr().err


@pytest.mark.parametrize("name", [".gone.json", "design.json"])
def test_what_waits_for_its_place_is_no_link(name: str, theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('["measured.csv"]')
    (theirs / ".sgfn-ready").mkdir()
    (theirs / ".sgfn-ready" / name).symlink_to(tmp_path / "secret")
    for trust in (False, True):
        with pytest.raises(ValueError, match=f"{name} is a link"):
            read_round_folder(theirs, trust)
    assert (theirs / "measured.csv").is_file()


def test_a_noise_of_ones_own_is_kept_by_its_name(payload: Payload, capsys: pytest.CaptureFixture[str]) -> None:
    """It slips as the uniform one does, so both propose the same plates; whoever reads the folder names it again."""
    TABLE.to_csv("t.csv", index=False)
    name, first = f"{payload.name}:noise", ["--proxy", "ridge", "--acquisition", "greedy", "--noise.alpha", "0.1"]
    for out, flags in (("ours", []), ("mine", ["--noise.kind", name])):
        assert main(["design", "propose", "t.csv", *first, "--orders", "3", *flags, "--out", out]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"--out mine-2 --noise.kind {name}")
    assert payload.ran
    assert main(["design", "propose", "ours", "--out", "wanted"]) == 0
    trusting.CREATED.clear()  # as in another process
    assert main(["design", "propose", "mine", "--out", "no"]) == 2
    told = f"mine names code that would be run (noise.kind '{name}'): name it again with --noise.kind {name}"
    assert told in capsys.readouterr().err
    with pytest.raises(ValueError, match="names code that would be run"):
        Designer.load("mine")
    assert main(["design", "propose", "mine", "--noise.kind", "uniform", "--out", "replaced"]) == 0
    assert not payload.ran
    for number, flags in enumerate((["--trust"], ["--noise.kind", name])):
        assert main(["design", "propose", "mine", "--out", f"again{number}", *flags]) == 0
        assert payload.ran
        pd.testing.assert_frame_equal(*(pd.read_csv(f"{at}/orders.csv") for at in ("wanted", f"again{number}")))
        trusting.CREATED.clear()
    assert main(["design", "propose", "mine", "--noise.kind", name, "--noise.alpha", "0.4", "--out", "noisier"]) == 0
    assert not pd.read_csv("noisier/orders.csv").expected.equals(pd.read_csv("wanted/orders.csv").expected)


def test_a_noise_that_no_folder_can_keep_is_refused_before_anything_is_fitted(
    payload: Payload, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    TABLE.to_csv("t.csv", index=False)
    monkeypatch.setattr(Designer, "propose", lambda self, count: pytest.fail("it was fitted"))
    own = ["--noise.kind", f"{payload.name}:noise", "--noise.file", "t.csv"]
    assert main(["design", "propose", "t.csv", *own, "--out", "1"]) == 2
    assert "noise.file t.csv is read by code of your own, and a folder keeps none" in capsys.readouterr().err
    made = Designer("dna", proxy="ridge", noise=f"{payload.name}:noise").fit(TABLE)
    made.save("named")
    made.noise_settings = None  # the object alone
    with pytest.raises(ValueError, match=r"Mine is not one of ours and cannot be kept in a folder: give the name"):
        made.save("object")
    assert not Path("object").exists()
    data = json.loads(Path("named", "design.json").read_text())
    assert data["settings"]["noise"]["kind"] == f"{payload.name}:noise"
    data["settings"]["noise"]["settings"]["file"] = "/etc/passwd"
    Path("named", "design.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"design\.json: noise\.file of a noise that code makes is not kept"):
        Designer.load("named", trust=True)


# Damage


@pytest.mark.parametrize(
    ("part", "name", "value", "says"),
    [
        (None, "kappa", -1.0, "kappa must lie in"),
        (None, "reach", -1, "reach must lie in"),
        ("search", "children", 0, "search.children must lie in"),
        ("search", "draws", 10**12, "search.draws must lie in"),
        ("search", "seconds", float("nan"), "search.seconds must be"),
        ("search", "seconds", "x", "damaged"),
        ("flow", "steps", 10**9, "flow.steps must lie in"),
        ("flow", "sharpness", None, "damaged"),
    ],
)
def test_damaged_settings_are_told_with_their_file(
    part: str | None, name: str, value: object, says: str, theirs: Path
) -> None:
    data = json.loads((theirs / "design.json").read_text())
    design = data["settings"]["design"]
    (design[part] if part else design)[name] = value
    (theirs / "design.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=rf"theirs/design\.json.*{says}"):
        read_round_folder(theirs)
