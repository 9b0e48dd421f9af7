# SPDX-License-Identifier: Apache-2.0
"""Loads: what is refused before it starts, how they end, and what they say that they achieved."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from hw.bench import BenchSpec, load_bench
from hw.drivers.local import LocalNode
from hw.errors import BenchError, BenchwrightError, CapabilityError, ConfigError, MeasurementError
from hw.protocols import Job
from resources.loads.achieved import FILE, Achieved, Quantity, counted
from resources.loads.counters import Counters, counters_of
from resources.loads.kinds import (
    FOLDER,
    OWN_FOLDER,
    CompileLikeLoad,
    CpuLoad,
    DiskLoad,
    LoadKind,
    NetworkLoad,
    load_of,
)
from resources.loads.load import Load
from resources.tools.experiment import Experiment
from tests.fake_bench import FakeBench, FakeJob
from tests.patience import HANG_S

BENCHES = Path(__file__).resolve().parents[3] / "hw" / "benches"
NODE, SENDER, ADDRESS = "linux", "p01", "10.77.0.130"

BEFORE = """\
1000.00 3000.00
Name:\tcat
Cpus_allowed:\tb
Cpus_allowed_list:\t0-1,3
cpu  1000 200 300 90000 400 50 60 7000 80 90
cpu0 500 100 150 45000 200 25 30 3500 40 45
intr 12345 6 7
ctxt 500000
btime 1700000000
processes 4000
procs_running 2
Inter-|   Receive |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop
    lo: 9999999  100 0 0 0 0 0 0  9999999 100 0 0 0 0 0 0
 test0: 1000000 1000 0 0 0 0 0 0   500000     600 0 0 0 0 0 0
  eth0:    2000   20 0 0 0 0 0 0     1000  10 0 0 0 0 0 0
   7       0 loop0 10 0 20 0 30 0 7777 0 0 0 0 0 0 0 0 0 0
 254       0 vda 100 5 2000 30 200 10 4000 50 0 60 70 0 0 0 0 0 0
 254       1 vda1 90 5 1900 30 190 10 3900 50 0 60 70 0 0 0 0 0 0
 259       0 nvme0n1 1 0 2 3 4 5 1000 6 0 7 8
 253       0 dm-0 1 0 2 3 4 5 4000 6 0 7 8
/dev/vda / ext4 rw,relatime 0 0
tmpfs /run tmpfs rw,nosuid 0 0
tmpfs /var tmpfs rw 0 0
"""
"""Of a node with three processors and two disks; `AFTER` was 20 s later."""
AFTER = (
    BEFORE.replace("1000.00 3000.00", "1020.00 3020.00")
    # 1500 ticks of a user, 100 nice, 200 of the system, 30 and 40 of interrupts: 18.70 s; others besides.
    .replace("cpu  1000 200 300 90000 400 50 60 7000", "cpu  2500 300 500 91000 900 80 100 7500")
    .replace("ctxt 500000", "ctxt 650000")
    .replace("processes 4000", "processes 4321")
    .replace(" test0: 1000000 ", " test0: 6000000 ")  # 5 MB received in 20 s: 2 Mbit/s
    .replace("  500000     600", "  750000     600")  # 250 kB sent: 100 kbit/s
    .replace("200 10 4000 50", "200 10 6000 50")  # 2000 sectors of 512 bytes
    .replace("190 10 3900 50", "190 10 5900 50")
    .replace("4 5 1000 6", "4 5 1008 6")  # 8 more, of the other disk
    .replace("4 5 4000 6", "4 5 6008 6")
)
RESULT = {
    "bulk-sender": {"role": "sender", "bytes": 25_000_000, "duration_ns": 10_000_000_000},
    "bulk-receiver": {"role": "receiver", "bytes": 20_000_000, "duration_ns": 10_000_000_000},
    "work": {"processes": 11, "cpu_ns": 5_500_000_000, "written_bytes": 4096, "duration_ns": 10_000_000_000},
}


class _Job(FakeJob):
    """A job of a load, with its own result."""

    def fetch(self) -> Path:
        kind = next(kind for kind in (*RESULT, "") if self.name.startswith(kind))
        self.lines = [{"type": "result", **RESULT[kind]}] if kind else []
        return super().fetch()


class _Bench(FakeBench):
    """A bench whose node answers with readings, one after the other, and has the tools that it has."""

    def __init__(
        self,
        readings: Iterable[str] = (BEFORE, AFTER),
        *,
        stress: bool = True,
        spec: BenchSpec | None = None,
        **more: Any,
    ) -> None:
        more.setdefault("exit_code", None)
        super().__init__(spec or load_bench(BENCHES / "native.yaml"), answer=self._say, **more)
        self._readings = iter(readings)
        self._stress = stress

    def _say(self, _node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        if argv[0] == "cat":
            text = next(self._readings)
            return (0, text, "") if text else (1, "", "no such command")
        return (0 if self._stress or argv[0] != "sh" else 127), "", ""

    def node(self, name: str) -> Any:
        node = super().node(name)

        def start(argv: Sequence[str], stem: Path) -> FakeJob:
            self.jobs.append(_Job(self, name, argv, stem))
            return self.jobs[-1]

        node.start = start  # type: ignore[method-assign]
        return node


def _run(bench: Any, what: LoadKind, folder: Path) -> Achieved:
    with Experiment(bench) as experiment:
        load = Load(bench, what, folder)
        load.start(experiment)
        return load.end()


# ---- what is counted


def test_counters_of_a_node() -> None:
    found = counters_of(BEFORE)
    assert found == Counters(
        uptime_s=1000.0,
        processors=3,
        cpu_s=16.1,
        forks=4000,
        context_switches=500_000,
        disk_bytes=5000 * 512,
        sent_bytes=501_000,
        received_bytes=1_002_000,
        mounts={"/": ("ext4", "rw"), "/run": ("tmpfs", "rw"), "/var": ("tmpfs", "rw")},
    )
    assert [found.file_system(folder) for folder in ("/", "/srv/a", "/var/tmp", "/various")] == [
        "ext4",
        "ext4",
        "tmpfs",
        "ext4",
    ]


def test_what_was_achieved_between_two_readings() -> None:
    found = counted(counters_of(BEFORE), counters_of(AFTER), "linux", 20.0, "/srv")
    assert found == {
        "cpu_s": Quantity(18.7, "/proc/stat of linux"),
        "written_bytes": Quantity(2008 * 512, "/proc/diskstats of linux"),
        "sent_bit_s": Quantity(100_000, "/proc/net/dev of linux"),
        "received_bit_s": Quantity(2_000_000, "/proc/net/dev of linux"),
        "forks": Quantity(321, "/proc/stat of linux"),
        "context_switches": Quantity(150_000, "/proc/stat of linux"),
    }


def test_what_is_in_memory_is_not_said_to_be_written_nowhere() -> None:
    found = counted(counters_of(BEFORE), counters_of(AFTER), "linux", 20.0, "/var/tmp")
    assert found["written_bytes"].value is None
    assert "/var/tmp of linux is on tmpfs" in found["written_bytes"].source


@pytest.mark.parametrize(
    ("without", "unknown"),
    [
        ("vda nvme0n1", ["written_bytes"]),
        ("test0: eth0:", ["sent_bit_s", "received_bit_s"]),
        ("ctxt", ["context_switches"]),
        ("processes", ["forks"]),
        ("cpu ", ["cpu_s"]),
    ],
)
def test_a_file_that_a_node_lacks_leaves_its_figures_unknown(without: str, unknown: list[str]) -> None:
    words = [f"{word} " for word in without.split()]

    def cut(text: str) -> Counters:
        lines = text.splitlines(keepends=True)
        return counters_of("".join(line for line in lines if not any(word in f"{line} " for word in words)))

    found = counted(cut(BEFORE), cut(AFTER), "linux", 20.0)
    assert [name for name, each in found.items() if each.value is None] == unknown
    assert all(each.source for each in found.values())


def test_a_counter_that_went_back_is_not_a_figure() -> None:
    found = counted(counters_of(AFTER), counters_of(BEFORE), "linux", 20.0)
    assert {each.value for each in found.values()} == {None}
    assert "went back" in found["forks"].source


def test_a_node_without_proc_says_so() -> None:
    found = counted(counters_of(""), counters_of(""), "windows", 20.0)
    assert set(found.values()) == {Quantity(None, "windows: it has no /proc")}


# ---- a load from its start to its end


def test_a_load_is_read_before_and_after_and_kept(tmp_path: Path) -> None:
    bench = _Bench()
    found = _run(bench, CpuLoad(NODE, 100, processors=2), tmp_path)
    assert (found.over_s, found.ended, found.cpu_s.value) == (20.0, "asked", 18.7)
    assert bench.jobs[0].argv == ["stress-ng", "--cpu", "2", "--temp-path", FOLDER, "--timeout", "100"]
    assert [argv[0] for argv in bench.node(NODE).ran] == ["cat", "sh", "cat"]
    kept = json.loads((tmp_path / FILE).read_text())
    assert kept["load"] == {"kind": "cpu", "node": NODE, "duration_s": 100, "processors": 2}
    assert kept["context_switches"] == {"value": 150_000, "source": "/proc/stat of linux"}


@pytest.mark.parametrize("what", [CpuLoad(NODE, 100), DiskLoad(NODE, 100), DiskLoad(NODE, 100, 10)], ids=str)
def test_where_its_folder_is_read_only_a_load_has_one_of_the_tools(tmp_path: Path, what: LoadKind) -> None:
    """As on the native target: stress-ng starts nowhere where it cannot write, whatever it does."""
    bench = _Bench([text.replace("tmpfs /var tmpfs rw", "tmpfs /var tmpfs ro") for text in (BEFORE, AFTER)])
    _run(bench, what, tmp_path)
    assert "/fresh/load" in bench.jobs[0].argv
    assert FOLDER not in " ".join(bench.jobs[0].argv)


def test_network_is_counted_by_both_ends(tmp_path: Path) -> None:
    bench = _Bench()
    found = _run(bench, NetworkLoad(NODE, 100, sender=SENDER, address=ADDRESS, rate_mbit=20), tmp_path)
    assert found.sent_bit_s == Quantity(20_000_000, "own count of bulk-sender on p01")
    assert found.received_bit_s == Quantity(16_000_000, "own count of bulk-receiver on linux")
    receiver, sender = bench.jobs
    assert (receiver.node, sender.node) == (NODE, SENDER)
    assert receiver.argv[:4] == ["/linux/bw-traffic", "bulk", "--serve", "10.77.0.130:9642"]
    assert sender.argv[-4:] == ["--duration-ms", "100000", "--rate-mbit", "20"]
    assert "--duration-ms" in receiver.argv
    assert bench.log[:3] == ["ready bulk-receiver", "ready bulk-sender", "stop bulk-sender"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (CompileLikeLoad(NODE, 100), ["--duration-ms", "100000", "--jobs", "0"]),
        (DiskLoad(NODE, 100, rate_bytes_s=50_000), ["--write-bytes", "5000", "--rate-hz", "10"]),
    ],
)
def test_bytes_are_those_that_were_written_to_files(tmp_path: Path, what: LoadKind, words: list[str]) -> None:
    bench = _Bench()
    found = _run(bench, what, tmp_path)
    assert found.written_bytes == Quantity(4096, f"own count of work-{what.kind} on linux, to files")
    assert found.forks == Quantity(321, "/proc/stat of linux")
    assert bench.jobs[0].argv[-4:] == words
    assert bench.jobs[0].argv[:3] == ["/linux/bw-traffic", "work", "--folder"]
    folder = bench.jobs[0].argv[3]
    assert re.fullmatch(f"{OWN_FOLDER}[0-9a-f]+", folder)
    assert bench.node(NODE).ran[-1] == ["rm", "-rf", folder]


def test_on_a_node_without_proc_the_own_count_is_what_is_known(tmp_path: Path) -> None:
    bench = _Bench(["", ""])
    found = _run(bench, CompileLikeLoad(NODE, 100), tmp_path)
    assert bench.jobs[0].argv[3] == "/fresh/load"
    assert (found.cpu_s.value, found.forks.value, found.written_bytes.value) == (5.5, 11, 4096)
    assert found.context_switches == Quantity(None, "linux: it has no /proc")


def test_a_load_that_died_is_named_and_leaves_no_figures(tmp_path: Path) -> None:
    bench = _Bench(exit_code=137)
    with pytest.raises(MeasurementError, match=r"load cpu on linux: stress-cpu .*137.*it said this"):
        _run(bench, CpuLoad(NODE, 100), tmp_path)
    assert not (tmp_path / FILE).exists()


def test_of_two_ends_the_one_that_failed_is_named(tmp_path: Path) -> None:
    """A receiver ends well when its sender is gone."""
    bench = _Bench()
    with Experiment(cast("Any", bench)) as experiment:
        load = Load(cast("Any", bench), NetworkLoad(NODE, 100, sender=SENDER, address=ADDRESS), tmp_path)
        load.start(experiment)
        for job, code in zip(bench.jobs, (0, 137), strict=True):
            job.exit_code = code
        with pytest.raises(MeasurementError, match=r"bulk-sender had ended with exit code 137"):
            load.end()


def test_a_load_that_came_to_an_early_end_is_no_load(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"exit code 0 after 0 s at most, of 100 s"):
        _run(_Bench(exit_code=0), CpuLoad(NODE, 100), tmp_path)


def test_a_load_that_lasted_as_long_as_it_may_has_ended_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times_s = iter([5.0, 105.0])
    monkeypatch.setattr("resources.loads.load.time.monotonic", lambda: next(times_s))
    assert _run(_Bench(exit_code=0), CpuLoad(NODE, 100), tmp_path).ended == "by itself"


def test_what_is_broken_off_ends_its_load(tmp_path: Path) -> None:
    bench: Any = _Bench()

    def break_off() -> None:
        with Experiment(bench) as experiment:
            Load(bench, DiskLoad(NODE, 100, rate_bytes_s=10), tmp_path).start(experiment)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert "stop work-disk" in bench.log
    assert bench.node(NODE).ran[-1] == ["rm", "-rf", bench.jobs[0].argv[3]]


def test_a_sender_that_does_not_come_up_ends_the_receiver(tmp_path: Path) -> None:
    bench = _Bench(broken="bulk-sender")
    with pytest.raises(BenchError, match="not ready"):
        _run(bench, NetworkLoad(NODE, 100, sender=SENDER, address=ADDRESS), tmp_path)
    assert "stop bulk-receiver" in bench.log


class _Here(FakeBench):
    """This machine, with its real tools."""

    def __init__(self, repository: Path) -> None:
        super().__init__(load_bench(BENCHES / "native.yaml"))
        self._tool = str(repository / ".build/linux/traffic-gen/bw-traffic")
        self.started: list[Job] = []

    def node(self, name: str) -> Any:
        node = LocalNode(name, "host", 0)
        start = node.start

        def noted(argv: Sequence[str], stem: Path) -> Job:
            self.started.append(start(argv, stem))
            return self.started[-1]

        node.start = noted  # type: ignore[method-assign,assignment]
        return node

    def tool(self, *_of: object, **_form: object) -> str:
        return self._tool


def _here(repository: Path) -> Any:
    return _Here(repository)


@pytest.mark.parametrize(
    "what", [CompileLikeLoad(NODE, 3600, processors=1), DiskLoad(NODE, 3600, rate_bytes_s=1000)], ids=str
)
def test_a_real_load_ends_and_leaves_nothing(repository: Path, tmp_path: Path, what: LoadKind) -> None:
    left = set(Path(FOLDER).glob("benchwright-load-*"))
    found = _run(_here(repository), what, tmp_path)
    assert (found.ended, found.load["kind"]) == ("asked", what.kind)
    assert found.written_bytes.value is not None
    assert {found.cpu_s.source, found.forks.source} == {f"/proc/stat of {NODE}"}
    assert set(Path(FOLDER).glob("benchwright-load-*")) <= left


def test_a_real_load_that_is_killed_is_named(repository: Path, tmp_path: Path) -> None:
    bench = _here(repository)
    with Experiment(bench) as experiment:
        load = Load(bench, CompileLikeLoad(NODE, 3600, processors=1), tmp_path)
        load.start(experiment)
        os.kill(bench.started[0].process_id(), signal.SIGKILL)
        bench.started[0].wait(HANG_S)
        with pytest.raises(MeasurementError, match=r"load compile-like on linux: .* exit code -9"):
            load.end()


# ---- what is refused

NETWORK = {"sender": SENDER, "address": ADDRESS}


@pytest.mark.parametrize(
    ("kind", "parameters", "error", "says"),
    [
        ("gpu", {}, ConfigError, "must be one of cpu, disk, network, compile-like; found 'gpu'"),
        ("cpu", {"cores": 1}, ConfigError, "cores: no such parameter; allowed: processors"),
        ("cpu", {"processors": "all"}, ConfigError, "processors: 'all'; allowed: of type int"),
        ("network", {"sender": SENDER}, ConfigError, "address: missing"),
        ("cpu", {"processors": 4}, CapabilityError, r"allowed of linux: 0 \(all of them\), 1..3"),
        ("compile-like", {"processors": 4}, CapabilityError, r"allowed of linux: 0 \(all of them\), 1..3"),
        ("compile-like", {"processors": -1}, CapabilityError, "1..3"),
        ("disk", {"rate_bytes_s": 5}, ConfigError, r"allowed: 0 \(as fast as it goes\), 10\.\."),
        ("network", {**NETWORK, "rate_mbit": 1001}, CapabilityError, "1..1000, the slowest link's"),
        ("network", {**NETWORK, "block_bytes": 0}, ConfigError, "block_bytes: 0; allowed: 1..1048576"),
        ("network", {**NETWORK, "sender": NODE}, ConfigError, "allowed: p01, p02"),
        ("network", {**NETWORK, "sender": "p99"}, ConfigError, "allowed: p01, p02"),
    ],
)
def test_refused_before_it_starts(
    tmp_path: Path, kind: str, parameters: dict[str, int | str], error: type[BenchwrightError], says: str
) -> None:
    bench = _Bench()
    with pytest.raises(error, match=says):
        _run(bench, load_of(kind, NODE, 100, parameters), tmp_path)
    assert bench.jobs == []


@pytest.mark.parametrize("duration_s", [0, 604_801])
def test_a_load_without_an_end_is_refused(tmp_path: Path, duration_s: int) -> None:
    with pytest.raises(ConfigError, match=r"duration_s: .*; allowed: 1\.\.604800"):
        _run(_Bench(), CpuLoad(NODE, duration_s), tmp_path)


@pytest.mark.parametrize("kind", ["cpu", "disk"])
def test_a_node_without_its_tool_is_refused(tmp_path: Path, kind: str) -> None:
    bench = _Bench(stress=False)
    with pytest.raises(CapabilityError, match=r"linux has no stress-ng: .*compile-like need none"):
        _run(bench, load_of(kind, NODE, 100, {}), tmp_path)
    assert bench.jobs == []


def test_the_slowest_link_of_either_node_is_the_limit(tmp_path: Path) -> None:
    spec = load_bench(BENCHES / "native.yaml")
    assert spec.topology is not None
    links = {**spec.topology.links, "p01": replace(spec.topology.links["p01"], rate_mbps=100)}
    bench = _Bench(spec=replace(spec, virtual=None, topology=replace(spec.topology, links=links)))
    with pytest.raises(CapabilityError, match=r"rate_mbit: 101; .*1\.\.100, the slowest link's"):
        _run(bench, NetworkLoad(NODE, 100, sender=SENDER, address=ADDRESS, rate_mbit=101), tmp_path)
