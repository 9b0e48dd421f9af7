# SPDX-License-Identifier: Apache-2.0
"""What is loaded on a target: plug-ins, libraries before a program's own; on the native machine, over SSH."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hw import tools
from hw.bench import TargetSpec, TimecardSpec, load_bench
from hw.drivers.labgrid_api import register_all
from hw.drivers.ssh import SshNode
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.session import Bench, open_bench
from hw.tools import BUILD, local_library, local_tool
from reports.clock_read.capability import TIMECARD
from reports.clock_read.readings import TARGET
from reports.clock_sync.trial import TrialFacts
from resources.clock_sync.command import clock_command
from resources.clock_sync.read_latency import measure_read_latency
from resources.clock_sync.times import TIMES as CLOCK_TIMES
from resources.clock_sync.times import clock_times
from resources.clock_sync.trial import TrialSettings, measure_trial, reference_of
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay
from resources.network_stack import NetworkStack
from resources.profiles import times_of
from tests.hw.test_hardware_bench import PATTERN
from tests.patience import HANG_S
from tests.turns import in_turn

BENCH_FILE = Path(__file__).parent / "one_linux.yaml"
GUEST_FILE = Path(__file__).parent / "one_guest.yaml"
pytestmark = pytest.mark.simulated

MACHINE = "linux"
PLUG_IN = "plugin:cards/example-clock.so,offset_ns=1500,bound_ns=25"
LIBRARY = "libbwtime.so"
OF_ARM = BUILD / "armhf" / "traffic-gen" / "timeservice" / LIBRARY
DYNAMIC = {"bw-clock", "bw-traffic", "bw-edge", "libbwtime.so", "libbw-accel.so", "librtdip.so"}
OLDEST_GLIBC = (2, 36)
WITNESS = ["witness", "--period-us", "10000"]

register_all()


@pytest.fixture(scope="module")
def bench_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a bench file with a plug-in beside it, as a timecard of the machine."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "cards").mkdir()
    shutil.copy(local_library("example-clock.so"), folder / "cards")
    card = f'{{clock: "{PLUG_IN}", bound_ns: 30, synchronised_over: nothing}}'
    file = folder / "bench.yaml"
    text = BENCH_FILE.read_text()
    file.write_text(text.replace("test_interface: test0}", f"test_interface: test0, timecard: {card}}}"))
    return file


@pytest.fixture(scope="module")
def bench(bench_file: Path) -> Generator[Bench]:
    """Open the bench with the machine on."""
    with in_turn("one-linux"), open_bench(bench_file) as opened:
        opened.power_on([MACHINE])
        yield opened


@pytest.fixture
def node(bench: Bench) -> SshNode:
    """Return the machine."""
    found = bench.node(MACHINE)
    assert isinstance(found, SshNode)
    return found


def target_of(bench: Bench) -> TargetSpec:
    return bench.spec.targets[MACHINE]


# -- plug-ins


def test_a_missing_plug_in_is_named_when_the_bench_file_is_read(bench_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(bench_file.read_text())
    with pytest.raises(
        ConfigError,
        match=r"bench\.yaml: .*targets\.linux\.timecard\.clock: .*no file .*cards/example-clock\.so",
    ):
        load_bench(file)
    file.write_text(bench_file.read_text().replace("plugin:cards/", "plugin:/opt/vendor/"))
    timecard = load_bench(file).targets[MACHINE].timecard
    assert timecard is not None, "a file of the node is its own matter"
    assert timecard.clock.startswith("plugin:/opt/vendor/")


def test_a_plug_in_of_the_bench_file_is_brought_and_read(bench: Bench, node: SshNode) -> None:
    argv = clock_command(bench, MACHINE, "compare", device=PLUG_IN, reference="realtime")
    assert argv[0] == "/var/lib/benchwright/bin/dynamic/bw-clock"
    done = node.run([*argv, "--iterations", "2000", "--read", "bracketed"])
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["device"]["plugin"] == "example"
    assert result["device"]["name"] == PLUG_IN.replace("cards", "/var/lib/benchwright/bin/dynamic")
    assert abs(result["offset"]["p50_ns"] - 1500) < 1000


def test_other_clocks_are_read_by_the_static_program(bench: Bench, node: SshNode) -> None:
    [tool, *_] = clock_command(bench, MACHINE, "latency", clock="realtime")
    assert tool == bench.tool(MACHINE, "bw-clock") == "/var/lib/benchwright/bin/bw-clock"
    done = node.run([tool, "latency", "--clock", f"plugin:{bench.library(MACHINE, LIBRARY)}"], check=False)
    assert (done.exit_code, "linked statically and loads no plug-ins" in done.stderr) == (3, True)


def test_a_trial_and_table_i_have_a_plug_in_as_timecard(bench: Bench, tmp_path: Path) -> None:
    target = target_of(bench)
    card = reference_of(target)
    facts = TrialFacts("as-found", "sync", None, "idle", "none", None, None, None, card)
    settings = TrialSettings(duration_s=1, sequential=False, two_way=False)
    trial = measure_trial(bench, target, facts, settings, tmp_path / "trial")
    assert trial.filtered.reference["plugin"] == "example"
    assert trial.filtered.offset.n > 100
    times = times_of("ci", CLOCK_TIMES, clock_times)
    assert times is not None
    times = replace(times, latency_reads=2000, latency_max_s=5)
    found = measure_read_latency(bench, target, times, tmp_path / "reads", lambda _line: None)
    [row] = [each for each in found.readings if (each.place, each.clock) == (TARGET, TIMECARD)]
    assert (row.file, row.not_offered) == (f"{TARGET}-{TIMECARD}.ndjson", "")


def test_a_plug_in_that_cannot_be_loaded_ends_the_trial(
    bench: Bench, bench_file: Path, tmp_path: Path
) -> None:
    """One for another processor: the program says so, and no time of another clock is taken."""
    shutil.copy(OF_ARM, bench_file.parent / "cards" / "arm.so")
    target = replace(target_of(bench), timecard=TimecardSpec("plugin:cards/arm.so", 0, "nothing"))
    facts = TrialFacts("as-found", "sync", None, "idle", "none", None, None, None, reference_of(target))
    settings = TrialSettings(duration_s=1, sequential=False, two_way=False)
    with pytest.raises(BenchError, match=r"exit code 3 before it was ready: .*arm\.so: wrong ELF class"):
        measure_trial(bench, target, facts, settings, tmp_path / "trial")


# -- libraries before a program's own


def test_a_library_is_brought_and_seen_in_the_program(bench: Bench, node: SshNode, tmp_path: Path) -> None:
    stack = NetworkStack("user", tmp_path, arguments=("--threshold-us", "500"), preload=(LIBRARY,))
    job, _ = stack.start(bench, MACHINE, WITNESS, tmp_path / "witness")
    job.wait_ready(HANG_S)
    maps = node.run(["cat", f"/proc/{job.process_id()}/maps"]).stdout
    job.stop()
    assert job.wait(HANG_S) == 0
    assert "/var/lib/benchwright/bin/dynamic/libbwtime.so" in maps
    assert "/var/lib/benchwright/bin/dynamic/bw-traffic" in maps


def test_a_node_whose_libraries_are_not_for_it_is_named(
    bench: Bench, node: SshNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one with an older C library: the node's own loader says what it lacks."""
    program = tmp_path / "bw-edge"
    data = local_tool("bw-edge").read_bytes()
    assert data.count(b"libm.so.6\0") == 1
    program.write_bytes(data.replace(b"libm.so.6\0", b"libm.so.9\0"))
    program.chmod(0o755)
    monkeypatch.setattr("hw.nodes.local_tool", lambda *_, **__: program)  # pyright: ignore
    for _ in range(2):
        with pytest.raises(
            CapabilityError, match=r"linux: bw-edge, the dynamic build, does not run there: .*libm\.so\.9"
        ):
            bench.tool(MACHINE, "bw-edge", dynamic=True)
    monkeypatch.undo()
    monkeypatch.setattr(node, "_machine", "armv7l")
    with pytest.raises(CapabilityError, match=r"the dynamic build, does not run there: .*format error"):
        bench.tool(MACHINE, "bw-edge", dynamic=True)
    monkeypatch.delitem(tools.DYNAMIC_BUILDS, "armv7l")
    with pytest.raises(CapabilityError, match="bw-edge: programs for armv7l are linked statically"):
        bench.tool(MACHINE, "bw-edge", dynamic=True)


def test_two_files_of_one_name_are_told_apart(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / LIBRARY
    shutil.copy(local_library(LIBRARY), other)
    first = bench.library(MACHINE, LIBRARY)
    assert bench.library(MACHINE, LIBRARY) == first
    with pytest.raises(ConfigError, match=r"linux: .* and .*: two files that bear one name there"):
        bench.library(MACHINE, other)
    assert bench.library("p01", other) == str(other), "a part of this machine has it"
    assert os.access(bench.tool("p01", dynamic=True), os.X_OK)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("endpoints", "programs"), [("target", {MACHINE}), ("both", {MACHINE, "p01", "p02"})]
)
def test_a_pattern_goes_by_programs_with_their_library(
    bench: Bench, tmp_path: Path, endpoints: str, programs: set[str]
) -> None:
    """Whoever has the stack has its library and its environment, the latter with the node's own folder."""
    pattern = tmp_path / "pattern.toml"
    pattern.write_text(PATTERN)
    settings = ReplaySettings(
        pattern=pattern, warmup_ms=500, duration_ms=1000, grace_ms=500, correction="none"
    )
    replay = Replay(bench, target_of(bench), load_pattern(pattern), settings, tmp_path / "run", print)
    environment = {"BW_TEST_STACK": f"{tmp_path}$folder"}
    stack = NetworkStack("user", tmp_path, preload=(LIBRARY,), endpoints=endpoints, environment=environment)
    replay.stack = (MACHINE, stack)
    loaded: dict[str, bool] = {}

    def look(_counting_s: float) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (process / "environ").read_bytes().split(b"\0")
                for value in (each for each in variables if each.startswith(b"BW_TEST_STACK=")):
                    if (process / "exe").resolve().name == "bw-traffic":
                        loaded[value.decode()] = LIBRARY in (process / "maps").read_text()

    replay.during = look
    answers = replay.run()
    assert {stream["lost"] for stream in answers.recv["streams"]} == {0}
    assert not answers.faults
    assert loaded == {f"BW_TEST_STACK={tmp_path}{stack.folder_on(each)}": True for each in programs}


@pytest.mark.slow
def test_a_guest_with_a_c_library_of_its_own_loads_too(tmp_path: Path) -> None:
    """Debian's of the image, under emulation; what the node's loader says decides."""
    text = GUEST_FILE.read_text().replace("image: embedded", "image: linux-rt")
    file = tmp_path / "guest.yaml"
    file.write_text(text.replace("name: one-guest", "name: guest-that-loads"))
    (tmp_path / "cards").mkdir()
    shutil.copy(local_library("example-clock.so"), tmp_path / "cards")
    with open_bench(file) as bench:
        bench.power_on(["guest"])
        argv = clock_command(bench, "guest", "compare", device=PLUG_IN, reference="realtime")
        done = bench.node("guest").run([*argv, "--iterations", "100"])
        assert json.loads(done.stdout.splitlines()[-1])["device"]["plugin"] == "example"
        stack = NetworkStack("user", tmp_path, preload=(LIBRARY,))
        job, _ = stack.start(bench, "guest", WITNESS, tmp_path / "witness")
        job.wait_ready(HANG_S)
        job.stop()
        assert job.wait(HANG_S) == 0


@pytest.mark.parametrize("build", ["linux", "armhf-dynamic"])
def test_what_is_loaded_on_a_target_runs_with_an_older_c_library(build: str) -> None:
    """As docs/new-target.md says, whatever C library the host that builds it has."""
    files = [file for file in (BUILD / build).rglob("*") if file.name in DYNAMIC and file.is_file()]
    assert {file.name for file in files} == DYNAMIC
    for file in files:
        argv = ["objdump", "-T", str(file)]
        symbols = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        needed = {(int(a), int(b)) for a, b in re.findall(r"\(GLIBC_(\d+)\.(\d+)", symbols)}
        assert max(needed) <= OLDEST_GLIBC, file
