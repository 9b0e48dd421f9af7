# SPDX-License-Identifier: Apache-2.0
"""What compare_calls.py makes of records of bw-accel --watch: made-up ones, cut off anywhere, and damaged."""

from __future__ import annotations

import importlib
import json
import random
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.targets.userstack.test_accel import COMPARE

Line = dict[str, Any]
PORT = 50_000


def call(kind: str, function: str, **more: Any) -> Line:
    own: Line = {"process": 8, "thread": 7, "begin_monotonic_ns": 5, "duration_ns": 3}
    return own | {"call": kind, "function": function} | more


def head(count: int, **more: Any) -> Line:
    own: Line = {"record": "bw-accel --watch", "version": 1, "machine": "Windows", "state": "complete"}
    return own | {"calls": count, "lost": 0} | more


def text_of(lines: list[Line], **more: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in [head(len(lines), **more), *lines])


def compare(folder: Path, *texts: str) -> subprocess.CompletedProcess[str]:
    files = [folder / f"{number}.ndjson" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    argv = [sys.executable, str(COMPARE), *map(str, files)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


OPEN: list[Line] = [call("socket", "socket", socket=4, domain=2, type=1, protocol=0, result=0)]
PENDING: Line = {"socket": 4, "asked": 100, "flags": 0, "operation": 1, "errno": "WSA_IO_PENDING"}
AT_ONCE: list[Line] = [*OPEN, call("receive", "recv", socket=4, asked=100, flags=0, result=10)]
LATER: list[Line] = [
    *OPEN,
    call("receive", "WSARecv", **PENDING),
    call("sleep", "Sleep", timeout_ns=1_000_000, result=0),
    {"process": 8, "thread": 7, "begin_monotonic_ns": 5, "note": "starts process 9"},
    call("receive", "completion", socket=4, operation=1, result=10),
]
BOTH: list[Line] = [
    *OPEN,
    call("receive", "WSARecv", socket=4, asked=100, flags=0, operation=1, result=10),
    call("receive", "completion", socket=4, operation=1, result=10),
]
IN_PIECES: list[Line] = [
    *OPEN,
    *(call("receive", "recv", socket=4, asked=5, flags=0, result=5) for _ in range(2)),
]


@pytest.mark.parametrize("other", [AT_ONCE, LATER, BOTH, IN_PIECES])
def test_how_a_call_ends_and_how_a_stream_is_cut_is_left_out(tmp_path: Path, other: list[Line]) -> None:
    done = compare(tmp_path, text_of(AT_ONCE), text_of(other))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "other",
    [
        OPEN,
        [*OPEN, call("receive", "recv", socket=4, asked=100, flags=0, result=9)],
        [*OPEN, call("receive", "recv", socket=4, asked=100, flags=0, errno="WSAECONNRESET")],
        [*AT_ONCE, call("resolve", "getaddrinfo", name="host", result=0)],
        [call("socket", "socket", errno="WSAEMFILE", domain=2, type=1), *AT_ONCE],
        [*AT_ONCE, call("setsockopt", "setsockopt", socket=4, level=6, option=1, value=1, result=0)],
        [*AT_ONCE, call("wait", "WSAPoll", timeout_ns=-1, ready=[[4, 256]], result=1)],
    ],
)
def test_what_differs_is_found(tmp_path: Path, other: list[Line]) -> None:
    done = compare(tmp_path, text_of(AT_ONCE), text_of(other))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout


def test_sockets_of_two_processes_are_kept_apart(tmp_path: Path) -> None:
    other = [{**each, "process": 9} for each in AT_ONCE]
    assert compare(tmp_path, text_of([*AT_ONCE, *other]), text_of([*other, *AT_ONCE])).returncode == 0
    assert compare(tmp_path, text_of([*AT_ONCE, *other]), text_of(AT_ONCE)).returncode == 1


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"state": "open"}, "has not ended in order: 'open'"),
        ({"state": "broken off: error 112", "lost": 5}, "broken off: error 112', 5 calls lost"),
        ({"lost": 3}, "3 calls are not in the record"),
        ({"calls": 9}, "has 2 calls and says that it has 9"),
        ({"version": 2}, "version 2 of a record; allowed: 1"),
    ],
)
def test_a_record_that_is_not_whole_is_not_compared(tmp_path: Path, more: Line, reason: str) -> None:
    done = compare(tmp_path, text_of(AT_ONCE), text_of(AT_ONCE, **more))
    assert (done.returncode, done.stdout) == (2, "")
    assert "1.ndjson" in done.stderr
    assert reason in done.stderr


def test_no_damage_passes_or_breaks_the_reader(tmp_path: Path) -> None:
    """Cut off behind every byte it is refused by name; with bytes changed it is, or is read."""
    whole, file = text_of(LATER).encode(), tmp_path / "record"
    sys.path.insert(0, str(COMPARE.parent))
    try:
        read = importlib.import_module("compare_calls").read
    finally:
        sys.path.remove(str(COMPARE.parent))
    for size in range(1, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=re.escape(str(file))):
            read(file)
    draw = random.Random(68)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        file.write_bytes(damaged)
        with suppress(ValueError):
            read(file)
