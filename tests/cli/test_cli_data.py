"""`sgfn data` on the command line."""

import json
from pathlib import Path

import pytest

import sgfn
from sgfn.cli.commands import main
from sgfn.landscapes import tfbind8


def test_data_list_as_json_and_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["table"] for row in listed] == tfbind8.known_names()
    assert {row["table"] for row in listed if row["here"]} == set(tfbind8.EMBEDDED)
    assert main(["data", "list"]) == 0
    assert capsys.readouterr().out.split() == tfbind8.known_names()


def test_data_fetch_of_a_table_that_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "crx", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["table"] == "CRX_REF_R1"
    assert found["task"] in sgfn.task_names()
    assert Path(found["file"]).is_file()
    assert main(["data", "fetch", "crx"]) == 0
    assert "train it with: sgfn train tfbind8-crx_ref_r1" in capsys.readouterr().out
