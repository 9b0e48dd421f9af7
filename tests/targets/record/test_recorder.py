# SPDX-License-Identifier: Apache-2.0
"""libbw-record.so: what a program waits for, with times, and what its calls were asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import HANG_S

RECORDER = Path("targets/linux/userstack/record/libbw-record.so")
PROGRAM = """
import ctypes, select, socket, time
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(("localhost", listener.getsockname()[1]))
far, _ = listener.accept()
near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
near.send(bytes(10))
select.select([far], [], [], 5)
far.recv(4)
far.recv(100, socket.MSG_PEEK)
time.sleep(0.003)
select.select([], [], [], 0.004)
poll = select.poll()
poll.register(near, select.POLLIN)
poll.poll(5)
libc = ctypes.CDLL(None)
libc.usleep(2000)
libc.gethostbyname(b'no "host')
"""


def record_of(library: Path, folder: Path, program: str) -> list[dict[str, Any]]:
    file = folder / "record.ndjson"
    environment = {**os.environ, "LD_PRELOAD": str(library), "BW_RECORD": str(file)}
    argv = [sys.executable, "-c", program]
    subprocess.run(argv, env=environment, check=True, timeout=HANG_S)
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_calls_have_times_and_what_they_were_asked_for(repository: Path, tmp_path: Path) -> None:
    calls = record_of(repository / ".build/linux" / RECORDER, tmp_path, PROGRAM)
    assert len({call["process"] for call in calls}) == 1
    ends = [call["begin_monotonic_ns"] + call["duration_ns"] for call in calls]
    assert ends == sorted(ends)
    assert all(call["duration_ns"] >= 0 for call in calls)
    (option,) = (call for call in calls if call["call"] == "setsockopt" and call["option"] == 1)
    assert (option["level"], option["value"]) == (6, 1)
    moved = [call for call in calls if call["call"] in ("send", "receive", "peek")]
    assert [(call["call"], call["asked"], call["result"]) for call in moved] == [
        *(("send", 10, 10), ("receive", 4, 4), ("peek", 100, 6))
    ]
    waits = [call for call in calls if call["call"] == "wait"]
    assert [(call["timeout_ns"], len(call["ready"])) for call in waits] == [
        *((5_000_000_000, 1), (4_000_000, 0), (5_000_000, 0))
    ]
    assert all(call["duration_ns"] >= call["timeout_ns"] for call in waits if not call["ready"])
    slept = [call for call in calls if call["call"] == "sleep"]
    assert slept[-1]["timeout_ns"] == 2_000_000
    assert 0 < slept[0]["timeout_ns"] <= 3_000_000
    resolved = [call for call in calls if call["call"] == "resolve"]
    assert [call["name"] for call in resolved] == ["localhost", "no??host"]
    assert resolved[0]["result"] == 0
    assert resolved[1]["errno"].startswith("EAI ")
