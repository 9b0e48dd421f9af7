# SPDX-License-Identifier: Apache-2.0
"""bw-phase runs a program as a component: ready, done, failed, ended; nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.phase.lines import supervised

IGNORES = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('here', flush=True)
time.sleep(1e4)
"""
SERVES = """
import socket, sys, time
here = socket.socket()
here.bind(('127.0.0.1', int(sys.argv[1])))
here.listen()
time.sleep(1e4)
"""


def _processes(word: str) -> list[int]:
    """Return the processes that have a word in their environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                has = f"BENCHWRIGHT_EXPERIMENT={word}".encode() in (entry / "environ").read_bytes().split(
                    b"\0"
                )
            except OSError:
                continue
            if has:
                found.append(int(entry.name))
    return found


def _free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def _mark(tmp_path: Path) -> str:
    return f"test-{os.getpid()}-{tmp_path.name}"


def test_a_program_is_started_waited_for_and_what_it_wrote_is_kept(bw_phase: Path, tmp_path: Path) -> None:
    with supervised(bw_phase, tmp_path, "sh", "-c", "pwd; echo $TMPDIR; echo wrong >&2") as component:
        assert component.asked("start")["type"] == "done"
        assert component.asked("wait")["exit_code"] == 0
        assert component.end() == 0
    assert (tmp_path / "out").read_text() == f"{tmp_path}\n{tmp_path}\n"
    assert (tmp_path / "err").read_text() == "wrong\n"


@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        ("exit 3", (), "ended with exit code 3"),
        ("kill -SEGV $$", (), "was ended by signal 11"),
        ("exit 0", ("--ready", "line:never"), "ended with exit code 0 before it was ready"),
        ("exec yes", ("--output-mib", "1"), "wrote more than 1048576 bytes to stdout and stderr"),
    ],
)
def test_a_failure_is_told_without_being_asked(
    bw_phase: Path, tmp_path: Path, script: str, options: tuple[str, ...], reason: str
) -> None:
    with supervised(bw_phase, tmp_path, "sh", "-c", script, options=options) as component:
        component.tell("start")
        answer = component.hear()
        if "--ready" not in options:
            assert answer["type"] == "done"
            answer = component.hear()
        assert (answer["type"], answer["reason"]) == ("failed", reason)


def test_exit_codes_that_are_no_failure_are_named(bw_phase: Path, tmp_path: Path) -> None:
    with supervised(bw_phase, tmp_path, "sh", "-c", "exit 4", options=("--ok", "4")) as component:
        assert component.asked("start")["type"] == "done"
        assert component.asked("wait")["exit_code"] == 4


@pytest.mark.parametrize("how", ["line", "file", "tcp"])
def test_a_program_is_ready_when_it_says_so(bw_phase: Path, tmp_path: Path, how: str) -> None:
    port = _free_port()
    program = {
        "line": ("sh", "-c", "echo now here; exec sleep 10000"),
        "file": ("sh", "-c", "touch there; exec sleep 10000"),
        "tcp": (sys.executable, "-c", SERVES, port),
    }[how]
    ready = {"line": "line:here", "file": "file:there", "tcp": f"tcp:{port}"}[how]
    with supervised(bw_phase, tmp_path, *program, options=("--ready", ready)) as component:
        assert component.asked("start")["type"] == "done"
        if how == "file":
            assert (tmp_path / "there").exists()
        if how == "tcp":
            socket.create_connection(("127.0.0.1", int(port))).close()


def test_one_that_does_not_end_is_killed_after_the_grace(bw_phase: Path, tmp_path: Path) -> None:
    options = ("--ready", "line:here", "--grace-ms", "50")
    with supervised(bw_phase, tmp_path, sys.executable, "-c", IGNORES, options=options) as component:
        component.asked("start")
        answer = component.asked("stop")
        assert (answer["type"], answer["signal"], answer["killed"]) == ("done", signal.SIGKILL, True)


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("trap 'exit 0' TERM; echo here; while :; do sleep 0.01; done", "done"),
        ("trap 'exit 143' TERM; echo here; while :; do sleep 0.01; done", "done"),
        ("echo here; exec sleep 10000", "done"),
        (
            "trap 'exit 9' TERM; echo here; while :; do sleep 0.01; done",
            "ended with exit code 9 when it was asked to end",
        ),
        (
            "trap 'kill -SEGV $$' TERM; echo here; while :; do sleep 0.01; done",
            "was ended by signal 11 when it was asked to end",
        ),
    ],
)
def test_one_that_fails_when_it_is_asked_to_end_has_failed(
    bw_phase: Path, tmp_path: Path, script: str, outcome: str
) -> None:
    with supervised(bw_phase, tmp_path, "sh", "-c", script, options=("--ready", "line:here")) as component:
        component.asked("start")
        answer = component.asked("stop")
        assert answer.get("reason", answer["type"]) == outcome


def test_a_server_in_the_background_is_ready_by_its_port(bw_phase: Path, tmp_path: Path) -> None:
    port = _free_port()
    daemon = f"import os\nif os.fork(): os._exit(0)\nimport sys\nsys.argv = ['', '{port}']\n{SERVES}"
    mark = _mark(tmp_path)
    options = ("--ready", f"tcp:{port}", "--mark", mark)
    with supervised(bw_phase, tmp_path, sys.executable, "-c", daemon, options=options) as component:
        assert component.asked("start")["type"] == "done"
        assert component.end() == 0
    assert _processes(mark) == []


def test_a_port_that_is_bound_already_tells_nothing(bw_phase: Path, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        options = ("--ready", f"tcp:{other.getsockname()[1]}")
        with supervised(bw_phase, tmp_path, "sleep", "10000", options=options) as component:
            assert "is there before it was started" in component.asked("start")["reason"]


ORPHANS = "setsid sh -c 'sleep 10000 & sleep 10000' & (sleep 10000 &) ; echo here; wait"


@pytest.mark.parametrize("way", ["end", "term", "kill-program"])
def test_nothing_that_was_started_is_left(bw_phase: Path, tmp_path: Path, way: str) -> None:
    """Whoever has left its session, and whose parents have ended, too."""
    mark = _mark(tmp_path)
    options = ("--ready", "line:here", "--mark", mark, "--grace-ms", "50")
    with supervised(bw_phase, tmp_path, "sh", "-c", ORPHANS, options=options) as component:
        pid = component.asked("start")["pid"]
        wait_until(lambda: len(_processes(mark)) >= 4, "its processes")
        if way == "end":
            component.end()
        elif way == "term":
            component.process.terminate()
            component.process.wait(HANG_S)
        else:
            os.kill(pid, signal.SIGKILL)
            assert component.hear()["reason"] == "was ended by signal 9"
        assert _processes(mark) == []


def test_its_program_ends_with_one_that_is_killed(bw_phase: Path, tmp_path: Path) -> None:
    mark = _mark(tmp_path)
    with supervised(bw_phase, tmp_path, "sleep", "10000", options=("--mark", mark)) as component:
        component.asked("start")
        assert len(_processes(mark)) == 1
        component.process.kill()
        component.process.wait(HANG_S)
        wait_until(lambda: not _processes(mark), "the end of its program")


def test_a_full_disk_is_told(bw_phase: Path, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/dev/full")
    with supervised(bw_phase, tmp_path, "sh", "-c", "echo much; exec sleep 10000") as component:
        assert component.asked("start")["type"] == "done"
        assert component.hear()["reason"] == "what it wrote cannot be kept: No space left on device"


@pytest.mark.parametrize(
    ("line", "code"),
    [("nonsense", 0), ('{"type":"phase","name":"A","parameters":{}}', 0), ("x" * 100_000, 0)],
)
def test_what_is_no_phase_ends_it(bw_phase: Path, tmp_path: Path, line: str, code: int) -> None:
    with supervised(bw_phase, tmp_path, "sleep", "10000") as component:
        component.write(line)
        if len(line) < 100_000:
            assert component.process.wait(HANG_S) == code
        else:  # what has no room is no line
            assert component.asked("start")["type"] == "done"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--folder", "/nowhere", "--", "true"), "/nowhere: No such file or directory"),
        (("--ready", "soon", "--folder", ".", "--", "true"), "--ready: must be at-once, json, phases"),
        (
            ("--ready", "tcp:0", "--folder", ".", "--", "true"),
            "--ready tcp:PORT: must be in 1..65535, found 0",
        ),
        (("--folder", "."), "give --folder FOLDER, and -- PROGRAM"),
    ],
)
def test_bad_input_is_refused(bw_phase: Path, arguments: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [bw_phase, "run", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_what_a_program_has_registered_is_passed_on(bw_phase: Path, tmp_path: Path) -> None:
    ready = '{"type":"ready","schema":"benchwright.phase/1","phases":["go","end"]}'
    program = ("sh", "-c", f"echo '{ready}'; cat")
    with supervised(bw_phase, tmp_path, *program, options=("--ready", "phases")) as component:
        assert component.asked("start") == json.loads(ready)
        assert component.hear()["phase"] == "start"
        assert component.end() == 0
