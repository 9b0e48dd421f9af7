# SPDX-License-Identifier: Apache-2.0
"""TAI and PTP hardware clocks (PHC) of this machine.

The layouts are those of include/uapi/linux/ptp_clock.h; a test compares the numbers with its header.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.capability import Capability, State

_CAPS = struct.Struct("=20i")  # struct ptp_clock_caps
_PIN = struct.Struct("=64s3I5I")  # struct ptp_pin_desc
_IOC_WRITE, _IOC_READ = 1, 2


def _ioctl_number(direction: int, number: int, size_bytes: int) -> int:
    """Return an ioctl number of the PTP clock ('='), as the macros of asm-generic/ioctl.h make it."""
    return direction << 30 | size_bytes << 16 | ord("=") << 8 | number


PTP_CLOCK_GETCAPS = _ioctl_number(_IOC_READ, 1, _CAPS.size)
PTP_PIN_GETFUNC = _ioctl_number(_IOC_READ | _IOC_WRITE, 6, _PIN.size)

PIN_FUNCTIONS = ("none", "extts", "perout", "physync")


@dataclass(frozen=True)
class PhcCapabilities:
    """What a PTP hardware clock offers.

    Attributes:
        max_adj_ppb: Largest frequency correction.
        external_timestamps: Channels that stamp an edge from outside.
        periodic_outputs: Channels that make an edge at a given time.
        pins: Programmable pins.
        cross_timestamping: Whether PTP_SYS_OFFSET_PRECISE compares it with the system clock in one instant.
    """

    max_adj_ppb: int
    external_timestamps: int
    periodic_outputs: int
    pins: int
    cross_timestamping: bool


def decode_capabilities(answer: bytes) -> PhcCapabilities:
    """Decode a struct ptp_clock_caps (80 bytes)."""
    max_adj, _alarms, extts, perout, _pps, pins, cross, *_ = _CAPS.unpack(answer)
    return PhcCapabilities(max_adj, extts, perout, pins, bool(cross))


def decode_pin(answer: bytes) -> str:
    """Decode a struct ptp_pin_desc (96 bytes) into "NAME=function"."""
    fields: tuple[Any, ...] = _PIN.unpack(answer)
    name: bytes = fields[0]
    function: int = fields[2]
    channel: int = fields[3]
    label = name.split(b"\0", 1)[0].decode(errors="replace")
    word = PIN_FUNCTIONS[function] if function < len(PIN_FUNCTIONS) else f"function {function}"
    return f"{label}={word}" if word == "none" else f"{label}={word}{channel}"


def read_phc(device: Path) -> tuple[PhcCapabilities, list[str]]:
    """Ask a PTP clock device for its capabilities and the functions of its pins.

    Raises:
        OSError: The device cannot be opened or is no PTP clock.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        capabilities = decode_capabilities(fcntl.ioctl(descriptor, PTP_CLOCK_GETCAPS, bytes(_CAPS.size)))
        pins = [
            decode_pin(fcntl.ioctl(descriptor, PTP_PIN_GETFUNC, _PIN.pack(b"", index, 0, 0, 0, 0, 0, 0, 0)))
            for index in range(capabilities.pins)
        ]
    finally:
        os.close(descriptor)
    return capabilities, pins


def hardware_clocks() -> list[Capability]:
    """List the PTP hardware clocks, and whether any of them makes or stamps edges."""
    found: dict[str, tuple[str, PhcCapabilities, list[str]] | str] = {}
    for device in sorted(Path("/dev").glob("ptp[0-9]*")):
        name_file = Path("/sys/class/ptp") / device.name / "clock_name"
        try:
            name = name_file.read_text().strip() if name_file.exists() else "unnamed"
            found[device.name] = (name, *read_phc(device))
        except OSError as error:
            found[device.name] = error.strerror or str(error)
    return judge_hardware_clocks(found)


def judge_hardware_clocks(found: dict[str, tuple[str, PhcCapabilities, list[str]] | str]) -> list[Capability]:
    """Judge the clocks by device name: (clock name, capabilities, pins), or why it could not be read."""
    card = "put in a PTP network card (Intel i210, i225, E810) or a timecard, and load its driver"
    if not found:
        return [
            Capability("phc", State.MISSING, "no /dev/ptp*", card),
            Capability("phc-edges", State.MISSING, "no PTP hardware clock", card + " with SDP pins led out"),
        ]
    words: list[str] = []
    edges: list[str] = []
    readable = False
    for device, entry in found.items():
        if isinstance(entry, str):
            words.append(f"{device}: {entry}")
            continue
        readable = True
        name, capabilities, pins = entry
        cross = ", compared with the system clock in hardware" if capabilities.cross_timestamping else ""
        words.append(f"{device} ({name}): adjusts up to {capabilities.max_adj_ppb} ppb{cross}")
        if capabilities.periodic_outputs or capabilities.external_timestamps:
            edges.append(
                f"{device}: {capabilities.periodic_outputs} outputs, "
                f"{capabilities.external_timestamps} inputs" + (f", pins {' '.join(pins)}" if pins else "")
            )
    clock = (
        Capability("phc", State.OK, "; ".join(words))
        if readable
        else Capability("phc", State.MISSING, "; ".join(words), "run as root; check the card's driver")
    )
    if edges:
        return [clock, Capability("phc-edges", State.OK, "; ".join(edges))]
    return [clock, Capability("phc-edges", State.MISSING, "no clock has inputs or outputs for edges", card)]


def tai_offset() -> Capability:
    """Compare CLOCK_TAI with CLOCK_REALTIME."""
    tai_ns = time.clock_gettime_ns(time.CLOCK_TAI)
    return judge_tai_offset(round((tai_ns - time.clock_gettime_ns(time.CLOCK_REALTIME)) / 1_000_000_000))


def judge_tai_offset(offset_s: int) -> Capability:
    """Judge the kernel's TAI - UTC in seconds; 0 means that nobody has set it."""
    if offset_s == 37:
        return Capability("tai", State.OK, "TAI - UTC = 37 s")
    return Capability(
        "tai",
        State.LIMITED,
        f"the kernel says TAI - UTC = {offset_s} s; plans carry the offset instead",
        "let chrony (leapsectz right/UTC) or ptp4l with phc2sys set it, or `adjtimex --tai 37`",
    )
