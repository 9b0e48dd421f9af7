# SPDX-License-Identifier: Apache-2.0
"""A kernel's events are recorded for a while, and then all is as it was, however that ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.errors import BenchError, CapabilityError
from hw.protocols import CommandResult
from reports.timeline.kernel_recording import Recording, load_recording
from resources.tools.kernel_recorder import SCRIPT, KernelEvents, kernel_recorded

EVENTS = "sched/sched_switch", "irq/softirq_entry", "?irq_vectors/*_entry", "?none/*"
ONE_CPU = KernelEvents(EVENTS, 256, (0,))


class Here:
    """This machine as a node; its commands mount in a mount namespace of their own."""

    name, powered = "here", True

    def __init__(self, folder: Path, namespace_pid: int | None = None) -> None:
        """Take a folder for files of the tests, and a process of the namespace; None: a new one."""
        self.folder = folder
        self.before: tuple[str, ...] = ()
        if namespace_pid is not None:
            self.namespace_pid = namespace_pid
            return
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.write(b"ready\n")
        self.keeper.stdin.flush()
        assert self.keeper.stdout.readline() == b"ready\n"
        self.namespace_pid = self.keeper.pid

    def close(self) -> None:
        """End it."""
        self.keeper.communicate()

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command in the namespace."""
        enter = ["nsenter", "--mount", f"--target={self.namespace_pid}"]
        done = subprocess.run(
            [*enter, *self.before, *argv], check=False, capture_output=True, text=True, timeout=timeout_s
        )
        if check and done.returncode:
            raise BenchError(f"{argv}: {done.stderr}")
        return CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)

    def bring(self, file: Path) -> str:
        """Return where a file is."""
        return str(file)

    def fresh_folder(self, name: str) -> str:
        """Make an empty folder, as the drivers do."""
        folder = str(self.folder / name)
        self.run(["sh", "-c", f"rm -rf {folder} && mkdir {folder}"])
        return folder

    def get(self, remote: str, local: Path) -> None:
        """Copy a file."""
        shutil.copy(remote, local)

    def instances(self) -> list[str]:
        """Return the instances of tracefs that are this folder's."""
        listed = "mount -t tracefs tracefs /mnt && ls /mnt/instances; umount /mnt"
        mark = str(self.folder).replace("/", "-")
        return [each for each in self.run(["sh", "-c", listed]).stdout.split() if mark in each]


@pytest.fixture
def here(tmp_path: Path) -> Any:
    node = Here(tmp_path)
    mounted = node.run(["sh", "-c", "mount -t tracefs tracefs /mnt && umount /mnt"], check=False)
    try:
        if mounted.exit_code:
            pytest.skip(f"tracefs cannot be mounted: {mounted.stderr.strip()}")
        yield node
    finally:
        node.close()


def number_of(recording: Recording, cpu: int, name: str) -> int:
    """Return how many events of a name a CPU had."""
    return len(recording.rings[cpu].events[name])


def test_a_cpu_is_recorded(here: Any, tmp_path: Path) -> None:
    with kernel_recorded(here, ONE_CPU) as recorder:
        assert len(here.instances()) == 1
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", "for i in 1 2 3 4 5; do true | true; done"])
        dropped = recorder.end(tmp_path / "ring.gz")
    found = load_recording(tmp_path / "ring.gz")
    assert dropped == found.dropped == {0: 0}
    assert not found.rings[0].damages
    assert number_of(found, 0, "sched/sched_switch") > 5
    assert b"sh" in found.rings[0].events["sched/sched_switch"]["next_comm"]
    assert any(name.startswith("irq_vectors/") for name in found.rings[0].events)
    assert not here.instances()
    assert not list(tmp_path.glob("kernel_recorder*/*"))


def test_all_cpus_and_several_recorders_beside_each_other(here: Any, tmp_path: Path) -> None:
    cpus = len(os.sched_getaffinity(0))
    everything = KernelEvents(("sched/sched_switch",), 256, overwrite=True, clock="tai", name="second")
    with kernel_recorded(here, ONE_CPU) as first, kernel_recorded(here, everything) as second:
        assert len(here.instances()) == 2
        for cpu in range(cpus):
            here.run(["taskset", "--cpu-list", str(cpu), "sh", "-c", "true | true"])
        first.end(tmp_path / "first.gz")
        second.end(tmp_path / "second.gz")
    found = load_recording(tmp_path / "second.gz")
    assert len(found.rings) >= cpus
    assert all(number_of(found, cpu, "sched/sched_switch") for cpu in range(cpus))
    assert list(load_recording(tmp_path / "first.gz").rings) == [0]
    assert not here.instances()


def test_a_node_with_few_programs(here: Any, tmp_path: Path) -> None:
    """As the ARM image is."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "mount", "umount", "mkdir", "rmdir", "rm", "cat", "dd", "sed", "tr", "ls", "taskset",
                 "true"):  # fmt: skip
        (programs / name).symlink_to(shutil.which(name) or name)
    here.before = ("env", f"PATH={programs}")
    with kernel_recorded(here, ONE_CPU) as recorder:
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", "true | true"])
        recorder.end(tmp_path / "ring.gz")
    assert number_of(load_recording(tmp_path / "ring.gz"), 0, "sched/sched_switch") > 0
    assert not list(tmp_path.glob("kernel_recorder*/*"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_buffer_is_bounded(here: Any, tmp_path: Path, overwrite: bool) -> None:
    """What it has no room for is counted; or the newest is there."""
    with kernel_recorded(here, replace(ONE_CPU, buffer_kb=4, overwrite=overwrite)) as recorder:
        busy = "for i in $(seq 300); do true | true; done; exec taskset --cpu-list 0 true"
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", busy])
        dropped = recorder.end(tmp_path / "ring.gz")
    ring = load_recording(tmp_path / "ring.gz").rings[0]
    assert (dropped[0] > 0) != overwrite
    assert bool(ring.gaps.size) == overwrite
    assert not ring.damages


def test_all_is_as_it_was_after_ctrl_c(here: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), kernel_recorded(here, ONE_CPU):
        raise KeyboardInterrupt
    assert not here.instances()
    assert not list(tmp_path.glob("kernel_recorder*/*"))


def test_what_a_killed_run_has_left_is_removed(here: Any, tmp_path: Path) -> None:
    """Also where it has left tracefs mounted, and files."""
    script = (
        "import pathlib, sys\n"
        "from tests.resources.tools.test_kernel_recorder import ONE_CPU, Here, kernel_recorded\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "with kernel_recorded(Here(folder, int(sys.argv[2])), ONE_CPU) as recorder:\n"
        "    recorder.end(folder / 'killed.gz')\n"
        "    print('recorded', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    for _ in range(2):
        argv = [sys.executable, "-c", script, str(tmp_path), str(here.namespace_pid)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == b"recorded\n"
            run.kill()
        assert len(here.instances()) == 1
    with kernel_recorded(here, ONE_CPU):
        assert len(here.instances()) == 1
    assert not here.instances()
    assert not list(tmp_path.glob("kernel_recorder*/*"))
    assert not (tmp_path / "kernel_recorder.tracefs").exists()
    assert str(tmp_path) not in here.run(["cat", "/proc/mounts"]).stdout


def test_a_machine_that_does_not_permit_it_says_so(here: Any, tmp_path: Path) -> None:
    here.before = ("setpriv", "--bounding-set=-sys_admin")
    with (
        pytest.raises(CapabilityError, match="here: no tracefs that may be mounted"),
        kernel_recorded(here, ONE_CPU),
    ):
        pass
    here.before = ()
    assert not list(tmp_path.glob("kernel_recorder*/*"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"events": ("sched/none",)}, "here: tracefs has no event sched/none"),
        ({"clock": "sundial"}, "here: tracefs has no clock sundial"),
        ({"cpus": (0, 4095)}, "here: no CPU 4095, or no memory"),
    ],
)
def test_what_a_machine_does_not_have_is_named(here: Any, change: dict[str, Any], said: str) -> None:
    with pytest.raises(CapabilityError, match=said), kernel_recorded(here, replace(ONE_CPU, **change)):
        pass
    assert not here.instances()


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    for words in ("", "begin stop", "begin other mono 0 4 x/y", "end", "restore 0"):
        argv = ["sh", str(SCRIPT), str(tmp_path), *words.split()]
        done = subprocess.run(argv, check=False, capture_output=True)
        assert done.returncode == 2


def test_nothing_is_left_where_each_command_has_mounts_of_its_own(here: Any, tmp_path: Path) -> None:
    """As by `ip netns exec`: what `begin` has mounted is not there any more when it is to be given back."""
    here.before = ("unshare", "--mount", "--propagation", "private")
    with kernel_recorded(here, ONE_CPU) as recorder:
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", "true | true"])
        recorder.end(tmp_path / "ring.gz")
    assert number_of(load_recording(tmp_path / "ring.gz"), 0, "sched/sched_switch")
    left = here.instances()
    for name in left:
        here.run(["sh", "-c", f"mount -t tracefs tracefs /mnt && rmdir /mnt/instances/{name}"])
    assert not left
    assert not (tmp_path / "kernel_recorder.tracefs").exists()


def test_a_tracer_that_the_kernel_lacks_is_named(here: Any) -> None:
    what = replace(ONE_CPU, events=("tracer:of_nobody",))
    said = "here: the kernel has no tracer of_nobody"
    with pytest.raises(CapabilityError, match=said), kernel_recorded(here, what):
        pass
    assert not here.instances()


def test_a_tracer_is_in_the_description_and_ends_with_its_instance(here: Any) -> None:
    """In a folder of plain files: which tracers this machine's kernel gives instances nobody knows."""
    tracefs, folder = here.folder / "tracefs", here.folder / "own"
    own = tracefs / "instances" / f"benchwright{str(folder).replace('/', '-')}"
    for name in ("options", "per_cpu/cpu0", "events/ftrace/timerlat"):
        (own / name).mkdir(parents=True)
    folder.mkdir()
    for name in ("events/header_event", "events/ftrace/timerlat/format", "current_tracer", "set_event"):
        (own / name).touch()
    (own / "events/header_page").write_text("\tfield: char data;\toffset:16;\tsize:4080;\n")
    (own / "per_cpu/cpu0/stats").write_text("entries: 0\n")
    (own / "per_cpu/cpu0/trace_pipe_raw").touch()
    text = SCRIPT.read_text().replace("/sys/kernel/tracing", str(tracefs))
    # The instance is there, and no rmdir removes it: so `begin` neither makes it nor tidies up before.
    for before, after in (('mkdir "$own"', 'test -d "$own"'), ("    restore\n    begin", "    begin")):
        assert before in text
        text = text.replace(before, after)
    script = here.folder / "recorder.sh"
    script.write_text(text)
    words = ["sh", str(script), str(folder)]
    here.run([*words, "begin", "stop", "tai", "0", "64", "tracer:timerlat"])
    assert (own / "current_tracer").read_text() == "timerlat\n"
    here.run([*words, "end", "0"])
    assert "file: events/ftrace/timerlat/format\n" in (folder / "description").read_text()
    here.run([*words, "restore"], check=False)
    assert (own / "current_tracer").read_text() == "nop\n"
