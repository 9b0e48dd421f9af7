# SPDX-License-Identifier: Apache-2.0
"""Argument types of keywords, so that Robot Framework checks them and Libdoc lists what is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Phase = Literal["aligned-12", "aligned-48", "staggered"]
"""How the streams of a pattern begin: the largest of each producer at once, all, one after the other."""

EdgeMethod = Literal["gettime-software", "rdtsc-software", "tgpio-filtered-read", "tgpio-latch"]
SoftwareMethod = Literal["gettime-software", "rdtsc-software"]

_NS_PER = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"^\s*(-?[0-9]+(?:\.[0-9]+)?)\s*(ns|us|µs|ms|s)\s*$")


@dataclass(frozen=True)
class Nanoseconds:
    """A time such as `10 ms`, `250 us` or `1.5 s`, exact to the nanosecond."""

    value_ns: int

    @classmethod
    def convert(cls, text: str) -> Nanoseconds:
        """Read a time with its unit: ns, us, ms or s."""
        match = _TIME.match(text)
        if match is None:
            raise ValueError(f"must be a number and a unit (ns, us, ms, s), found {text!r}")
        whole, _, fraction = match.group(1).partition(".")
        scale = _NS_PER[match.group(2)]
        if len(fraction) > 9 or int((fraction or "0").ljust(9, "0")) * scale % 1_000_000_000:
            raise ValueError(f"{text!r} is not a whole number of nanoseconds")
        sign = -1 if whole.startswith("-") else 1
        part_ns = int((fraction or "0").ljust(9, "0")) * scale // 1_000_000_000
        return cls(int(whole) * scale + sign * part_ns)
