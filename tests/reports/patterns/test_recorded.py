# SPDX-License-Identifier: Apache-2.0
"""What lies between two recorded points of programs of one machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.__main__ import main
from reports.errors import ReportError
from reports.patterns.recorded import between_points
from tests.reports.control_loops.ring_sample import INTERVAL_NS, NODES, hop_ns, write_sample_ring

COUNT, LAST = 220, len(NODES) - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ring")
    write_sample_ring(place, count=COUNT, kernel_stamps=False)
    return place


def test_each_message_has_its_time(folder: Path) -> None:
    at_s, took_s = between_points(f"{folder}/0.bwevents:ring.write", f"{folder}/{LAST}.b*:ring.read")
    whole = [
        sum(hop_ns(place, number) for place in range(1, LAST + 1)) + (LAST - 1) * 700
        for number in range(COUNT)
    ]
    assert np.abs(took_s * 1e9 - whole).max() < 100  # 25 ppm of the machine's counter, and its ticks
    assert at_s[0] == 0
    assert at_s[-1] == pytest.approx((COUNT - 1) * INTERVAL_NS / 1e9, rel=1e-4)


@pytest.mark.parametrize(
    ("sent", "received", "said"),
    [
        ("0.bwevents", "4.bwevents:ring.read", "must be FILE:GROUP.NAME"),
        ("none.bwevents:ring.write", "4.bwevents:ring.read", "none.bwevents"),
        ("*.bwevents:ring.write", "4.bwevents:ring.read", "5 files, must be one"),
        ("0.bwevents:ring.wrote", "4.bwevents:ring.read", "no point ring.wrote; it has .*ring.write"),
        ("0.bwevents:ring.write", "0.bwevents:ring.read", "no message has both points"),
        ("0.bwevents:ring.write", "1.bwevents:ring.read", "not of one counter"),
        ("4.bwevents:ring.read", "0.bwevents:ring.write", "received before it was sent"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, sent: str, received: str, said: str) -> None:
    with pytest.raises(ReportError, match=said):
        between_points(f"{folder}/{sent}", f"{folder}/{received}")


def test_command_searches_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = f"{folder}/0.bwevents:ring.write", f"{folder}/{LAST}.bwevents:ring.read"
    assert main(["patterns", "--between", *points]) == 0
    said = capsys.readouterr().out
    assert "220 values, 1.095 s" in said
    assert "median 0.2233 ms" in said


@pytest.mark.parametrize("words", [[], ["x.csv", "--between", "a:b", "c:d"]])
def test_command_needs_one_or_the_other(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", *words]) == 2
    assert "needs a run folder, a CSV file, or two recorded points with --between" in capsys.readouterr().err
