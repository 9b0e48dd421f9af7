# SPDX-License-Identifier: Apache-2.0
"""Files as a damaged disk, a broken tool or somebody who means harm would leave them."""

from __future__ import annotations

import re
from random import Random

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_INSTEAD_OF_A_NUMBER = (
    b"0", b"-1", b"0.5", b"-0.0", b"9223372036854775808", b"1" * 40, b"1" * 5000, b"1e400",
    b"NaN", b"-Infinity", b"null", b"true", b'"x"', b'""', b"[]", b"{}",
)  # fmt: skip
_INSERTED = (b"\xff\xfe", rb"\ud800", b"\0", b"[" * 50_000, b'"', b"}", b"\n\n", b"{}\n")
_LOOKED_AT = 100_000


def damaged(data: bytes, random: Random) -> bytes:
    """Return a file with one thing wrong: a byte, a number, a cut, a line too many or too few."""
    if not data:
        return b"\0"
    begin = random.randrange(len(data))
    end = min(len(data), begin + random.choice((1, 1, 2, 8, 64, 1000)))
    lines = data.split(b"\n")
    line = random.randrange(len(lines))
    numbers = list(_NUMBER.finditer(data, 0, _LOOKED_AT))
    ways = [
        lambda: data[:begin] + bytes([random.randrange(256)]) + data[begin + 1 :],
        lambda: data[:begin] + data[end:],
        lambda: data[:begin],
        lambda: data[:end] + data[begin:],
        lambda: data[:begin] + random.choice(_INSERTED) + data[begin:],
        lambda: b"\n".join([*lines[:line], *lines[line + 1 :]]),
        lambda: b"\n".join([*lines[:line], random.choice(lines), *lines[line:]]),
    ]
    if numbers:
        number = random.choice(numbers)
        other = random.choice(_INSTEAD_OF_A_NUMBER)
        ways += 2 * [lambda: data[: number.start()] + other + data[number.end() :]]
    return random.choice(ways)()
