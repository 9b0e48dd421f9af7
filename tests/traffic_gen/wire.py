# SPDX-License-Identifier: Apache-2.0
"""The wire format, written a second time from docs/native-tools.md and frame.h, to compare both."""

from __future__ import annotations

import struct

HEADER_BYTES = 10
_MASK = (1 << 64) - 1


def _mix(x: int) -> int:
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK
    return x ^ x >> 31


def check_value(nonce: int, stream_id: int, sequence: int, lateness_ns: int) -> int:
    """Return the check value of a header."""
    run = _mix((nonce + 0x9E3779B97F4A7C15 * (stream_id + 1)) & _MASK)
    return _mix(run ^ (sequence << 32 | lateness_ns & 0xFFFFFFFF)) >> 48


def message(nonce: int, stream_id: int, sequence: int, lateness_ns: int, size_bytes: int) -> bytes:
    """Return a whole message."""
    check = check_value(nonce, stream_id, sequence, lateness_ns)
    fill = bytes((position * 151 + 73) & 0xFF for position in range(HEADER_BYTES, size_bytes))
    return struct.pack(">IiH", sequence, lateness_ns, check) + fill


def hello(nonce: int, stream_id: int, size_bytes: int, version: int = 2, magic: bytes = b"BWT1") -> bytes:
    """Return the hello of a TCP connection."""
    return magic + struct.pack(">HHQII", version, stream_id, nonce, size_bytes, 0)


def reply(request: bytes, t2_ns: int, t3_ns: int) -> bytes:
    """Return the reply to a two-way request."""
    magic, version, kind, sequence, reserved, cookie, t1_ns = struct.unpack(">4sHHIIQq", request[:32])
    if (magic, version, kind, len(request)) != (b"BWO1", 1, 1, 48):
        raise ValueError("not a two-way request")
    return struct.pack(">4sHHIIQqqq", magic, version, 2, sequence, reserved, cookie, t1_ns, t2_ns, t3_ns)
