# SPDX-License-Identifier: Apache-2.0
"""The form of a plan file, docs/native-tools.md: what `bw-traffic send` and `recv` are told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from reports.clock_sync.tai_utc import TAI_UTC_S

BASE_PORT = 20000
"""Port of stream 0; that of another is so much higher as its number."""


@dataclass(frozen=True)
class PlanClock:
    """A clock that producers stamp with, and where it is compared with the consumer's."""

    name: str
    address: str
    port: int

    def lines(self) -> list[str]:
        """Return its table."""
        return [
            "",
            "[[clock]]",
            f'name = "{self.name}"',
            f'address = "{self.address}"',
            f"port = {self.port}",
        ]


@dataclass(frozen=True)
class PlanProducer:
    """A producer: its clock by name, slot 0 on that clock, and how much faster than TAI it runs."""

    number: int
    address: str
    clock: str
    start_tai_ns: int
    rate_ppb: float = 0

    def lines(self) -> list[str]:
        """Return its table."""
        return [
            "",
            "[[producer]]",
            f"number = {self.number}",
            f'address = "{self.address}"',
            f'clock = "{self.clock}"',
            f"start_tai_ns = {self.start_tai_ns}",
            f"rate_ppb = {self.rate_ppb}",
        ]


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """A plan without its pattern.

    Attributes:
        nonce: 16 hex digits that tell the frames of this run from those of any other.
        scale: So many producers stand for each of the pattern.
        consumer: Its address.
        consumer_clock: What it stamps with, as `bw-clock` names it; empty: the system's clock.
        clocks: Those that the producers name.
    """

    nonce: str
    phase: str
    scale: int = 1
    warmup_ms: int
    duration_ms: int
    grace_ms: int
    spin_us: int = 0
    correction: str = "none"
    tai_utc_s: int = TAI_UTC_S
    capture_stamps: bool = True
    consumer: str
    consumer_clock: str = ""
    clocks: Sequence[PlanClock]
    producers: Sequence[PlanProducer]

    def text(self, pattern: str) -> str:
        """Return the file's text, with that of a pattern file at its end."""
        lines = [
            "[run]",
            'schema = "benchwright.plan/1"',
            f'nonce = "{self.nonce}"',
            f'phase = "{self.phase}"',
            f"scale = {self.scale}",
            f"base_port = {BASE_PORT}",
            f"warmup_ms = {self.warmup_ms}",
            f"duration_ms = {self.duration_ms}",
            f"grace_ms = {self.grace_ms}",
            f"spin_us = {self.spin_us}",
            f'correction = "{self.correction}"',
            f"tai_utc_s = {self.tai_utc_s}",
            f"capture_stamps = {'true' if self.capture_stamps else 'false'}",
            "",
            "[consumer]",
            f'address = "{self.consumer}"',
        ]
        if self.consumer_clock:
            lines.append(f"clock = {json.dumps(self.consumer_clock)}")
        for table in (*self.clocks, *self.producers):
            lines += table.lines()
        return "\n".join(lines) + "\n\n" + pattern
