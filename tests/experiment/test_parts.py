# SPDX-License-Identifier: Apache-2.0
"""Components that are no program, on real nodes: a load, events of a kernel and of a program, and a path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.timeline.event_stream_file import read_event_stream
from resources.experiment.toml_text import toml_text
from tests.experiment.lab import ROOT, bench_file, left_soon, run
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

NAME = "parts"
BYTES = 1_000_000
TRACES = Path("/sys/kernel/tracing/instances")


def bulk(bench: Path, receiver: dict[str, str], parts: dict[str, object], first: dict[str, str]) -> str:
    """Return an experiment that sends bulk data beside other components, which begin in the first phase."""
    at = "${server.address}:9641"
    return toml_text(
        {
            "schema": "benchwright.experiment/1",
            "name": "parts",
            "bench": str(bench),
            "nodes": {"server": receiver, "client": {"node": "p02"}},
            "components": {
                "server": {
                    "node": "server",
                    "tool": "bw-traffic",
                    "arguments": ["bulk", "--serve", at],
                    "points": ["bulk"],
                },
                "client": {
                    "node": "client",
                    "tool": "bw-traffic",
                    "arguments": ["bulk", "--peer", at, "--bytes", BYTES],
                },
                **parts,
            },
            "phases": [
                {"name": "listen", "deadline_s": 120, "tasks": {"server": "start", **first}},
                {"name": "send", "deadline_s": 120, "tasks": {"client": "run", "server": "wait"}},
            ],
        }
    )


def test_a_load_and_a_kernel_are_recorded_beside_programs(tmp_path: Path) -> None:
    before = {*TRACES.iterdir()} if TRACES.exists() else set[Path]()
    load = {"kind": "network", "duration_s": 60, "sender": "server", "rate_mbit": 20}
    parts: dict[str, object] = {
        "load": {"node": "client", "load": load},
        "kernel": {"node": "server", "kernel": ["sched/sched_switch"], "buffer_kb": 512},
    }
    with in_turn(NAME):
        file = tmp_path / "parts.toml"
        bench = bench_file(tmp_path, NAME)
        file.write_text(bulk(bench, {"node": "p01"}, parts, {"load": "start", "kernel": "start"}))
        done = run("run", file, "--output", tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        assert left_soon(NAME, tmp_path / "output") == []
    point = tmp_path / "output/points/0001"
    achieved = json.loads((point / "load/load.json").read_text())
    assert achieved["sent_bit_s"]["source"] == "own count of bulk-sender on p01"
    assert achieved["received_bit_s"]["source"] == "own count of bulk-receiver on p02"
    stream = read_event_stream(next(point.glob("server-*.bwevents")))
    assert len(stream.ticks) > 0
    answer = json.loads((point / "server.out").read_text().splitlines()[-1])
    assert answer["bytes"] == BYTES
    assert (point / "kernel-kernel.gz").stat().st_size > 0
    assert "lost_events_by_cpu" in json.loads((point / "kernel.json").read_text())
    assert not ({*TRACES.iterdir()} if TRACES.exists() else set[Path]()) - before


def test_a_load_beyond_its_node_is_refused_by_name(tmp_path: Path) -> None:
    parts: dict[str, object] = {
        "load": {"node": "client", "load": {"kind": "cpu", "duration_s": 60, "processors": 4096}}
    }
    with in_turn(NAME):
        file = tmp_path / "parts.toml"
        bench = bench_file(tmp_path, NAME)
        file.write_text(bulk(bench, {"node": "p01"}, parts, {"load": "start"}))
        done = run("run", file, "--output", tmp_path / "output")
        assert done.returncode in (2, 3)
        assert "load on p02, phase listen: load cpu: processors: 4096; allowed of p02: " in done.stderr
        assert left_soon(NAME, tmp_path / "output") == []


@pytest.mark.slow
def test_a_path_is_set_and_changed_on_the_virtual_bench(tmp_path: Path) -> None:
    """Bulk data to PREEMPT_RT through the router: what was set is read back."""
    bench = tmp_path / "bench.yaml"
    text = (ROOT / "hw/benches/virtual.yaml").read_text()
    bench.write_text(text.replace("name: virtual\n", f"name: {NAME}\n", 1))
    parts: dict[str, object] = {
        "slow": {
            "path": {"from": "client", "to": "server"},
            "settings": {"delay_us": 20_000},
            "changes": [{"at_s": 0.5, "settings": {"delay_us": 5_000}}],
        }
    }
    with in_turn(NAME):
        file = tmp_path / "parts.toml"
        file.write_text(bulk(bench, {"kind": "linux-rt"}, parts, {"slow": "run"}))
        done = run("run", file, "--output", tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        assert left_soon(NAME, tmp_path / "output") == []
    changes = json.loads((tmp_path / "output/points/0001/slow.json").read_text())["changes"]
    assert [each["at_s"] for each in changes] == [0.0, 0.5]
    assert [each["realised"]["settings"]["delay_us"] for each in changes] == [20_000, 5_000]
    answer = json.loads((tmp_path / "output/points/0001/server.out").read_text().splitlines()[-1])
    assert answer["bytes"] == BYTES
