# SPDX-License-Identifier: Apache-2.0
"""The verb work: what its processes leave, how often they start, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment
from tests.patience import HANG_S
from tests.traffic_gen.two_ends import Json, end, ended

SMALL = ("--cpu-ms", "0", "--read-files", "3", "--read-bytes", "100", "--write-files", "2")
FOR_EVER = ("--duration-ms", "604800000")


def worked(bw_traffic: Path, folder: Path, *options: str) -> Json:
    """Run it to its end, and return its result."""
    with end(bw_traffic, "work", "--folder", folder, *options) as (process, ready):
        assert ready["type"] == "ready"
        code, result, errors = ended(process)
    assert (code, errors, result["valid"], result["complete"]) == (0, "", True, True)
    return result


def test_it_counts_what_its_processes_do_and_removes_their_files(bw_traffic: Path, tmp_path: Path) -> None:
    (tmp_path / "of-others").write_text("kept")
    result = worked(bw_traffic, tmp_path, *SMALL, "--write-bytes", "70000", "--duration-ms", "200", "--sync")
    assert result["processes"] >= 1
    assert result["read_bytes"] == result["processes"] * 300
    assert result["written_bytes"] == result["processes"] * 140_000
    assert result["jobs"] == len(os.sched_getaffinity(0))
    assert result["duration_ns"] >= 200_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["of-others"]


def test_rate_is_not_exceeded(bw_traffic: Path, tmp_path: Path) -> None:
    result = worked(bw_traffic, tmp_path, *SMALL, "--jobs", "1", "--rate-hz", "10", "--duration-ms", "250")
    assert 1 <= result["processes"] <= 3  # at 0, 100 and 200 ms


def test_one_of_its_processes(bw_traffic: Path, tmp_path: Path) -> None:
    """It takes the CPU time that was asked for, and leaves the files of its slot."""
    options = (
        "--slot",
        "3",
        "--cpu-ms",
        "30",
        "--read-files",
        "0",
        "--write-files",
        "2",
        "--write-bytes",
        "70000",
    )
    process = subprocess.Popen([bw_traffic, "work", "--step", "--folder", tmp_path, *options])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert used.ru_utime + used.ru_stime >= 0.029  # the kernel's two parts of it are cut off to a microsecond
    files = sorted(tmp_path.iterdir())
    assert [(path.name, path.stat().st_size) for path in files] == [
        (f"bw-work-out-3-{number}", 70_000) for number in range(2)
    ]
    first, second = (path.read_bytes() for path in files)
    assert first != second
    assert first[:1000] != first[65_536:66_536]


def test_cpu_time_of_its_processes_is_counted(bw_traffic: Path, tmp_path: Path) -> None:
    result = worked(bw_traffic, tmp_path, "--jobs", "1", "--cpu-ms", "20", "--duration-ms", "100")
    assert result["cpu_ns"] >= result["processes"] * 19_000_000
    assert result["processes"] >= 1


def test_it_ends_when_it_is_asked_to(bw_traffic: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    with end(bw_traffic, "work", "--folder", folder, *SMALL, *FOR_EVER) as (process, _):
        process.send_signal(signal.SIGTERM)
        code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["stopped before its end"])
    assert not folder.exists()


def test_its_processes_end_where_it_is_killed(bw_traffic: Path, tmp_path: Path) -> None:
    with end(bw_traffic, "work", "--folder", tmp_path, *SMALL, *FOR_EVER) as (process, _):
        process.kill()
        process.communicate(timeout=HANG_S)  # its output is open as long as any of them runs


def test_a_process_that_fails_ends_it(bw_traffic: Path, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    with end(bw_traffic, "work", "--folder", folder, *SMALL, *FOR_EVER) as (process, _):
        folder.rename(tmp_path / "gone")
        code, result, errors = ended(process)
    assert (code, result["valid"], result["invalid_reasons"]) == (
        4,
        False,
        ["a process ended with exit code 3"],
    )
    assert "No such file or directory" in errors


@pytest.mark.slow
def test_under_wine_it_does_the_same(repository: Path, tmp_path: Path) -> None:
    try:
        prefix = prefix_or_make()
    except CapabilityError as error:
        pytest.skip(str(error))
    program = repository / ".build" / "win" / "traffic-gen" / "bw-traffic.exe"
    if not program.exists():
        pytest.skip("bw-traffic is not built for win: make test-all")
    disk = tmp_path / "windows"
    shutil.copytree(prefix, disk, symlinks=True)
    shutil.copy(program, disk / "drive_c" / "bw-traffic.exe")  # it starts itself by its path of Windows
    argv = [str(WINE_FOLDER / "wine64"), "C:\\bw-traffic.exe", "work", "--folder", "C:\\work folder\\"]
    options = ("--duration-ms", "500", "--jobs", "1", "--cpu-ms", "0", "--write-bytes", "1000", "--sync")
    done = subprocess.run(
        [*argv, *options],
        env=wine_environment(disk),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["written_bytes"] == result["processes"] * 2000 > 0
    assert list((disk / "drive_c" / "work folder").iterdir()) == []


def test_more_at_once_than_there_are_cpus_is_refused(bw_traffic: Path, tmp_path: Path) -> None:
    cpus = len(os.sched_getaffinity(0))
    done = refused(bw_traffic, "--folder", str(tmp_path), "--jobs", str(cpus + 1))
    assert (done.returncode, done.stdout) == (3, "")
    assert f"1..{cpus} are allowed" in done.stderr


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_refused(bw_traffic: Path, folder: str) -> None:
    assert refused(bw_traffic, "--folder", folder).returncode == 3


@pytest.mark.parametrize(
    "arguments",
    [(), ("--folder", "/tmp", "--jobs", "-1"), ("--folder", "/tmp", "--duration-ms", "0")],
)
def test_command_line_that_cannot_be_is_refused(bw_traffic: Path, arguments: tuple[str, ...]) -> None:
    done = refused(bw_traffic, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def refused(bw_traffic: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with what it refuses."""
    return subprocess.run(
        [bw_traffic, "work", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S
    )
