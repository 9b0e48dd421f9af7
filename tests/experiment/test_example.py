# SPDX-License-Identifier: Apache-2.0
"""The example of a phased experiment: a server in C, a client in Python, a shell script, on two machines."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from hw.answers import json_line
from tests.experiment.lab import ROOT, bench_file, left_soon, run
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

NAME = "example"
EXAMPLE = ROOT / "resources/experiment/example/client_server.toml"
COUNT = 200


def checked(output: Path) -> None:
    """Hold what each component counted against the others."""
    point = output / "points/0001"
    trips_ns = [int(line) for line in (point / "client-round-trips").read_text().split()]
    assert len(trips_ns) == COUNT
    assert min(trips_ns) > 0
    values = [json_line(line) for line in (point / "server.out").read_text().splitlines()]
    assert values[-1] == {"type": "done", "phase": "answer", "values": {"answered": COUNT}}
    assert (point / "watch-load").read_text().count("\n") > 0
    clock = json.loads((point / "clock.out").read_text().splitlines()[-1])
    assert clock["bound_ns"] <= 5_000_000
    schedule = [json.loads(line) for line in (point / "schedule.ndjson").read_text().splitlines()]
    begun = {each["phase"]: each["utc_ns"] for each in schedule if each["what"] == "begin"}
    ended = {each["phase"]: each["utc_ns"] for each in schedule if each["what"] == "end"}
    order = ["start", "clocks", "record", "listen", "send", "end", "collect"]
    assert list(begun) == order
    assert all(ended[one] <= begun[other] for one, other in pairwise(order))


def test_the_example_runs_on_two_namespaces(tmp_path: Path) -> None:
    with in_turn(NAME):
        bench = bench_file(tmp_path, NAME)
        done = run("run", EXAMPLE, "--bench", bench, "--output", tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        checked(tmp_path / "output")
        assert left_soon(NAME, tmp_path / "output") == []


def test_a_threshold_that_is_not_reached_ends_it_with_its_value(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace("clock_bound_ns = 5000000", "clock_bound_ns = 1")
    begin = text.index('name = "clocks"')
    text = text[:begin] + text[begin:].replace("deadline_s = 20", "deadline_s = 2", 1)
    file = tmp_path / "example.toml"
    file.write_text(text.replace("../../../traffic-gen", str(ROOT / "traffic-gen")))
    for name in ("client.py", "watch.sh"):
        (tmp_path / name).write_bytes((EXAMPLE.parent / name).read_bytes())
    with in_turn(NAME):
        done = run("run", file, "--bench", bench_file(tmp_path, NAME), "--output", tmp_path / "output")
        assert done.returncode == 4
        assert "clock on p02, phase clocks: not done after 2 s: |bound_ns| was " in done.stderr
        assert "not 1 at most" in done.stderr
        assert left_soon(NAME, tmp_path / "output") == []


@pytest.mark.slow
def test_the_example_runs_on_a_guest(tmp_path: Path) -> None:
    """The server and the script on PREEMPT_RT, the client here."""
    text = EXAMPLE.read_text().replace(
        'server-machine = {node = "p01"}', 'server-machine = {kind = "linux-rt"}'
    )
    bench = tmp_path / "bench.yaml"
    bench.write_text(
        (ROOT / "hw/benches/virtual.yaml").read_text().replace("name: virtual\n", f"name: {NAME}\n", 1)
    )
    file = tmp_path / "example.toml"
    file.write_text(text.replace("../../../traffic-gen", str(ROOT / "traffic-gen")))
    for name in ("client.py", "watch.sh"):
        (tmp_path / name).write_bytes((EXAMPLE.parent / name).read_bytes())
    with in_turn(NAME):
        done = run("run", file, "--bench", bench, "--output", tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        checked(tmp_path / "output")
        assert left_soon(NAME, tmp_path / "output") == []
