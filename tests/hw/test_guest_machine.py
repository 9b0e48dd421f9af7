# SPDX-License-Identifier: Apache-2.0
"""What QEMU is told about a guest, by its architecture."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.virtual.qemu import GuestCard, GuestMachine, ThreadPlacement, command_line

PLACEMENT = ThreadPlacement()


def machine(architecture: str, accelerator: str) -> GuestMachine:
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
        architecture=architecture,
    )


@pytest.mark.parametrize(
    ("architecture", "accelerator", "program", "board", "cpu"),
    [
        ("amd64", "kvm", "qemu-system-x86_64", "q35", "host"),
        ("amd64", "tcg", "qemu-system-x86_64", "q35", "Nehalem,+rdtscp,+invtsc"),
        ("armhf", "tcg", "qemu-system-arm", "virt,highmem=off", "cortex-a15"),
    ],
)
def test_machine_follows_the_architecture(
    architecture: str, accelerator: str, program: str, board: str, cpu: str
) -> None:
    argv = command_line(machine(architecture, accelerator), Path("run"))
    assert argv[:5] == ["ip", "netns", "exec", "n", program]
    assert argv[argv.index("-M") + 1] == board
    assert argv[argv.index("-cpu") + 1] == cpu
    assert argv[argv.index("-accel") + 1].split(",")[0] == accelerator
    assert "ivshmem-plain,memdev=page" in argv


def test_another_processor_is_never_run_by_this_one() -> None:
    with pytest.raises(KeyError):
        command_line(machine("armhf", "kvm"), Path("run"))
