# SPDX-License-Identifier: Apache-2.0
"""Frames that try to break a receiver of RTDiP, and what has to become of each."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.targets.rtdip.lab import ETHERTYPE, header

ETHERNET_BYTES, HEADER_BYTES, DATA_MAX_BYTES = 14, 12, 8988
SENDER = bytes.fromhex("0200000000f0")
"""Source of all hostile frames: by it the kernel's share is told from its other traffic."""
VLAN_TAGS = (0x8100, 0x88A8, 0x9100)
"""The kernel takes them off, and frames away that are too short for one, before a socket sees them."""


def hostile_frames(seed: int, own: bytes, ports: tuple[int, ...]) -> Iterator[bytes]:
    """Yield frames without end: right ones, such with a wrong field, cut, longer, of random bits, for others.

    Args:
        seed: The same one gives the same frames.
        own: Ethernet address of the receiver.
        ports: That somebody has.
    """
    chance = random.Random(seed)
    pick, below = chance.choice, chance.random
    sizes = (0, 1, 4, 51, 52, 53, 243, 244, 245, 1487, DATA_MAX_BYTES)
    destinations = (own,) * 12 + (b"\xff" * 6, bytes.fromhex("01005e000001"), bytes.fromhex("020000000077"))
    while True:
        size = pick(sizes) if below() < 0.3 else chance.randrange(200)
        port = pick(ports) if below() < 0.8 else pick((0, 1, 1023, 65535, chance.randrange(65536)))
        priority = chance.randrange(3) if below() < 0.9 else pick((3, 127, 255))
        version = 1 if below() < 0.95 else pick((0, 2, 255))
        length = size if below() < 0.8 else pick((0, size + 1, max(0, size - 1), 8988, 8989, 65524, 65535))
        head = header(port, priority, length, chance.randrange(65536), chance.getrandbits(32), version)
        ethertype = ETHERTYPE if below() < 0.95 else chance.randrange(65536)
        if ethertype in VLAN_TAGS:
            continue
        frame = bytearray(
            pick(destinations) + SENDER + struct.pack("!H", ethertype) + head + chance.randbytes(size)
        )
        if below() < 0.1:
            del frame[chance.randrange(ETHERNET_BYTES, len(frame) + 1) :]
        for _ in range(chance.randrange(4) if below() < 0.1 and len(frame) > ETHERNET_BYTES else 0):
            frame[chance.randrange(ETHERNET_BYTES, len(frame))] ^= 1 << chance.randrange(8)
        yield bytes(frame)


def fate(frame: bytes, own: bytes, ports: tuple[int, ...]) -> str:
    """Return what has to become of a frame by docs/rtdip.md: "passed", "taken", or a drop's counter."""
    if int.from_bytes(frame[12:14], "big") != ETHERTYPE or not (frame[0] & 1 or frame[:6] == own):
        return "passed"
    payload = frame[ETHERNET_BYTES:]
    if len(payload) < HEADER_BYTES:
        return "short"
    port, priority, version, length = struct.unpack_from("!HBBH", payload)
    if version != 1 or priority > 2 or port == 0 or length > DATA_MAX_BYTES:
        return "malformed"
    if length > len(payload) - HEADER_BYTES:
        return "short"
    return "taken" if port in ports else "no_port"
