# SPDX-License-Identifier: Apache-2.0
"""`python -m reports patterns FILE` says what a site's own series has, and refuses what it cannot read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.patterns.drawn_series import PAPER, draw
from reports.__main__ import main


@pytest.fixture(name="ramps")
def _ramps(tmp_path: Path) -> Path:
    made = draw(("ramp",), "white", PAPER, 2)
    file = tmp_path / "ramps.csv"
    np.savetxt(file, np.stack((made.times_s, made.values_ms), axis=1), delimiter=",", header="time_s,ms")
    return file


def test_ramps_are_held_against_both_clocks(ramps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", str(ramps), "--grid", "5", "--rate-ppm", "-131"]) == 0
    said = capsys.readouterr().out
    assert "  drifting_grid     width " in said
    assert "height is the grid of 5; slope is the difference of rates, -131 ppm" in said
    assert "the source's clock is slower than the poll's by 130" in said


def test_ramps_of_other_clocks_are_ramps(ramps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", str(ramps), "--grid", "4", "--rate-ppm", "170"]) == 0
    said = capsys.readouterr().out
    assert "  ramp              period 38.2" in said
    assert "height is not the grid of 4; slope is not the difference of rates, 170 ppm" in said


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "short.csv"
    file.write_text("".join(f"{i},{i % 3}\n" for i in range(20)))
    assert main(["patterns", str(file)]) == 2
    assert main(["patterns", str(tmp_path / "none.csv")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith(
        "short.csv: 20 values are too few for any claim: 200 at least; at this rate that takes 199 s"
    )
    assert said[1].endswith("none.csv: No such file or directory")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--grid", "0", "--grid 0: must be a number above 0"),
        ("--grid", "inf", "--grid inf: must be a number above 0"),
        ("--rate-ppm", "nan", "--rate-ppm nan: must be between -1000000 and 1000000"),
        ("--rate-ppm", "1e9", "--rate-ppm 1e+09: must be between -1000000 and 1000000"),
    ],
)
def test_a_grid_has_a_width_and_clocks_a_rate(
    ramps: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, why: str
) -> None:
    assert main(["patterns", str(ramps), option, value]) == 2
    assert capsys.readouterr().err == f"reports: {why}\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["ramps.csv", "--only", "hop 2"], "--only hop 2: of a run alone"),
        (["--between", "a:b", "c:d", "--only", "hop 2"], "--only hop 2: of a run alone"),
        (["--between", "a:b", "c:d", "--unit", "us"], "--unit us: of a CSV file alone; here it is ms"),
        ([".", "--unit", "us"], "--unit us: of a CSV file alone; here it is ms"),
    ],
)
def test_an_option_of_another_input_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["patterns", *words]) == 2
    assert problem in capsys.readouterr().err
