# SPDX-License-Identifier: Apache-2.0
"""What QEMU is told about a guest, by the kind of its image."""

from __future__ import annotations

import os
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hw.drivers.virtual_guest import VirtualGuest
from hw.virtual.console_log import earlier_logs, put_aside
from hw.virtual.image_recipe import recipe_of
from hw.virtual.qemu import GuestCard, GuestMachine, QemuGuest, ThreadPlacement, command_line
from resources.tools.witness import PRIORITY

_labgrid: Any = import_module("labgrid")  # no types of its own

PLACEMENT = ThreadPlacement()


def machine(kind: str, accelerator: str, serial: Path | None = None) -> GuestMachine:
    """Return a small guest."""
    return GuestMachine(
        name="g",
        namespace="n",
        accelerator=accelerator,
        cpus=1,
        memory_mb=256,
        kernel=Path("vmlinuz"),
        initrd=Path("initrd"),
        root=Path("root"),
        kernel_arguments="quiet",
        cards=(GuestCard("t-g", "52:54:00:00:00:01"),),
        vcpu_threads=PLACEMENT,
        main_loop_threads=PLACEMENT,
        page=Path("page"),
        emulated=recipe_of(kind).machine,
        serial=serial,
        disk_writable=serial is not None,
    )


@pytest.mark.parametrize(
    ("kind", "accelerator", "program", "board", "cpu"),
    [
        ("linux-rt", "kvm", "qemu-system-x86_64", "q35", "host"),
        ("linux-rt", "tcg", "qemu-system-x86_64", "q35", "Nehalem,+rdtscp,+invtsc"),
        ("embedded", "tcg", "qemu-system-arm", "virt,highmem=off", "cortex-a15"),
    ],
)
def test_machine_follows_the_kind(kind: str, accelerator: str, program: str, board: str, cpu: str) -> None:
    argv = command_line(machine(kind, accelerator), Path("run"))
    assert argv[:5] == ["ip", "netns", "exec", "n", program]
    assert argv[argv.index("-M") + 1] == board
    assert argv[argv.index("-cpu") + 1] == cpu
    assert argv[argv.index("-accel") + 1].split(",")[0] == accelerator
    assert "ivshmem-plain,memdev=page" in argv


def test_another_processor_is_never_run_by_this_one() -> None:
    with pytest.raises(KeyError):
        command_line(machine("embedded", "kvm"), Path("run"))


def test_serial_port_of_a_board_is_a_socket_that_somebody_listens_on() -> None:
    argv = command_line(machine("embedded", "tcg", Path("run/serial.sock")), Path("run"))
    assert argv[argv.index("-chardev") + 1] == "socket,id=serial,path=run/serial.sock"
    assert argv[argv.index("-serial") + 1] == "chardev:serial"
    drive = argv[argv.index("-drive") + 1].split(",")
    assert "readonly=off" in drive


def test_guests_share_a_root_that_they_cannot_write() -> None:
    argv = command_line(machine("embedded", "tcg"), Path("run"))
    assert argv[argv.index("-serial") + 1] == "file:run/console.log"
    assert "readonly=on" in argv[argv.index("-drive") + 1].split(",")


def test_a_running_guest_gets_the_priority_that_it_is_given_and_loses_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            guest = QemuGuest(machine("linux-rt", "tcg"), tmp_path, process)
            monkeypatch.setattr(guest, "_threads", lambda: {process.pid: "CPU 0/TCG"})
            found = os.sched_getscheduler(process.pid)
            guest.place_vcpus(ThreadPlacement(0))
            assert os.sched_getscheduler(process.pid) == found
            guest.place_vcpus(ThreadPlacement(1))
            assert os.sched_getscheduler(process.pid) == os.SCHED_FIFO
            assert os.sched_getparam(process.pid).sched_priority == 1
            guest.place_vcpus(ThreadPlacement(0))
            assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER
            assert os.sched_getparam(process.pid).sched_priority == 0
        finally:
            process.kill()


def test_what_a_guest_said_in_a_boot_is_kept_at_the_next(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    put_aside(log)  # nothing was said
    for boot in range(11):
        log.write_text(f"boot {boot}")
        put_aside(log)
    assert not log.exists()
    assert [each.read_text() for each in earlier_logs(log)] == [f"boot {boot}" for boot in range(11)]


@pytest.mark.parametrize("thread", ["vcpu_priority", "main_loop_priority"])
def test_a_guest_runs_below_the_witness_of_the_machine(thread: str) -> None:
    """Above it, what the guest itself computes would read as a pause of the machine."""
    guest: Any = VirtualGuest
    guest(_labgrid.Target("below"), None, **{thread: PRIORITY - 1})
    with pytest.raises(ValueError, match=f"'{thread}' must be in"):
        guest(_labgrid.Target("at"), None, **{thread: PRIORITY})
