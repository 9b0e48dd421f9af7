# SPDX-License-Identifier: Apache-2.0
"""The clock stacks of a kind of target: which there are, how they are put on, what a machine lacks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.errors import CapabilityError, ConfigError, MeasurementError
from hw.provisioning import TARGETS
from resources.clock_sync.config import Place, client_files, server_files
from resources.clock_sync.kind import load_clock_kind
from resources.clock_sync.role import ClockRole
from resources.clock_sync.settings import STACKS, ClockSettings, load_stack
from tests.fake_bench import FakeBench

WINDOWS, LINUX = TARGETS / "windows", TARGETS / "linux-rt"
FOLDER = "C:/Program Files/Benchwright/clock"
PLACE = Place(server="10.77.0.50", interface="Ethernet 2", phc="", simulated=False)


def _node(exit_code: int = 0, stdout: str = "", stderr: str = "") -> Any:
    """Return a target that answers every command alike."""
    return FakeBench(answer=lambda _node, _argv: (exit_code, stdout, stderr)).node("target")


def test_each_kind_has_stacks_of_its_own() -> None:
    linux, windows = load_clock_kind(LINUX), load_clock_kind(WINDOWS)
    assert {"chrony", "ntp-user", "ptp-software", "phc2sys"} < set(linux.stacks)
    assert windows.stacks == ("as-found", "timeservice", "w32time")
    assert windows.log_file("bw-timed.log") == "log/out"
    assert linux.log_file("bw-timed.log") == "bw-timed.log"
    assert (linux.transfer, windows.transfer) == ("archive", "files")
    assert windows.client == (f"{FOLDER}/script/client.cmd",)
    assert windows.server == ()


def test_a_stack_that_the_kind_has_not_is_a_missing_capability() -> None:
    for kind, stack in ((WINDOWS, "chrony"), (LINUX, "w32time"), (LINUX, "as-found")):
        with pytest.raises(CapabilityError, match=f"{kind.name}/clock: .* no clock stack '{stack}'"):
            load_clock_kind(kind).require_offered(stack)


def test_what_a_machine_lacks_for_a_stack_is_a_missing_capability() -> None:
    kind = load_clock_kind(WINDOWS)
    without = _node(exit_code=1)
    with pytest.raises(CapabilityError, match=r"w32time: target: there is no Windows Time service"):
        kind.require_offered("w32time", without)
    assert without.ran == [["sc", "query", "W32Time"]]
    kind.require_offered("w32time", _node())
    kind.require_offered("as-found", without)
    assert len(without.ran) == 1, "it needs nothing"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('transfer = "files"', 'transfer = "pigeon"', "transfer: must be one of archive, files"),
        ('machine = "', 'needs.sundial.command = "x"\nmachine = "', "needs: unknown key"),
        ("folder = ", "place = ", "folder: missing"),
        ('machine = "', 'colour = "red"\nmachine = "', "colour: unknown key"),
        ("schema =", "schema", "clock.toml"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "clock").mkdir()
    text = (WINDOWS / "clock" / "clock.toml").read_text()
    assert old in text
    (tmp_path / "clock" / "clock.toml").write_text(text.replace(old, new, 1))
    (tmp_path / STACKS / "as-found").mkdir()
    (tmp_path / STACKS / "as-found" / "stack.toml").write_text("sync_interval_s = 0.0\n")
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_clock_kind(tmp_path)


def test_a_kind_without_a_word_about_it_has_none(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="this kind of target has no clock stacks"):
        load_clock_kind(tmp_path)


def test_a_kind_without_a_server_can_be_none() -> None:
    with pytest.raises(CapabilityError, match="windows: this kind of machine can be no time server"):
        ClockRole(_node(), "server", WINDOWS)


def _windows_files() -> dict[str, str]:
    spec = load_stack("w32time", False, WINDOWS / STACKS)
    settings = ClockSettings().effective(spec)
    return client_files(WINDOWS / "clock", spec, settings, PLACE)


def test_the_time_services_settings_are_filled_in() -> None:
    files = _windows_files()
    assert files["server"].splitlines()[-1] == "10.77.0.50"
    assert all(line.startswith("#") for line in files["server"].splitlines()[:-1]), "client.cmd skips these"
    text = files["w32time.conf"]
    assert r'Parameters\NtpServer" "10.77.0.50,0x9"' in text
    assert re.search(r'NtpClient\\SpecialPollInterval" 64$', text, re.MULTILINE)
    assert re.search(r'Config\\M..PollInterval" 6$', text, re.MULTILINE)
    settings = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert not [line for line in settings if "$" in line]
    assert settings[0].split() == ["service", "W32Time", "stopped"], "it reads its settings when it starts"
    assert settings[-1].split() == ["service", "W32Time", "running"]


@pytest.mark.parametrize("kind", [WINDOWS, LINUX])
def test_the_time_service_asks_the_time_server_at_the_interval(kind: Path) -> None:
    spec = load_stack("timeservice", True, kind / STACKS)
    settings = ClockSettings(sync_interval_s=2).effective(spec)
    files = client_files(kind / "clock", spec, settings, PLACE)
    asked = ["--server", "10.77.0.50", "--interval-ms", "2000", "--asymmetry-percent"]
    assert files["bw-timed.arguments"].split() == [*asked, "10", "--log-exchanges"]
    emulated = client_files(kind / "clock", spec, settings, replace(PLACE, simulated=True))
    assert emulated["bw-timed.arguments"].split()[:6] == [*asked, "50"], "emulated ways differ by more"
    served = load_stack(spec.served, simulated=True)
    assert set(server_files(LINUX / "clock", served, settings, PLACE)) == {"chrony-server.conf"}


def test_the_time_server_serves_it_as_chrony() -> None:
    spec = load_stack("w32time", False, WINDOWS / STACKS)
    served = load_stack(spec.served, simulated=False)
    files = server_files(LINUX / "clock", served, ClockSettings().effective(spec), PLACE)
    assert set(files) == {"chrony-server.conf"}


def test_files_are_brought_one_by_one_where_there_is_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    def tool(name: str, machine: str) -> Path:
        assert machine == "x86_64-windows"
        assert name in ("bw-provision", "bw-job", "bw-timed", "bw-timectl")
        return Path(__file__)

    monkeypatch.setattr("resources.clock_sync.role.local_tool", tool)
    node = _node()
    role = ClockRole(node, "client", WINDOWS)
    role.start("w32time", _windows_files())
    assert node.ran == [[f"{FOLDER}/script/client.cmd", "start", "w32time"]]
    assert {f"{FOLDER}/config/w32time.conf", f"{FOLDER}/script/client.cmd"} < set(node.there)
    assert f"{FOLDER}/script/stacks/w32time.cmd" in node.there
    assert not [name for name in node.there if name.endswith(".toml")]
    assert role.lines("log/out") == ""
    node.there[f"{FOLDER}/log/out"] = b"Tracking 10.77.0.50\r\n10:11:12, +00.0000120s\r\n"
    assert role.lines("log/out", 2) == "10:11:12, +00.0000120s\n"
    assert role.count_lines("log/out") == 2


def test_logs_are_fetched_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node = _node()
    node.there = {f"{FOLDER}/log/out": b"1\n", f"{FOLDER}/config/server": b"10.77.0.50\n"}
    role = ClockRole(node, "client", WINDOWS)
    assert [file.name for file in role.fetch_logs(tmp_path)] == ["log-out", "config-server"]


def test_a_node_cannot_name_files_of_this_machine(tmp_path: Path) -> None:
    """What its `ls` says is the target's word, and it may lie."""
    lies = ["../../../etc/passwd", "/etc/passwd", "..", "chrony/../../x", "a/b/c", "-rf", ".hidden"]
    node = _node(stdout="\n".join(["out.log", *lies, "chrony/tracking.log"]))
    for name in (*lies, "out.log", "chrony/tracking.log"):
        node.there[f"/run/benchwright/clock/{name}"] = b"x"
    role = ClockRole(node, "client", LINUX)
    copies = role.fetch_logs(tmp_path / "inside")
    assert [file.name for file in copies] == ["out.log", "chrony-tracking.log"]
    assert sorted(tmp_path.rglob("*")) == sorted([tmp_path / "inside", *copies])


@pytest.mark.parametrize(("exit_code", "kind"), [(3, MeasurementError), (4, MeasurementError)])
def test_what_a_script_lacks_is_named(exit_code: int, kind: type[Exception]) -> None:
    node = _node(exit_code, "", "client.cmd: there is no Windows Time service W32Time")
    role = ClockRole(node, "client", LINUX)
    with pytest.raises(kind, match=r"clock of target: hold: client\.cmd: there is no Windows Time service"):
        role.hold()


@pytest.mark.parametrize("script", sorted(WINDOWS.rglob("*.cmd")), ids=lambda file: file.name)
def test_scripts_for_cmd_have_its_line_ends(script: Path) -> None:
    """Without them cmd.exe misses labels."""
    text = script.read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n") > 2


def test_fifo_is_for_a_stack_whose_files_have_a_place_for_it() -> None:
    spec = load_stack("chrony", simulated=True)
    files = client_files(LINUX / "clock", spec, ClockSettings(fifo_priority=50).effective(spec), PLACE)
    assert "\nsched_priority 50\n" in files["chrony-client.conf"]
    plain = client_files(LINUX / "clock", spec, ClockSettings().effective(spec), PLACE)
    assert "sched_priority" not in plain["chrony-client.conf"]
    other = load_stack("ptp-software", simulated=True)
    with pytest.raises(ConfigError, match="clock stack ptp-software: fifo_priority: its files have no place"):
        client_files(LINUX / "clock", other, ClockSettings(fifo_priority=50).effective(other), PLACE)
