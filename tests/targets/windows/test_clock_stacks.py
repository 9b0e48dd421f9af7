# SPDX-License-Identifier: Apache-2.0
"""Clock stacks of a Windows machine: its own time service, and one that a site has made up."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from hw.drivers.windows_ssh import HOME, WindowsSshNode
from hw.errors import BenchError, CapabilityError, MeasurementError
from hw.provisioning import TARGETS, Provisioner
from resources.clock_sync.config import Place, client_files
from resources.clock_sync.kind import load_clock_kind
from resources.clock_sync.role import ClockRole
from resources.clock_sync.settings import STACKS, ClockSettings, load_stack
from tests.patience import wait_until
from tests.targets.windows.conftest import TARGET

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
W32TIME = r"HKLM\SYSTEM\CurrentControlSet\Services\W32Time"


@pytest.fixture
def time_service(node: WindowsSshNode) -> Generator[str]:
    """Put a service of that name on the machine, with settings as Windows has them; return what it has."""
    program = "C:\\windows\\system32\\spoolsv.exe"
    node.run(["sc", "create", "W32Time", "binPath=", program, "type=", "own", "start=", "demand"])
    for key, value, kind, data in (
        ("Parameters", "NtpServer", "REG_SZ", "time.windows.com,0x9"),
        ("Config", "MinPollInterval", "REG_DWORD", "10"),
        (r"TimeProviders\NtpClient", "SpecialPollInterval", "REG_DWORD", "3600"),
    ):
        node.run(["reg", "add", rf"{W32TIME}\{key}", "/v", value, "/t", kind, "/d", data, "/f"])
    node.run(["copy", r"C:\windows\system32\where.exe", r"C:\windows\system32\w32tm.exe"])
    yield node.run(["reg", "query", W32TIME, "/s"]).stdout
    node.run(["net", "stop", "W32Time"], check=False)
    node.run(["sc", "delete", "W32Time"])
    node.run(["del", r"C:\windows\system32\w32tm.exe"])


def test_a_machine_without_time_service_cannot_have_its_stack(node: WindowsSshNode) -> None:
    with pytest.raises(CapabilityError, match="there is no Windows Time service"):
        load_clock_kind(TARGETS / "windows").require_offered("w32time", node)


def test_the_time_service_is_configured_and_given_back(
    node: WindowsSshNode, provisioner: Provisioner, time_service: str
) -> None:
    """By the stack's own scripts; also by the next provisioning, after a run that was killed."""
    kind = TARGETS / "windows"
    load_clock_kind(kind).require_offered("w32time", node)
    spec = load_stack("w32time", simulated=True, path=kind / STACKS)
    place = Place(server="10.77.0.50", interface="test0", phc="", simulated=True)
    files = client_files(kind / "clock", spec, ClockSettings().effective(spec), place)
    role = ClockRole(node, "client", kind)
    node.run(["net", "start", "W32Time"])
    role.start("w32time", files)
    found = node.run(["reg", "query", W32TIME, "/s"]).stdout
    for setting in ("10.77.0.50,0x9", "SpecialPollInterval    REG_DWORD    0x40", "FrequencyCorrectRate"):
        assert setting in found
    assert [(daemon.name, daemon.running) for daemon in role.daemons()] == [("W32Time", True)]
    role.stop()
    assert node.run(["reg", "query", W32TIME, "/s"]).stdout == time_service
    assert _time_service_runs(node), "it ran before"
    node.run(["net", "stop", "W32Time"])
    role.start("w32time", files)
    provisioner.restore()
    assert node.run(["reg", "query", W32TIME, "/s"]).stdout == time_service
    assert not _time_service_runs(node)


def _time_service_runs(node: WindowsSshNode) -> bool:
    return "RUNNING" in node.run(["sc", "query", "W32Time"]).stdout


SUNDIAL = r"""@rem A stack that does not exist: as a job it says what its configuration says, and ends.
@goto %~1
:start
if not exist "%run%\log" mkdir "%run%\log"
"%script%bw-job.exe" start "%run%\log" "%script%bw-job.exe" read "%run%\config\sundial.conf"
exit /b %ERRORLEVEL%
:hold
echo held>"%run%\log\err"
exit /b 0
:resume
exit /b 4
:status
call "%script%job_status.cmd" sundiald
exit /b 0
:stop
echo stopped>"%run%\log\stopped"
exit /b 0
"""


def test_a_made_up_stack_is_its_folder(node: WindowsSshNode, tmp_path: Path) -> None:
    """Its name is that of its script, and no way to another one."""
    kind = tmp_path / TARGET
    shutil.copytree(TARGETS / "windows" / "clock", kind / "clock")
    own = kind / STACKS / "sundial"
    own.mkdir()
    (own / "stack.toml").write_text('sync_interval_s = 0.0\nfiles = "sundial.conf"\n')
    (own / "sundial.conf").write_text("ask $server\n")
    (own / "stack.cmd").write_bytes(SUNDIAL.replace("\n", "\r\n").encode())
    spec = load_stack("sundial", simulated=True, path=kind / STACKS)
    place = Place(server="10.77.0.50", interface="test0", phc="", simulated=True)
    files = client_files(kind / "clock", spec, ClockSettings().effective(spec), place)
    role = ClockRole(node, "client", kind)
    for name in ("moondial", "../client", r"..\client"):
        with pytest.raises(
            BenchError, match=r"unknown stack .*; allowed: as-found, sundial, timeservice, w32"
        ):
            role.start(name, files)
        with pytest.raises(MeasurementError, match="no stack runs"):
            role.hold()
    role.start("sundial", files)
    try:
        wait_until(lambda: "ask 10.77.0.50" in role.lines("log/out"), "what the job reads")
        wait_until(lambda: [daemon.exit_code for daemon in role.daemons()] == [0], "its end")
        role.hold()
        (daemon,) = role.daemons()
        assert (daemon.name, daemon.running, daemon.last_words) == ("sundiald", False, "held")
        with pytest.raises(MeasurementError, match="resume"):
            role.resume()
    finally:
        role.stop()
    assert role.lines("log/stopped").strip() == "stopped"
    assert role.daemons() == []
    role.stop()
    node.run(["del", f"{HOME}/clock/script/stacks/sundial.cmd"])
