# SPDX-License-Identifier: Apache-2.0
"""A Windows machine as a node of a bench: Wine behind an sshd, by the driver that a real one has, too."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hw.drivers.windows_ssh import HOME, WindowsSshNode, cmd_line
from hw.errors import BenchError, CapabilityError, ConfigError, MeasurementError
from hw.provisioning import TARGETS, Provisioner
from hw.session import Bench, open_bench
from hw.tools import local_tool
from hw.virtual import network
from hw.virtual.bench_network import namespace_of
from resources.clocks.config import Place, client_files
from resources.clocks.kind import load_clock_kind
from resources.clocks.role import ClockRole
from resources.clocks.settings import STACKS, ClockSettings, load_stack
from tests.hw.test_hardware_bench import PATTERN
from tests.patience import HANG_S, STALL_S, wait_until

BENCH_FILE = Path(__file__).parent / "one_windows.yaml"
TARGET = "windows"
UNDO = f"{HOME}/state/undo"
MULTIMEDIA = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile"


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["C:/tools/bw-traffic.exe", "check", "C:/a/b.toml"], r"C:\tools\bw-traffic.exe check C:/a/b.toml"),
        (
            ["C:/Program Files/x.exe", "--interface", "Ethernet 2"],
            r'"C:\Program Files\x.exe" --interface "Ethernet 2"',
        ),
        (["mkdir", "C:\\a b\\"], r'mkdir "C:\a b\\"'),
        (["echo", "a&b"], 'echo "a&b"'),
        (["echo", ""], 'echo ""'),
    ],
)
def test_arguments_are_quoted_for_cmd(argv: Sequence[str], line: str) -> None:
    assert cmd_line(argv) == line


@pytest.mark.parametrize("argument", ['a"b', "%PATH%", "a!b", "two\nlines"])
def test_what_cmd_would_change_is_refused(argument: str) -> None:
    with pytest.raises(ConfigError, match="cannot be an argument on a Windows node"):
        cmd_line(["echo", argument])


@pytest.fixture(scope="module")
def bench() -> Generator[Bench]:
    """Open the bench with the machine on."""
    with open_bench(BENCH_FILE) as opened:
        opened.power_on([TARGET])
        yield opened


@pytest.fixture
def node(bench: Bench) -> WindowsSshNode:
    """Return the machine, switched on again where a test has cut its power."""
    bench.power_on([TARGET])
    found = bench.node(TARGET)
    assert isinstance(found, WindowsSshNode)
    return found


@pytest.mark.simulated
def test_a_command_is_cmds_and_has_an_exit_code(node: WindowsSshNode) -> None:
    assert node.run(["echo", "a b & c"]).stdout.strip() == '"a b & c"'
    assert node.run(["cmd", "/c", "exit", "7"], check=False).exit_code == 7
    with pytest.raises(BenchError, match="windows: dir C:/nowhere: exit code 1"):
        node.run(["dir", "C:/nowhere"])


@pytest.mark.simulated
def test_files_go_there_and_back(node: WindowsSshNode, tmp_path: Path) -> None:
    file = tmp_path / "some file.bin"
    file.write_bytes(bytes(range(256)) * 100)
    remote = node.bring(file)
    assert "some file.bin" in node.files(f"{HOME}/replay")
    back = tmp_path / "back.bin"
    node.get(remote, back)
    assert back.read_bytes() == file.read_bytes()
    assert node.files(node.fresh_folder("recv")) == []


@pytest.mark.simulated
@pytest.mark.parametrize("text", ["good", "bad"])
def test_a_tool_answers_as_on_linux(bench: Bench, node: WindowsSshNode, tmp_path: Path, text: str) -> None:
    """The same bytes on stdout, the same reason on stderr, the same exit code."""
    pattern = tmp_path / "pattern.toml"
    pattern.write_text(
        PATTERN if text == "good" else PATTERN.replace("period_us = 100000", "period_us = 0", 1)
    )
    tool = local_tool("bw-traffic")
    there = node.run([bench.tool(TARGET), "check", node.bring(pattern)], check=False)
    here = subprocess.run([tool, "check", pattern], capture_output=True, text=True, check=False)
    assert here.returncode == (0 if text == "good" else 2)
    assert (there.exit_code, there.stdout) == (here.returncode, here.stdout)
    assert there.stderr.partition("pattern.toml")[2] == here.stderr.rstrip("\n").partition("pattern.toml")[2]


@pytest.mark.simulated
@pytest.mark.slow
def test_clock_is_this_machines_own_and_the_tool_ends_when_asked(
    bench: Bench, node: WindowsSshNode, tmp_path: Path
) -> None:
    """Two-way time transfer has to find 0 within its bound: Wine shows this machine's own clock."""
    argv = [bench.tool(TARGET), "offset", "--serve", "10.78.0.110:19999", "--priority", "50"]
    server = node.start(argv, tmp_path / "serve")
    server.wait_ready(HANG_S)
    peer = ["offset", "--peer", "10.78.0.110:19999", "--duration-ms", "1500", "--priority", "60"]
    client = bench.node("switch").start([bench.tool("switch"), *peer], tmp_path / "peer")
    assert client.wait(HANG_S) == 0
    found = result(client.fetch())
    server.stop()
    assert server.wait(HANG_S) == 0
    assert result(server.fetch())["complete"] is True
    assert found["valid"] is True
    assert abs(found["offset_ns"]) <= found["bound_ns"]


@pytest.mark.simulated
@pytest.mark.slow
def test_the_system_clock_is_bracketed_by_the_performance_counter(bench: Bench, node: WindowsSshNode) -> None:
    argv = [bench.tool(TARGET, "bw-clock"), "compare", "--device", "realtime", "--reference", "monotonic-raw"]
    answer = json.loads(
        node.run([*argv, "--iterations", "200", "--pause-max-us", "100"]).stdout.splitlines()[-1]
    )
    assert answer["valid"] is True
    assert answer["read"] == "bracketed"
    assert answer["iterations"] == 200


@pytest.mark.simulated
@pytest.mark.slow
def test_a_tool_that_cannot_be_started_or_fails_is_told(
    node: WindowsSshNode, bench: Bench, tmp_path: Path
) -> None:
    with pytest.raises(
        BenchError, match=r"exit code 127 before it was ready: bw-job: cannot start C:/no\.exe"
    ):
        node.start(["C:/no.exe"], tmp_path / "no").wait_ready(HANG_S)
    job = node.start([bench.tool(TARGET), "recv", "C:/no-plan.toml"], tmp_path / "recv")
    assert job.wait(HANG_S) == 2
    job.fetch()
    assert "C:/no-plan.toml" in (tmp_path / "recv.err").read_text()


@pytest.mark.simulated
@pytest.mark.slow
def test_what_a_killed_run_left_is_ended(bench: Bench, node: WindowsSshNode, tmp_path: Path) -> None:
    """Its tools alone: another program with the same id would not be touched."""
    witness = node.start([bench.tool(TARGET), "witness", "--priority", "50"], tmp_path / "witness")
    witness.wait_ready(HANG_S)
    assert running(bench, "bw-traffic.exe")
    node.end_leftovers()
    wait_until(lambda: not running(bench, "bw-traffic.exe"), "the end of the tool")
    assert node.files(node.job_folder) == []


@pytest.mark.simulated
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["stop", "end"])
def test_a_process_that_only_has_the_id_of_a_job_is_left_alone(
    bench: Bench, node: WindowsSshNode, tmp_path: Path, verb: str
) -> None:
    """Ids are used again after a reboot; then the folder of a job names a process of somebody else."""
    node.end_leftovers()
    witness = node.start([bench.tool(TARGET), "witness", "--priority", "50"], tmp_path / "witness")
    witness.wait_ready(HANG_S)
    (job,) = node.files(node.job_folder)
    pid = node.read(f"{node.job_folder}/{job}/pid").stdout.split()[0]
    stale = node.fresh_folder("stale/job-of-yesterday")
    for text in (f"{pid} 132000000000000000\n", f"{pid}\n"):  # created in 2019; of an earlier version
        (tmp_path / "pid").write_text(text)
        node.put(tmp_path / "pid", f"{stale}/pid")
        tool = next(name for name in node.files(f"{HOME}/bin") if name.startswith("bw-job-"))
        argument = stale if verb == "stop" else stale.removesuffix("of-yesterday")
        node.run([f"{HOME}/bin/{tool}", verb, argument.replace("/", "\\")])
    time.sleep(STALL_S)
    assert running(bench, "bw-traffic.exe")
    witness.stop()
    assert witness.wait(HANG_S) == 0


@pytest.mark.simulated
@pytest.mark.slow
def test_a_job_outside_the_folder_of_the_tools_is_ended_too(
    bench: Bench, node: WindowsSshNode, tmp_path: Path
) -> None:
    """As `w32tm` is, the log of a clock stack."""
    node.start(["ping", "-n", "600", "10.78.0.254"], tmp_path / "ping")
    wait_until(lambda: bool(running(bench, "ping")), "the job")
    node.end_leftovers()
    assert not running(bench, "ping")


@pytest.mark.simulated
@pytest.mark.slow
def test_names_of_every_language(provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path) -> None:
    """A registry key, a file and an argument of a job outside ASCII, and outside any one code page."""
    provisioner.facts()
    key, name = r"HKLM\SOFTWARE\Benchwright Prüfung 測試", "Größe 大小"
    node.run(["reg", "add", key, "/v", name, "/t", "REG_DWORD", "/d", "7", "/f"])
    settings = tmp_path / "Einstellungen 設定.conf"
    settings.write_text(f'registry "{key}\\{name}" 5\n')
    program = f"{HOME}/provision/bw-provision.exe"
    remote = node.bring(settings)
    try:
        done = node.run([program, "--settings", remote, "apply"])
        assert json.loads(done.stdout.splitlines()[0])["found"] == "7"
        assert node.run(["reg", "query", key, "/v", name]).stdout.split()[-1] == "0x5"
        node.run([program, "restore"])
        assert node.run(["reg", "query", key, "/v", name]).stdout.split()[-1] == "0x7"
    finally:
        node.run(["reg", "delete", key, "/f"])
    job = node.start([program, "--interface", "Überall 網路", "check"], tmp_path / "job")
    assert job.wait(HANG_S) == 2
    job.fetch()
    assert "there is no interface Überall 網路" in (tmp_path / "job.err").read_text()


@pytest.mark.simulated
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "data"), [("REG_SZ", "a text that is longer than a number"), ("REG_BINARY", "0102")]
)
def test_a_value_that_cannot_be_read_is_not_taken_for_none(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path, kind: str, data: str
) -> None:
    """Provisioning once took it for absent, wrote over it, and its restore deleted it."""
    provisioner.facts()
    key = r"HKLM\SOFTWARE\BenchwrightUnreadable"
    node.run(["reg", "add", key, "/v", "Value", "/t", kind, "/d", data, "/f"])
    before = node.run(["reg", "query", key, "/v", "Value"]).stdout
    settings = tmp_path / "settings.conf"
    settings.write_text(f'registry "{key}\\Value" 5\n')
    program = f"{HOME}/provision/bw-provision.exe"
    try:
        done = node.run([program, "--settings", node.bring(settings), "apply"], check=False)
        item = json.loads(done.stdout.splitlines()[0])
        assert (done.exit_code, item["status"], item["changed"]) == (1, "wrong", False), item
        assert "may not be read" in item["note"]
        node.run([program, "restore"])
        assert node.run(["reg", "query", key, "/v", "Value"]).stdout == before
    finally:
        node.run(["reg", "delete", key, "/f"])


@pytest.mark.simulated
@pytest.mark.slow
def test_an_undo_file_that_is_none_stays_and_is_told(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    provisioner.facts()
    other = tmp_path / "undo"
    other.write_text("what somebody else has put here\n")
    node.put(other, UNDO)
    try:
        done = node.run([f"{HOME}/provision/bw-provision.exe", "restore"], check=False)
        assert done.exit_code == 1
        assert "it is no undo file" in done.stderr
        assert node.read(UNDO).stdout == other.read_text()
    finally:
        node.run(["del", UNDO.replace("/", "\\")])


def running(bench: Bench, program: str) -> list[int]:
    """Return the ids, on this machine, of the programs of that name that run in the Windows machine."""
    pids = network.processes(namespace_of(bench.spec.name, TARGET))
    return [
        pid
        for pid in pids
        if program in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[0]
    ]


def result(answers: Path) -> dict[str, Any]:
    """Return the result of a tool."""
    return json.loads(answers.read_text().splitlines()[-1])


@pytest.fixture
def provisioner(bench: Bench, node: WindowsSshNode) -> Provisioner:
    """Return what provisions the machine."""
    return Provisioner(node, bench.spec.targets[TARGET])


@pytest.mark.simulated
@pytest.mark.slow
def test_provisioning_is_stable_and_gives_back_what_it_found(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    before = provisioner.facts()
    first = provisioner.prepare(tmp_path)
    assert first.changed == 2, "NetworkThrottlingIndex and SystemResponsiveness"
    assert first.facts["settings"][f"registry {MULTIMEDIA}\\NetworkThrottlingIndex"] == "4294967295"
    assert first.facts["versions"]["wine"]
    assert provisioner.check() == []
    again = node.run([f"{HOME}/provision/provision.cmd", "--interface", "test0", "apply"])
    assert json.loads(again.stdout.splitlines()[-1])["changed"] == 0
    provisioner.restore()
    assert provisioner.facts() == before
    assert len(provisioner.check()) == 2
    assert not node.read(UNDO).stdout
    absent = " ".join(first.remarks)
    for what in ("W32Time", "power scheme", "firewall", "*InterruptModeration", "TcpAckFrequency"):
        assert f"{what}" in absent


@pytest.mark.simulated
@pytest.mark.slow
def test_a_value_that_was_not_there_goes_again_and_a_torn_record_is_no_harm(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    before = provisioner.facts()
    value = f"{MULTIMEDIA}\\SystemResponsiveness"
    node.run(["reg", "delete", MULTIMEDIA, "/v", "SystemResponsiveness", "/f"])
    try:
        provisioner.prepare(tmp_path)
        assert f"registry\t{value}\tabsent\tend" in node.read(UNDO).stdout
        undo = tmp_path / "undo"
        undo.write_text(node.read(UNDO).stdout + f"registry\t{value}\t77")  # cut off before its end
        node.put(undo, UNDO)
        provisioner.restore()
        assert (
            node.run(["reg", "query", MULTIMEDIA, "/v", "SystemResponsiveness"], check=False).exit_code == 1
        )
    finally:
        node.run(
            ["reg", "add", MULTIMEDIA, "/v", "SystemResponsiveness", "/t", "REG_DWORD", "/d", "20", "/f"]
        )
    assert provisioner.facts() == before


@pytest.mark.simulated
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interface", "no such card", "check"], "there is no interface no such card"),
        (["--colour", "red", "check"], "unknown option --colour"),
        (["frob"], "unknown verb frob"),
        ([], "one verb is needed"),
    ],
)
def test_wrong_arguments_of_provisioning(
    provisioner: Provisioner, node: WindowsSshNode, arguments: list[str], message: str
) -> None:
    provisioner.facts()  # the files are there
    done = node.run([f"{HOME}/provision/provision.cmd", *arguments], check=False)
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


@pytest.mark.simulated
@pytest.mark.slow
def test_settings_of_a_site_are_read_and_wrong_ones_named(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    """A driver with standardised keywords is found by its adapter; `check` tells, and changes nothing."""
    facts = provisioner.facts()
    guid = node.run(
        ["reg", "query", r"HKLM\Software\Microsoft\Windows NT\CurrentVersion\NetworkCards", "/s"]
    ).stdout
    cards = [line.split()[-1] for line in guid.splitlines() if "Description" in line or "ServiceName" in line]
    key = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}\0001"
    test_guid = cards[cards.index("test0") + 1]
    node.run(["reg", "add", key, "/v", "NetCfgInstanceId", "/d", test_guid, "/f"])
    node.run(["reg", "add", key, "/v", "*InterruptModeration", "/d", "1", "/f"])
    node.run(["reg", "add", rf"{key}\Ndi\Params\*EEE", "/f"])
    try:
        found = {item["item"].rsplit("\\", 1)[-1]: item for item in provisioner.check()}
        assert found["*InterruptModeration"]["found"] == "1"
        assert found["*EEE"]["found"] == "absent"
        assert "*FlowControl" not in found, "this driver has no such keyword"
    finally:
        node.run(["reg", "delete", key, "/f"])
    assert provisioner.facts() == facts
    wrong = tmp_path / "wrong.conf"
    wrong.write_text("system build >=17134\ncolour red 1\n")
    done = node.run(
        [f"{HOME}/provision/provision.cmd", "--settings", node.bring(wrong), "check"], check=False
    )
    assert (done.exit_code, "wrong.conf:2: unknown kind" in done.stderr) == (2, True)


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


@pytest.mark.simulated
@pytest.mark.slow
def test_a_machine_without_time_service_cannot_have_its_stack(node: WindowsSshNode) -> None:
    with pytest.raises(CapabilityError, match="there is no Windows Time service"):
        load_clock_kind(TARGETS / "windows").require_offered("w32time", node)


@pytest.mark.simulated
@pytest.mark.slow
def test_the_time_service_is_configured_and_given_back(
    node: WindowsSshNode, provisioner: Provisioner, time_service: str
) -> None:
    """By the stack's own scripts; also by the next provisioning, after a run that was killed."""
    kind = TARGETS / "windows"
    load_clock_kind(kind).require_offered("w32time", node)
    spec = load_stack("w32time", simulated=True, path=kind / STACKS)
    place = Place(server="10.77.0.50", interface="test0", phc="", simulated=True)
    files = client_files(kind / "clock" / "config", spec, ClockSettings().effective(spec), place)
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


@pytest.mark.simulated
@pytest.mark.slow
def test_a_made_up_stack_takes_a_row_a_template_and_a_script(node: WindowsSshNode, tmp_path: Path) -> None:
    """Its name is that of its script, and no way to another one."""
    kind = tmp_path / TARGET
    shutil.copytree(TARGETS / "windows" / "clock", kind / "clock")
    with (kind / STACKS).open("a") as rows:
        rows.write('\n[sundial]\nsync_interval_s = 0.0\nfiles = "sundial.conf"\n')
    (kind / "clock/config/sundial.conf").write_text("ask $server\n")
    (kind / "clock/stacks/sundial.cmd").write_bytes(SUNDIAL.replace("\n", "\r\n").encode())
    spec = load_stack("sundial", simulated=True, path=kind / STACKS)
    place = Place(server="10.77.0.50", interface="test0", phc="", simulated=True)
    files = client_files(kind / "clock" / "config", spec, ClockSettings().effective(spec), place)
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


@pytest.mark.simulated
@pytest.mark.slow
def test_power(bench: Bench, node: WindowsSshNode, tmp_path: Path) -> None:
    """No program outlives a power cut; the disk does, so that an undo file is found by the next start."""
    file = tmp_path / "file"
    file.write_text("x")
    node.bring(file)
    node.start([bench.tool(TARGET), "witness"], tmp_path / "witness").wait_ready(HANG_S)
    bench.power_off(TARGET)
    assert network.processes(namespace_of(bench.spec.name, TARGET)) == []
    with pytest.raises(BenchError, match="has lost its power"):
        node.run(["ver"])
    bench.power_on([TARGET])
    again = bench.node(TARGET)
    assert "file" in again.files(f"{HOME}/replay")
    assert "Windows" in again.run(["ver"]).stdout
