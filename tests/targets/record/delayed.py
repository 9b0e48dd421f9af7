# SPDX-License-Identifier: Apache-2.0
"""What each of the six delayed programs suffers from, and what a record of one says of it."""

from __future__ import annotations

from pathlib import Path

from tests.targets.record.made_up import what_delays

FAULTS = {
    "writes": "small writes wait for an acknowledgement",
    "buffer": "a receive buffer is smaller than a message",
    "sleep": "a time-out or sleep paces the data path",
    "thread": "one thread is behind many sockets",
    "name": "a name is looked up in the data path",
    "late": "the reader comes late",
}
WITHOUT_PEER = ("thread",)
"""Whose place is a thread, with all its sockets."""


def named_in(record: Path, program: str, port: int) -> list[str]:
    """Return the faults that are named, each at this peer's connection and with a cost."""
    module = what_delays()
    trace = module.timed_calls.read(record)
    found = module.findings_of(trace)
    for finding in found:
        assert f"127.0.0.1:{port}" in finding.where or program in WITHOUT_PEER, finding
        assert 0 < finding.cost_ns <= trace.span_ns, finding
    return [finding.fault for finding in found]
