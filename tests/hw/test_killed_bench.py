# SPDX-License-Identifier: Apache-2.0
"""What a killed run leaves on this machine is undone by the next start, or by `python -m hw clean`.

The bench of these tests has namespaces and a switch, but no guest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.lab.killed_run import machine_state
from hw.bench import load_bench
from hw.errors import ConfigError
from hw.journal import JOURNAL_FOLDER
from hw.session import RUN_FOLDER, clean, open_bench
from tests.patience import HANG_S, wait_until
from tests.simulation.processes import bench_processes

pytestmark = pytest.mark.simulated

BENCH = """
targets: {targets}
benchwright:
  schema: benchwright.bench/1
  name: {name}
  simulated: true
  reference_clock: host
  nodes:
    switch: {{kind: namespace, clock: host}}
    p01: {{kind: namespace, clock: host}}
  clocks:
    host: {{node: switch, address: 10.78.0.254}}
  targets: {{}}
  producers:
    1: {{node: p01, address: 10.77.0.1}}
  virtual: {{test_subnet: 10.77.0.0/24, control_subnet: 10.78.0.0/24}}
"""

# Opens the bench, starts a tool in one of its namespaces, and says its process id.
RUN = """
import os, sys, time
from pathlib import Path
from hw.session import open_bench

with open_bench(Path(sys.argv[1])) as bench:
    length = f"600.{os.getpid()}"
    bench.node("p01").start(["sleep", length], Path(sys.argv[2]) / "tool")
    search = ["pgrep", "-fx", f"sleep {length}"]
    while not (pids := bench.node("p01").run(search, check=False).stdout.split()):
        time.sleep(0.01)
    print(*pids, flush=True)
    time.sleep(600)
"""

ADDRESSES = ["ip", "-brief", "address", "show", "dev", "test0"]


class ScratchBench:
    """A bench file of its own name, and what is seen of that bench on this machine."""

    def __init__(self, folder: Path, suffix: str = "a", targets: str = "{}") -> None:
        self.name = f"bwx-{os.getpid()}-{suffix}"
        self.folder = folder
        self.file = folder / f"{self.name}.yaml"
        self.file.write_text(BENCH.format(name=self.name, targets=targets))

    def namespaces(self) -> list[str]:
        """Return the namespaces of the bench that are there now."""
        return sorted(path.name for path in Path("/run/netns").glob(f"bw-{self.name}-*"))

    def traces(self) -> list[str]:
        """Return all that the bench has left on this machine."""
        left = self.namespaces()
        left += [
            str(path)
            for path in (JOURNAL_FOLDER / f"{self.name}.journal", RUN_FOLDER / self.name)
            if path.exists()
        ]
        return left

    @contextmanager
    def run(self) -> Generator[tuple[subprocess.Popen[str], list[int]], None, None]:
        """Hold the bench in another process, with tools in its namespaces; end that process at last."""
        with subprocess.Popen(
            [sys.executable, "-c", RUN, str(self.file), str(self.folder)], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                yield process, [int(word) for word in process.stdout.readline().split()]
            finally:
                process.kill()

    def leave_behind(self) -> list[int]:
        """Kill a run of the bench; return the process ids of the tools that outlive it."""
        with self.run() as (process, tools):
            process.kill()
            process.wait(HANG_S)
        assert tools
        assert all(_is_running(pid) for pid in tools)
        return tools


def _is_running(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _end(bench: ScratchBench) -> None:
    clean(bench.file)
    (RUN_FOLDER / f"{bench.name}.lock").unlink(missing_ok=True)


@pytest.fixture
def bench(tmp_path: Path) -> Generator[ScratchBench, None, None]:
    """Give a scratch bench, of which nothing stays."""
    made = ScratchBench(tmp_path)
    yield made
    _end(made)


def test_the_next_start_removes_what_a_killed_run_has_left(bench: ScratchBench) -> None:
    tools = bench.leave_behind()
    assert bench.namespaces() == [f"bw-{bench.name}-p01", f"bw-{bench.name}-switch"]
    with open_bench(bench.file) as opened:
        assert not any(_is_running(pid) for pid in tools)
        assert bench.namespaces() == [f"bw-{bench.name}-p01", f"bw-{bench.name}-switch"]
        assert "10.77.0.1/24" in opened.node("p01").run(ADDRESSES).stdout
    assert bench.traces() == []


def test_tools_of_this_machine_itself_end_with_a_killed_run(tmp_path: Path) -> None:
    """On a bench of real machines no namespace holds them: a responder would keep its port."""
    real = ScratchBench(tmp_path, "l")
    text = real.file.read_text().replace("kind: namespace", "kind: local")
    real.file.write_text("".join(line for line in text.splitlines(True) if "virtual:" not in line))
    try:
        with real.run() as (process, tools):
            assert tools
            process.kill()
            process.wait(HANG_S)
        wait_until(lambda: not any(_is_running(pid) for pid in tools), "a tool outlives its run")
    finally:
        _end(real)


def test_clean_removes_what_a_killed_run_has_left(bench: ScratchBench) -> None:
    tools = bench.leave_behind()
    command = [sys.executable, "-m", "hw", "clean", str(bench.file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "changes undone" in done.stdout
    assert bench.traces() == []
    assert not any(_is_running(pid) for pid in tools)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{bench.file}: nothing to undo\n"


def test_clean_leaves_a_bench_alone_that_somebody_holds(bench: ScratchBench) -> None:
    with bench.run() as (process, tools):
        done = subprocess.run(
            [sys.executable, "-m", "hw", "clean", str(bench.file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 5
        assert f"bench '{bench.name}' is held by " in done.stderr
        assert f"process {process.pid}," in done.stderr
        assert all(_is_running(pid) for pid in tools)
        assert len(bench.namespaces()) == 2


@pytest.mark.parametrize("delay_ms", [0, 40, 120, 250])
def test_a_run_killed_while_it_builds_the_bench_leaves_nothing_for_long(
    bench: ScratchBench, delay_ms: int
) -> None:
    """Kill at some instant after the first namespace: wherever that is, the next start copes."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(bench.file), str(bench.folder)], stdout=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: bool(bench.namespaces()) or process.poll() is not None, "the first namespace")
        assert process.poll() is None
        time.sleep(delay_ms / 1000)
        process.kill()
    with open_bench(bench.file):
        assert len(bench.namespaces()) == 2
    assert bench.traces() == []


def test_benches_with_equal_node_names_do_not_disturb_each_other(bench: ScratchBench, tmp_path: Path) -> None:
    other = ScratchBench(tmp_path, "b")
    try:
        with open_bench(bench.file) as first:
            with open_bench(other.file) as second:
                second.node("p01").run(["true"])
            assert other.traces() == []
            assert "10.77.0.1/24" in first.node("p01").run(ADDRESSES).stdout
    finally:
        _end(other)


def test_what_is_seen_of_a_bench_is_not_of_another(bench: ScratchBench, tmp_path: Path) -> None:
    """Tests that look at a machine after the end of a run rely on it."""
    other = ScratchBench(tmp_path, "a-b")
    spec, other_spec = load_bench(bench.file), load_bench(other.file)
    before, other_before = machine_state(spec), machine_state(other_spec)
    try:
        with other.run() as (_, tools):
            assert bench_processes(other_spec).keys() >= set(tools)
            found = machine_state(other_spec).changes(other_before)
            assert found.keys() == {"namespaces", "processes", "journal", "folder"}
            assert bench_processes(spec) == {}
            assert machine_state(spec).changes(before) == {}
    finally:
        _end(other)
    assert machine_state(other_spec).changes(other_before) == {}


@pytest.mark.parametrize("attribute", ["cpu: 2", "vcpu_cpus: 1", "vcpu_cpus: [-1]", "main_loop_cpus: [true]"])
def test_a_guest_of_wrong_attributes_is_refused_and_all_undone(tmp_path: Path, attribute: str) -> None:
    """Of unknown ones labgrid by itself only warns."""
    guest = f"resources: {{VirtualGuest: {{{attribute}}}}}, drivers: {{VirtualGuestDriver: {{}}}}"
    targets = f"{{guest: {{{guest}}}}}"
    bench = ScratchBench(tmp_path, "c", targets)
    name = attribute.partition(":")[0]
    try:
        with pytest.raises(ConfigError, match=rf"bwx-\d+-c\.yaml: targets: .*{name}"), open_bench(bench.file):
            pass
        assert bench.namespaces() == []
        assert not (JOURNAL_FOLDER / f"{bench.name}.journal").exists()
    finally:
        _end(bench)


def test_a_second_start_is_refused_before_it_touches_anything(bench: ScratchBench) -> None:
    with bench.run() as (_process, tools):
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(bench.file), str(bench.folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "is held by" in done.stderr
        assert all(_is_running(pid) for pid in tools)
