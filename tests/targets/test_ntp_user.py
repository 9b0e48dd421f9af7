# SPDX-License-Identifier: Apache-2.0
"""bw-ntp-user against servers that lie, on the loopback: each lie is named, and none becomes a measurement.

Polls that go wrong are in test_ntp_client.c. What it does to a clock is seen in guests, whose clocks may be
wrong (robot/clock_sync).
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hw.tools import local_tool
from tests.patience import HANG_S
from tests.targets.lying_server import HONEST, lying_server

POLLS = ["--interval-ms", "20", "--timeout-ms", "60000", "--no-discipline"]


def run(port: int, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run the client to its end; return exit code, objects, stderr."""
    argv = [str(local_tool("bw-ntp-user")), "--server", "127.0.0.1", "--port", str(port), *POLLS, *arguments]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of_type(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the objects of one type."""
    return [found for found in objects if found["type"] == kind]


def test_honest_server_is_measured() -> None:
    with lying_server(HONEST) as port:
        code, objects, _ = run(port, "--polls", "5")
    polls = of_type(objects, "poll")
    assert code == 0
    assert len(polls) == 5
    assert not of_type(objects, "rejected")
    # Server and client read one clock: it lies between the stamps, so the offset is at most half the delay.
    assert all(abs(poll["offset_ns"]) <= poll["delay_ns"] / 2 + 1000 for poll in polls)
    assert set(polls[0]) == {
        "type",
        "time_tai_ns",
        "monotonic_ns",
        "offset_ns",
        "delay_ns",
        "freq_ppb",
        "state",
    }
    assert objects[0]["type"] == "ready"


@pytest.mark.parametrize(
    ("lie", "reason", "detail"),
    [
        ("origin", "origin", None),
        ("kiss-rate", "kiss-of-death", "RATE"),
        ("stratum-16", "stratum", "stratum 16"),
        ("leap", "leap", None),
        ("mode", "mode", None),
        ("version", "version", None),
        ("short", "short", None),
        ("root-distance", "root-distance", None),
        ("no-stamps", "stamps", None),
        ("order", "stamps", None),
        ("negative-delay", "negative-delay", None),
    ],
)
def test_lie_is_named_and_not_measured(lie: str, reason: str, detail: str | None) -> None:
    """It need not end the poll: the client is told to end when it has heard the lie."""
    with lying_server(lie) as port:
        argv = [str(local_tool("bw-ntp-user")), "--server", "127.0.0.1", "--port", str(port), *POLLS]
        with subprocess.Popen([*argv, "--polls", "1"], stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            objects: list[dict[str, Any]] = []
            while not of_type(objects, "rejected"):
                objects.append(json.loads(client.stdout.readline()))
            client.send_signal(signal.SIGTERM)
            objects += [json.loads(line) for line in client.stdout]
            assert client.wait(HANG_S) == 0
    (rejected,) = of_type(objects, "rejected")
    assert not of_type(objects, "poll")
    assert (rejected["reason"], rejected.get("detail")) == (reason, detail)


def test_denied_client_ends_and_asks_no_more() -> None:
    with lying_server("kiss-deny") as port:
        code, objects, said = run(port, "--polls", "50")
    assert code == 4
    assert len(of_type(objects, "rejected")) == 1
    assert "kiss-of-death DENY" in said


def test_held_client_asks_no_more_until_it_is_told_to(tmp_path: Path) -> None:
    with lying_server(HONEST) as port:
        argv = [str(local_tool("bw-ntp-user")), "--server", "127.0.0.1", "--port", str(port), *POLLS]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            lines = (json.loads(line) for line in client.stdout)

            def states_until(kind: str, state: str) -> str:
                for found in lines:
                    if (found["type"], found["state"]) == (kind, state):
                        return str(found["state"])
                raise AssertionError("the client ended")

            states_until("poll", "init")
            client.send_signal(signal.SIGUSR1)
            states_until("state", "hold")
            client.send_signal(signal.SIGUSR2)
            # The very next line is the answer to that: nothing was asked while it was held.
            assert next(lines)["type"] == "state"
            assert next(lines)["type"] == "poll"
            client.send_signal(signal.SIGTERM)
            assert client.wait(HANG_S) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--server: must be an IPv4 address"),
        (["--server", "time.example"], 'found "time.example"'),
        (["--server", "127.0.0.1", "--interval-ms", "9"], "allowed: 10..3600000"),
        (["--server", "127.0.0.1", "--filter", "9"], "allowed: 1..8"),
        (["--server", "127.0.0.1", "more"], "surplus argument"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [str(local_tool("bw-ntp-user")), *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert said in done.stderr
