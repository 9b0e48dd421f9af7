# SPDX-License-Identifier: Apache-2.0
"""What compare_calls.py holds to be the same, and what not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.targets.userstack.test_accel import COMPARE

Call = dict[str, Any]


def call(name: str, socket: int = 1, **more: Any) -> Call:
    return {"thread": 7, "call": name, "socket": socket, **more}


def compare(folder: Path, *records: list[Call]) -> subprocess.CompletedProcess[str]:
    files = [folder / f"{number}.ndjson" for number in range(len(records))]
    for file, record in zip(files, records, strict=True):
        file.write_text("".join(json.dumps(each) + "\n" for each in record))
    return subprocess.run(
        [sys.executable, str(COMPARE), *map(str, files)], capture_output=True, text=True, check=False
    )


OPEN = [call("socket", domain=2, type=1, result=0)]
WHOLE = [*OPEN, call("receive", result=10, total=10, sum="ab"), call("receive", result=0, total=10, sum="ab")]


@pytest.mark.parametrize(
    "other",
    [
        WHOLE,
        [
            *OPEN,
            call("receive", errno="EAGAIN"),
            call("receive", result=4, total=4, sum="aa"),
            {"thread": 7, "call": "wait", "ready": [], "result": 0},
            call("receive", result=6, total=10, sum="ab"),
            call("receive", result=0, total=10, sum="ab"),
        ],
        [{**each, "thread": 9} for each in WHOLE],
        [
            *(
                {**each, "process": 3, "begin_monotonic_ns": 5, "duration_ns": 2, "asked": 99}
                for each in WHOLE
            ),
            {"thread": 7, "call": "sleep", "timeout_ns": 5, "result": 0},
        ],
    ],
    ids=["same", "in pieces", "another thread", "times and sleeping"],
)
def test_what_time_decides_is_no_difference(tmp_path: Path, other: list[Call]) -> None:
    done = compare(tmp_path, WHOLE, other)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "other",
    [
        [*OPEN, call("receive", result=10, total=10, sum="ac"), WHOLE[-1]],
        [*OPEN, call("receive", result=9, total=9, sum="ab"), WHOLE[-1]],
        [*OPEN, call("receive", errno="ECONNRESET")],
        WHOLE[:-1],
        [*WHOLE, call("close", result=0)],
        [*OPEN, call("shutdown", number=1, result=0), *WHOLE[1:]],
        [*WHOLE, {"thread": 7, "call": "resolve", "name": "host", "result": 0}],
    ],
    ids=["a byte", "a length", "an error", "no end", "one more", "another call", "a name"],
)
def test_a_difference_is_told(tmp_path: Path, other: list[Call]) -> None:
    done = compare(tmp_path, WHOLE, other)
    assert done.returncode == 1
    assert re.match(r"socket [01], call ", done.stdout)


def test_the_order_of_readiness_counts(tmp_path: Path) -> None:
    opened = [*OPEN, call("socket", 2, domain=2, type=1, result=0)]
    first = {"thread": 7, "call": "wait", "ready": [[1, 1], [2, 1]], "result": 2}
    second = {"thread": 7, "call": "wait", "ready": [[2, 1], [1, 1]], "result": 2}
    assert compare(tmp_path, [*opened, first], [*opened, first]).returncode == 0
    assert compare(tmp_path, [*opened, first], [*opened, second]).stdout.startswith("order of readiness")
    hung_up = {"thread": 7, "call": "wait", "ready": [[1, 17], [2, 1]], "result": 2}
    assert compare(tmp_path, [*opened, first], [*opened, hung_up]).stdout.startswith("socket 1, events")


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"call": "read"}', '{"thread": 1}'])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.ndjson"
    file.write_text(f"{json.dumps(OPEN[0])}\n{text}\n")
    done = subprocess.run(
        [sys.executable, str(COMPARE), str(file), str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{file}, line 2" in done.stderr
