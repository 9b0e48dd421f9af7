# SPDX-License-Identifier: Apache-2.0
"""A clock stack that does not exist: a folder of a kind with row, template and script; no program changes.

Its files, the scripts of Linux that take them and its daemon run on this machine, in namespaces of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw import provisioning
from hw.bench import load_bench
from hw.errors import BenchError, CapabilityError, MeasurementError
from hw.fields import Fields
from hw.protocols import CommandResult
from reports.clock_sync.log_formats import LOG_READERS
from reports.clock_sync.trial import Lock
from resources.clock_sync import lab, settings, stack
from resources.clock_sync.kind import load_clock_kind
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.role import ClockRole
from resources.clock_sync.settings import STACKS, ClockSettings
from resources.clock_sync.stack import ClockStack
from resources.daq_replay import clock as replay_clock
from resources.daq_replay.clock import ClockOfReplay, synchronised_stacks
from resources.daq_replay.clock_networks import server_address
from resources.profiles import load_profile
from resources.timed_edges.settings import edge_times
from tests.patience import wait_until

ROOT = Path(__file__).resolve().parents[3]
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
KIND = "courtyard"
ROW = """\
title = "A Sundial"
edges_title = "A Clock That A Sundial Holds"
sync_interval_s = 2.0
interval_min_s = 1.0
interval_max_s = 60.0
served_as = "chrony"
files = "sundial.arguments"
tools = "bw-gnomon"
multicast = true

[logs.sundiald]
format = "bw-ntp-user"
settled_states = "noon"

[answers]
file = "shade.log"
format = "chrony-measurements"

[lock.simulated]
offset_ns = 1000
consecutive = 3
source = "nobody"

[lock.hardware]
offset_ns = 1000
consecutive = 3
source = "nobody"
"""
SCRIPT = """\
stack_start() {
    need_program sundiald
    daemon_start_with sundial.arguments sundiald sundiald
    until [ -s "$RUN/sundiald.log" ]; do sleep 0.02; done
}
stack_hold() { signal_daemon sundiald USR1; }
stack_resume() { signal_daemon sundiald USR2; }
server_start() { daemon_start gnomond sundiald noon 0; }
server_hold() { end_daemons gnomond; }
"""
DAEMON = """\
#!/bin/sh
say() {
    poll='{"type":"poll","time_tai_ns":%d000000000,"offset_ns":%d,"delay_ns":20,"freq_ppb":5,"state":"%s"}'
    printf "$poll\\n$poll\\n$poll\\n" \
        1 "$2" "$1" 2 "$2" "$1" 3 "$2" "$1"
}
trap 'say night 0' USR1
trap 'say noon 100' USR2
say "$1" "$2"
while :; do sleep 0.05; done
"""
"""What sundiald is: it says three times at once what it is told to say."""


class _Node:
    """A target on this machine, in a folder; or a time server that only notes what it is asked."""

    def __init__(self, name: str, here: Path | None = None) -> None:
        self.name = name
        self.here = here
        self.ran: list[list[str]] = []

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        del check
        self.ran.append([*argv])
        if argv[0].endswith("bw-setclock"):
            return CommandResult(tuple(argv), 0, '{"tai_utc_s":37}', "")
        if self.here is None:
            return CommandResult(tuple(argv), 0, "", "")
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout_s)
        return CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)

    def put(self, local: Path, remote: str) -> None:
        if self.here is not None:
            assert Path(remote).is_relative_to(self.here)
            Path(remote).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(local, remote)

    def get(self, remote: str, local: Path) -> None:
        shutil.copy(remote, local)


class _Bench:
    """A bench of two nodes, one of them in a folder of this machine."""

    spec: Any = SPEC

    def __init__(self, here: Path) -> None:
        self.nodes = {"linux-rt": _Node("linux-rt", here), "grandmaster": _Node("grandmaster")}
        self.tools: list[str] = []

    def node(self, name: str) -> Any:
        return self.nodes[name]

    def tool(self, node_name: str, tool: str = "bw-traffic", *, dynamic: bool = False) -> str:
        assert not dynamic
        self.tools.append(f"{node_name} {tool}")
        return f"/tools/{tool}"

    def library(self, node_name: str, library: str | Path) -> str:
        raise CapabilityError(f"{node_name}: {library}")


@pytest.fixture
def machine() -> Generator[int]:
    """A machine for daemons: processes and /run of its own; the process that it lasts as long as."""
    keep = "mount -t tmpfs tmpfs /run && echo ready && exec sleep infinity"
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", keep]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text()
            yield int(children)
        finally:
            holder.kill()


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: int) -> Path:
    """Kinds of target: Linux, which the time server is, and one with the made-up stack."""
    folder = tmp_path / "targets"
    for part in ("clock", "provision"):
        shutil.copytree(provisioning.TARGETS / "linux-rt" / part, folder / "linux-rt" / part)
    clock = folder / KIND / "clock"
    own = clock / "sundial"
    own.mkdir(parents=True)
    run, state = tmp_path / "run", tmp_path / "state"
    inside = f"nsenter --target {machine} --mount --pid"
    inside += f" env BENCHWRIGHT_STATE={state} BENCHWRIGHT_CLOCK_RUN={run} sh {run}/script"
    shared = [f"../../linux-rt/clock/{name}" for name in ("client.sh", "clock.sh", "server.sh")]
    shared += [f"../../linux-rt/provision/{name}.sh" for name in ("items", "json", "kinds", "undo")]
    (clock / "clock.toml").write_text(
        f'schema = "benchwright.clock_kind/1"\nfolder = "{run}"\ntransfer = "archive"\n'
        f'client = "{inside}/client.sh"\nserver = "{inside}/server.sh"\n'
        f'scripts_besides = "{" ".join(shared)}"\n'
    )
    (own / "stack.toml").write_text(ROW)
    (own / "stack.sh").write_text(SCRIPT)
    (own / "sundial.arguments").write_text("# What it says, and how far it is off.\nnoon 200\n")
    (state / "bin").mkdir(parents=True)
    daemon = state / "bin" / "sundiald"
    daemon.write_text(DAEMON)
    daemon.chmod(0o755)
    for module in (settings, stack, lab, replay_clock):
        monkeypatch.setattr(module, "TARGETS", folder)
    monkeypatch.setattr(stack, "LOOK_S", 0.05)
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> _Bench:
    return _Bench(tmp_path / "run")


TARGET = replace(SPEC.targets["linux-rt"], provisioning=KIND)


def _sundial(bench: _Bench, folder: Path) -> ClockStack:
    return ClockStack(bench, TARGET, "sundial", ClockSettings(), folder, lambda _line: None)


def test_it_is_a_stack_of_its_kind_and_of_no_other(targets: Path) -> None:
    kind = load_clock_kind(targets / KIND)
    assert kind.stacks == ("sundial",)
    kind.require_offered("sundial")
    with pytest.raises(CapabilityError, match="no clock stack 'sundial'"):
        load_clock_kind(targets / "linux-rt").require_offered("sundial")


@pytest.mark.usefixtures("targets")
def test_programs_offer_it_where_it_fits(bench: _Bench, tmp_path: Path) -> None:
    assert synchronised_stacks(TARGET) == ("sundial",)
    assert "sundial" in settings.stacks_of_any_kind(lambda spec: spec.is_locked_to_server)
    assert "sundial" not in settings.stacks_of_any_kind(lambda spec: spec.disturbable)
    lab = ClockLab(_as_open(bench), TARGET, load_profile("ci"), tmp_path, lambda _line: None)
    with pytest.raises(CapabilityError, match=r"clock sundial: .* test interface only"):
        server_address(lab, "sundial", "separate")
    table = {"edges": 1, "period_ns": 500_000, "error_edges": 1, "latches": 1, "clocks": ["sundial"]}
    table |= {"clock_edges": 1, "clock_period_us": 100, "trial_max_s": 1}
    times = edge_times(Fields(table, "times.toml", "ci"))
    assert times is not None
    assert times.clocks == ("sundial",)


@pytest.mark.usefixtures("targets")
def test_it_is_started_judged_cut_off_and_stopped(bench: _Bench, tmp_path: Path) -> None:
    with _sundial(bench, tmp_path / "evidence") as running:
        assert "linux-rt bw-gnomon" in bench.tools
        assert (tmp_path / "run" / "config" / "sundial.arguments").read_text() == "noon 200\n"
        lock = running.wait_locked(0)
        assert "below 1 us in 3 consecutive" in lock.criterion
        running.require_running()
        running.cut_off()
        _wait_said(running, 6)
        assert '"state":"night"' in running.servo_text()
        running.resume()
        _wait_said(running, 9)
        running.require_running()
        assert (tmp_path / "state" / "clock.undo").read_text().count("daemon\tsundiald\tended\tend") == 1
    assert not (tmp_path / "state" / "clock.undo").exists(), "all was put back"
    with pytest.raises(MeasurementError, match="sundiald on linux-rt "):
        running.require_running()
    file, form = running.servo_log
    text = (tmp_path / "evidence" / file).read_text()
    (series,) = LOG_READERS[form](text, 37).series
    assert list(series.offset_ns) == [200, 200, 200, 0, 0, 0, 100, 100, 100]
    served = [argv for argv in bench.nodes["grandmaster"].ran if "start" in argv]
    assert [argv[-2:] for argv in served] == [["start", "chrony"]]


def test_a_signal_reaches_a_daemon_when_one_of_its_processes_ends_just_before(
    targets: Path, bench: _Bench, tmp_path: Path
) -> None:
    ended = "sleep 0 & ended=$!; wait; pids=$(daemon_pids sundiald); daemon_pids() { echo $ended $pids; }; "
    script = targets / KIND / "clock" / "sundial" / "stack.sh"
    script.write_text(SCRIPT.replace("stack_hold() { ", "stack_hold() { " + ended))
    with _sundial(bench, tmp_path / "evidence") as running:
        running.cut_off()
        _wait_said(running, 6)


@pytest.mark.parametrize(
    ("device", "stamps_with"), [("", ""), ("plugin:/run/gnomon.so,shade=1", "plugin:/run/gnomon.so,shade=1")]
)
def test_a_replay_stamps_with_the_clock_that_it_keeps(
    targets: Path, bench: _Bench, tmp_path: Path, device: str, stamps_with: str
) -> None:
    row = f'multicast = true\ndevice = "{device}"' if device else "multicast = true"
    (targets / KIND / "clock" / "sundial" / "stack.toml").write_text(ROW.replace("multicast = true", row))
    server = SPEC.time_server
    assert server is not None
    lock = Lock(1.0, "when it is noon")
    clock = ClockOfReplay(_as_open(bench), TARGET, server, _sundial(bench, tmp_path), lock)
    assert clock.consumer_clock == stamps_with


def _wait_said(running: ClockStack, polls: int) -> None:
    wait_until(lambda: running.servo_text().count("\n") == polls, f"{polls} polls of sundiald")


def test_one_that_cannot_go_on_is_started_again(targets: Path, bench: _Bench, tmp_path: Path) -> None:
    own = targets / KIND / "clock" / "sundial"
    (own / "stack.toml").write_text(ROW.replace("multicast", "can_resume = false\nmulticast"))
    kept = SCRIPT.replace("signal_daemon sundiald USR1", "end_daemons sundiald").splitlines(keepends=True)
    (own / "stack.sh").write_text("".join(line for line in kept if "resume" not in line))
    with _sundial(bench, tmp_path / "evidence") as running:
        running.cut_off()
        running.require_running()  # its daemon has ended, as it should
        with pytest.raises(MeasurementError, match=r"sundial cannot do this: no stack_resume in stacks/sund"):
            running.resume()


def test_it_is_served_where_it_says_how(targets: Path, bench: _Bench) -> None:
    role = ClockRole(bench.node("linux-rt"), "server", targets / KIND)
    role.start("sundial", {})
    try:
        assert [(daemon.name, daemon.running) for daemon in role.daemons()] == [("gnomond", True)]
        role.hold()
        assert [daemon.running for daemon in role.daemons()] == [False]
        role.resume()
        assert [daemon.running for daemon in role.daemons()] == [True]
    finally:
        role.stop()
    assert [daemon.running for daemon in role.daemons()] == [False]


def test_whom_another_stack_serves_is_not_served_itself(targets: Path, bench: _Bench) -> None:
    script = targets / KIND / "clock" / "sundial" / "stack.sh"
    script.write_text(SCRIPT.replace("server_start", "elsewhere"))
    role = ClockRole(bench.node("linux-rt"), "server", targets / KIND)
    with pytest.raises(
        MeasurementError, match=r"sundial cannot do this: no server_start in stacks/sundial\.sh"
    ):
        role.start("sundial", {})
    role.stop()


@pytest.mark.parametrize("role_name", ["client", "server"])
@pytest.mark.parametrize(
    "name", ["moondial", "../evil", "stacks/../../evil", "", "sundial.sh", "Sundial", "a b"]
)
def test_a_name_that_no_file_has_is_refused_before_anything_is_done(
    targets: Path, bench: _Bench, tmp_path: Path, name: str, role_name: str
) -> None:
    (targets / KIND / "clock" / "evil.sh").write_text(f"touch {tmp_path}/evil\n")
    (targets / KIND / "clock" / "abacus").mkdir()
    (targets / KIND / "clock" / "abacus" / "stack.sh").write_text("")
    role = ClockRole(bench.node("linux-rt"), role_name, targets / KIND)
    said = f'unknown stack "{name}"; allowed: abacus, sundial (exit code 2)'
    with pytest.raises(BenchError, match=re.escape(said)):
        role.start(name, {})
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "run" / "stack").exists()
    with pytest.raises(MeasurementError, match="no stack runs"):
        role.hold()


@pytest.mark.parametrize("said", ["morning 200", "noon 5000"])
def test_it_does_not_lock_before_it_has_settled(
    targets: Path, bench: _Bench, tmp_path: Path, said: str
) -> None:
    (targets / KIND / "clock" / "sundial" / "sundial.arguments").write_text(f"{said}\n")
    with (
        pytest.raises(MeasurementError, match=r"sundiald: 3 observations.*; no answer of the server came"),
        _sundial(bench, tmp_path / "evidence") as running,
    ):
        running.wait_locked(0)


@pytest.mark.usefixtures("targets")
def test_a_daemon_that_ends_by_itself_is_named(bench: _Bench, tmp_path: Path) -> None:
    (tmp_path / "state" / "bin" / "sundiald").write_text("#!/bin/sh\necho noon\necho dusk >&2\nexit 9\n")
    with (
        pytest.raises(MeasurementError, match="sundial: sundiald on linux-rt ended with exit code 9: dusk"),
        _sundial(bench, tmp_path / "evidence") as running,
    ):
        running.require_running()


@pytest.mark.parametrize("kind", [each.parent for each in provisioning.TARGETS.glob(f"*/{STACKS}")])
def test_each_stack_of_a_kind_has_a_script_and_each_script_is_a_stack(kind: Path) -> None:
    scripts = [file.parent.name for file in (kind / "clock").glob("*/stack.*") if file.suffix != ".toml"]
    assert sorted(scripts) == sorted(load_clock_kind(kind).stacks)


def _as_open(bench: _Bench) -> Any:
    return SimpleNamespace(spec=bench.spec, node=bench.node, tool=bench.tool)
