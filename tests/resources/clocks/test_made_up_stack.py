# SPDX-License-Identifier: Apache-2.0
"""A clock stack that does not exist: a row, a template and a script in a kind's folder; no program changes.

Its daemon, the script that starts it and its log are real files on this machine.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw import provisioning
from hw.bench import load_bench
from hw.errors import CapabilityError, MeasurementError
from hw.fields import Fields
from hw.protocols import Completed
from reports.clock_sync.log_formats import LOG_READERS
from resources.clocks import settings, stack, sync
from resources.clocks.kind import load_clock_kind
from resources.clocks.settings import ClockSettings
from resources.clocks.stack import ClockStack
from resources.clocks.sync import ClockLab
from resources.edges.settings import edge_times
from resources.profiles import load_profile
from resources.replay import clock as replay_clock
from resources.replay.clock import synchronised_stacks
from resources.replay.clock_networks import server_address

ROOT = Path(__file__).resolve().parents[3]
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
KIND = "courtyard"
ROW = """\
[sundial]
sync_interval_s = 2.0
interval_min_s = 1.0
interval_max_s = 60.0
served_as = "chrony"
files = "sundial.conf"
tools = "bw-gnomon"
can_resume = false
multicast = true

[sundial.logs.sundiald]
file = "sundial.log"
format = "bw-ntp-user"
settled_states = "noon"

[sundial.answers]
file = "shade.log"
format = "chrony-measurements"

[sundial.lock.simulated]
offset_ns = 1000
consecutive = 3
source = "nobody"

[sundial.lock.hardware]
offset_ns = 1000
consecutive = 3
source = "nobody"
"""
SCRIPT = """\
set -eu
run=$(dirname "$0")/..
case $1 in
start)
    [ "$2" = sundial ] || { echo "unknown stack $2" >&2; exit 2; }
    read -r state offset_ns <"$run/config/sundial.conf"
    for second in 1 2 3; do
        echo '{"type":"poll","time_tai_ns":'"${second}000000000"',"offset_ns":'"$offset_ns"',"delay_ns":20,'
        echo '"freq_ppb":5,"state":"'"$state"'"}'
    done | paste -d '' - - >"$run/sundial.log"
    echo true >"$run/running"
    ;;
hold) echo false >"$run/running" ;;
status)
    running=$(cat "$run/running")
    echo '{"type":"daemon","name":"sundiald","running":'"$running"',"exit_code":null,"last_words":"dusk"}'
    ;;
stop) rm -f "$run/running" ;;
esac
"""


class _Node:
    """A target on this machine, in a folder; or a time server that only notes what it is asked."""

    def __init__(self, name: str, here: Path | None = None) -> None:
        self.name = name
        self.here = here
        self.ran: list[list[str]] = []

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> Completed:
        del check
        self.ran.append([*argv])
        if argv[0].endswith("bw-setclock"):
            return Completed(tuple(argv), 0, '{"tai_utc_s":37}', "")
        if self.here is None:
            return Completed(tuple(argv), 0, "", "")
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout_s)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

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
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kinds of target: Linux, which the time server is, and one with the made-up stack."""
    folder = tmp_path / "targets"
    for part in ("clock", "provision"):
        shutil.copytree(provisioning.TARGETS / "linux-rt" / part, folder / "linux-rt" / part)
    clock = folder / KIND / "clock"
    (clock / "config").mkdir(parents=True)
    run = tmp_path / "run"
    (clock / "clock.toml").write_text(
        f'schema = "benchwright.clock_kind/1"\nfolder = "{run}"\nclient = "sh {run}/script/client.sh"\n'
        'transfer = "archive"\n'
    )
    (clock / "stacks.toml").write_text(ROW)
    (clock / "client.sh").write_text(SCRIPT)
    (clock / "config" / "sundial.conf").write_text("noon 200\n")
    for module in (settings, stack, sync, replay_clock):
        monkeypatch.setattr(module, "TARGETS", folder)
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
    times = edge_times(Fields(table, "profiles.toml", "ci.edges"))
    assert times is not None
    assert times.clocks == ("sundial",)


@pytest.mark.usefixtures("targets")
def test_it_is_started_judged_cut_off_and_stopped(bench: _Bench, tmp_path: Path) -> None:
    with _sundial(bench, tmp_path / "evidence") as running:
        assert "linux-rt bw-gnomon" in bench.tools
        assert (tmp_path / "run" / "config" / "sundial.conf").read_text() == "noon 200\n"
        lock = running.wait_locked(0)
        assert "below 1 us in 3 consecutive" in lock.criterion
        running.require_running()
        running.cut_off()
        running.require_running()  # its daemon has ended, as it should
    assert not (tmp_path / "run" / "running").exists()
    file, form = running.servo_log
    text = (tmp_path / "evidence" / file).read_text()
    (series,) = LOG_READERS[form](text, 37).series
    assert list(series.offset_ns) == [200, 200, 200]
    served = [argv for argv in bench.nodes["grandmaster"].ran if "start" in argv]
    assert [argv[-2:] for argv in served] == [["start", "chrony"]]


@pytest.mark.parametrize("said", ["morning 200", "noon 5000"])
def test_it_does_not_lock_before_it_has_settled(
    targets: Path, bench: _Bench, tmp_path: Path, said: str
) -> None:
    (targets / KIND / "clock" / "config" / "sundial.conf").write_text(f"{said}\n")
    with (
        pytest.raises(MeasurementError, match=r"sundiald: 3 observations.*; no answer of the server came"),
        _sundial(bench, tmp_path / "evidence") as running,
    ):
        running.wait_locked(0)


@pytest.mark.usefixtures("targets")
def test_a_daemon_that_ends_by_itself_is_named(bench: _Bench, tmp_path: Path) -> None:
    with _sundial(bench, tmp_path / "evidence") as running:
        (tmp_path / "run" / "running").write_text("false\n")
        with pytest.raises(MeasurementError, match="sundial: sundiald on linux-rt is gone: dusk"):
            running.require_running()


def _as_open(bench: _Bench) -> Any:
    return SimpleNamespace(spec=bench.spec, node=bench.node, tool=bench.tool)
