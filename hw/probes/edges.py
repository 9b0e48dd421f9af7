# SPDX-License-Identifier: Apache-2.0
"""Pins of this machine for timed edges, apart from those of PTP clocks: GPIO lines and PPS generators.

The layout is that of include/uapi/linux/gpio.h; a test compares the numbers with its header.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from hw.capability import Capability, State

_CHIP = struct.Struct("=32s32sI")  # struct gpiochip_info
GPIO_GET_CHIPINFO = 2 << 30 | _CHIP.size << 16 | 0xB4 << 8 | 1
PPS_GENERATORS = Path("/sys/class/pps-gen")


def decode_chip(answer: bytes) -> str:
    """Decode a struct gpiochip_info (68 bytes) into "LABEL, N lines"."""
    fields: tuple[bytes, bytes, int] = _CHIP.unpack(answer)
    label = fields[1].split(b"\0", 1)[0].decode(errors="replace")
    return f"{label or 'unnamed'}, {fields[2]} lines"


def read_chip(device: Path) -> str:
    """Ask a GPIO character device what it is.

    Raises:
        OSError: It cannot be opened or is no GPIO chip.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return decode_chip(fcntl.ioctl(descriptor, GPIO_GET_CHIPINFO, bytes(_CHIP.size)))
    finally:
        os.close(descriptor)


def gpio_lines() -> Capability:
    """List the GPIO chips."""
    found: dict[str, str | OSError] = {}
    for device in sorted(Path("/dev").glob("gpiochip[0-9]*")):
        try:
            found[device.name] = read_chip(device)
        except OSError as error:
            found[device.name] = error
    return judge_gpio_lines(found)


def judge_gpio_lines(found: dict[str, str | OSError]) -> Capability:
    """Judge GPIO chips by device name: what they are, or why they could not be read."""
    words = "; ".join(
        f"{name}: {entry.strerror if isinstance(entry, OSError) else entry}" for name, entry in found.items()
    )
    if any(isinstance(entry, str) for entry in found.values()):
        return Capability("gpio", State.OK, f"{words}; software sets lines, the kernel stamps their edges")
    if words:
        return Capability("gpio", State.MISSING, words, "run as root")
    return Capability(
        "gpio",
        State.MISSING,
        "no /dev/gpiochip*: no line that software sets at once",
        "a board with GPIO led out, or a USB or PCIe GPIO card, and its driver",
    )


def pps_generators(folder: Path = PPS_GENERATORS) -> Capability:
    """List the kernel's PPS generators: Intel's TGPIO is one, since Linux 6.14."""
    found: dict[str, bool | None] = {}
    for generator in sorted(folder.glob("pps-gen[0-9]*")):
        try:
            found[generator.name] = (generator / "system").read_text().strip() == "1"
        except OSError:
            found[generator.name] = None
    return judge_pps_generators(found)


def judge_pps_generators(found: dict[str, bool | None]) -> Capability:
    """Judge PPS generators by name: whether their second is that of the system clock; None: unknown."""
    clocks = {True: "of the system clock", False: "of a clock of its own", None: "of an unknown clock"}
    if found:
        words = "; ".join(f"{name}: an edge each second {clocks[system]}" for name, system in found.items())
        return Capability("pps-gen", State.OK, words)
    return Capability(
        "pps-gen",
        State.MISSING,
        "no /sys/class/pps-gen/pps-gen*: no TGPIO output",
        "a processor with Intel TGPIO, switched on in its firmware, Linux 6.14 with CONFIG_PPS_GENERATOR_TIO",
    )
