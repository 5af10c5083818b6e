"""Ctrl-C in places where Python cannot raise it, or under libraries that turn it into another error."""

import time

import pytest

from sgfn.cli import commands
from sgfn.cli.commands import main
from sgfn.cli.interruptions import comes_of_interruption


class Interrupted:
    """Is interrupted when it is thrown away."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


def during(monkeypatch: pytest.MonkeyPatch, action: object) -> None:
    monkeypatch.setattr(commands, "act", action)


def test_one_that_python_would_print_stops_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act(words: list[str]) -> None:
        Interrupted()
        time.sleep(60)
        raise AssertionError("it goes on")

    during(monkeypatch, act)
    assert main(["tasks"]) == 2
    assert capsys.readouterr().err == "sgfn: stopped\n"


def test_one_that_became_another_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def act(words: list[str]) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise SystemError("returned a result with an exception set") from stop

    during(monkeypatch, act)
    assert main(["tasks"]) == 2
    assert capsys.readouterr().err == "sgfn: stopped\n"


def test_other_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(words: list[str]) -> None:
        raise SystemError("of its own")

    during(monkeypatch, act)
    with pytest.raises(SystemError, match="of its own"):
        main(["tasks"])
    assert not comes_of_interruption(ValueError())
