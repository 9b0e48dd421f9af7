# SPDX-License-Identifier: Apache-2.0
"""Options of benchmarks: types by their defaults, switches, and what `add_argument` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.lab.options import Options, takes


@takes(
    runs=(5, "turns of each"),
    share=(1.0, ""),
    read_from=(Path("a"), "file"),
    windows=(False, "under Wine"),
    noise={"nargs": "+", "choices": ("pink", "white"), "default": ()},
)
def main(options: Options, name: str = "own") -> int:
    """Run nothing."""
    print(name, vars(options))
    return 7


def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str, **more: str
) -> str:
    monkeypatch.setattr("sys.argv", ["x", *words])
    assert main(**more) == 7
    return capsys.readouterr().out.strip()


def test_defaults(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    defaults = {"runs": 5, "share": 1.0, "read_from": Path("a"), "windows": False, "noise": ()}
    assert said(monkeypatch, capsys) == f"own {defaults}"


def test_what_is_given(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--runs", "9", "--share", "0.5", "--read-from", "b", "--windows", "--noise", "pink", "white"]
    given = {"runs": 9, "share": 0.5, "read_from": Path("b"), "windows": True, "noise": ["pink", "white"]}
    assert said(monkeypatch, capsys, *words, name="other") == f"other {given}"


def test_help_has_docstring_and_defaults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["x", "--help"])
    with pytest.raises(SystemExit):
        main()
    text = capsys.readouterr().out
    assert "Options of benchmarks: types" in text
    assert "turns of each (default 5)" in text
    assert "under Wine\n" in text


def test_a_wrong_type_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["x", "--runs", "many"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--runs: invalid int value" in capsys.readouterr().err
