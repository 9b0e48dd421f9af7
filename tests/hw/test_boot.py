# SPDX-License-Identifier: Apache-2.0
"""What a console's bytes, and their instants, say about a boot."""

from __future__ import annotations

import re

import pytest

from hw.boot import BootExpectation, BootFinding, BootState, BootWatch

EXPECTATION = BootExpectation(
    re.compile("benchwright: ready"), first_output_s=5, silence_s=20, prompt_s=2, deadline_s=60
)
START_S = 1000.0
KERNEL = b"[    0.000000] Booting Linux on physical CPU 0x0\r\n"


def finding(after_s: float, *said: tuple[float, bytes]) -> BootFinding | None:
    """Return what is found some time after power on, when the console has said these at these times."""
    watch = BootWatch(EXPECTATION, START_S)
    for when_s, data in said:
        watch.feed(data, START_S + when_s)
    return watch.finding(START_S + after_s)


@pytest.mark.parametrize(
    ("after_s", "said", "state", "detail"),
    [
        (3.0, [(1, KERNEL), (3, b"benchwright: rea"), (3, b"dy\r\n")], BootState.READY, "3.0 s after"),
        (1.0, [(1, b"\x1b[32mbenchwright:\x1b[0m ready")], BootState.READY, ""),
        (
            2.0,
            [
                (1, KERNEL),
                (2, b"[ 1.5] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n---[ end"),
            ],
            BootState.PANIC,
            "VFS: Unable to mount root fs",
        ),
        (4.1, [(2, KERNEL + b"Kernel panic - not syncing: Attempted to")], BootState.PANIC, "Attempted to"),
        (2.0, [(2, b"benchwright: boot failed: root is no squashfs\r\n")], BootState.FAILED, "no squashfs"),
        (
            4.1,
            [(2, b"U-Boot 2023.01\r\nHit any key to stop autoboot:  0 \r\n=> ")],
            BootState.WRONG_PROMPT,
            "'=>', of a bootloader",
        ),
        (4.1, [(2, b"\r\ngrub rescue> ")], BootState.WRONG_PROMPT, "of a bootloader"),
        (4.1, [(2, KERNEL + b"(initramfs) ")], BootState.WRONG_PROMPT, "of an initramfs"),
        (
            4.1,
            [(2, b"Debian GNU/Linux 12 raspberrypi ttyAMA0\r\n\r\nraspberrypi login: ")],
            BootState.WRONG_PROMPT,
            "'raspberrypi login:', of a login",
        ),
        (4.1, [(2, KERNEL + b"~ # ")], BootState.WRONG_PROMPT, "'~ #', of a shell"),
        (25.0, [(1, KERNEL)], BootState.HUNG, "silent for 20 s after '[    0.000000] Booting Linux"),
        (25.0, [(1, b"\xf8\x80\xfe" * 30)], BootState.HUNG, "speed of the serial port"),
        (5.0, [], BootState.NEVER_BOOTS, "not one character in 5 s"),
        (60.0, [(59.5, b"[ 59.1] usb 1-1: reset\r\n")], BootState.LATE, "usb 1-1: reset"),
    ],
)
def test_boot_is_judged(
    after_s: float, said: list[tuple[float, bytes]], state: BootState, detail: str
) -> None:
    found = finding(after_s, *said)
    assert found is not None
    assert found.state is state
    assert detail in found.detail


@pytest.mark.parametrize(
    ("after_s", "said"),
    [
        (4.9, []),
        (20.9, [(1, KERNEL)]),
        (3.9, [(2, b"=> ")]),  # a prompt that may still be the beginning of a line
        (4.1, [(2, b"Hit any key to stop autoboot:  3 ")]),
        (4.1, [(2, b"[    1.2] random: crng init done\r\n")]),
        (3.9, [(2, b"Kernel panic - not syncing: Att")]),
        (59.0, [(1, KERNEL), (20, KERNEL), (40, KERNEL)]),
    ],
)
def test_open_boot_is_not_judged(after_s: float, said: list[tuple[float, bytes]]) -> None:
    assert finding(after_s, *said) is None


def test_reason_comes_before_its_consequence() -> None:
    """PID 1 that gives up makes the kernel panic: what PID 1 has said is the reason."""
    said = (
        b"benchwright: boot failed: no disk /dev/vda after 10 s\r\nKernel panic - not syncing: Attempted\r\n"
    )
    found = finding(3.0, (2.5, said))
    assert found is not None
    assert found.state is BootState.FAILED


def test_expected_login_prompt_is_no_wrong_one() -> None:
    watch = BootWatch(BootExpectation(re.compile(r"embedded login: $"), 5, 20, 2, 60), START_S)
    watch.feed(b"Debian GNU/Linux 12 embedded ttyAMA0\r\n\r\nembedded login: ", START_S + 2)
    found = watch.finding(START_S + 10)
    assert found is not None
    assert found.state is BootState.READY
