# SPDX-License-Identifier: Apache-2.0
"""What a node of Windows does: commands, files, programs, the machine's clock and power."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hw.drivers.windows_ssh import HOME, WindowsSshNode, cmd_line
from hw.errors import BenchError, ConfigError
from hw.session import Bench
from hw.tools import local_tool
from hw.virtual import network
from hw.virtual.bench_network import namespace_of
from tests.hw.test_hardware_bench import PATTERN
from tests.patience import HANG_S, STALL_S, wait_until
from tests.targets.windows.conftest import TARGET


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
