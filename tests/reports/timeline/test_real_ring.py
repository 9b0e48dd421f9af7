# SPDX-License-Identifier: Apache-2.0
"""A ring of this machine's kernel, read as text by the kernel and decoded here: every field is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.timeline.kernel_formats import EventFormat, parse_formats
from reports.timeline.kernel_ring import LOST_UNCOUNTED, decode_ring
from tests.reports.timeline.real_ring import record

EVENTS = "sched irq irq_vectors timer signal task ipi"
_LINE = re.compile(r"\s*(?P<comm>.*)-(?P<pid>\d+)\s+\[000\] (?P<flags>\S+)\s+(?P<s>\d+)\.(?P<us>\d{6}): "
                   r"(?P<event>\w+): ?(?P<rest>.*)")  # fmt: skip


def us_of(time_ns: int) -> int:
    """Return a time as the kernel's text has it (ns2usecs)."""
    return (time_ns + 500) // 1000


def in_order(events: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give all events of a CPU as they came."""
    found = [(int(each["place"]), name, each) for name, records in events.items() for each in records]
    for _, name, each in sorted(found, key=lambda one: one[0]):
        yield name, each


def values_of(rest: str, form: EventFormat) -> dict[str, str]:
    """Return the fields of a line by their names, all of the event's own."""
    names = [field.name for field in form.fields if not field.name.startswith("common_")]
    parts = re.split(rf"(?:^| )({'|'.join(sorted(names, key=len, reverse=True))})=", rest)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert sorted(found) == sorted(names), rest
    return found


def assert_same(said: str, value: Any, form: EventFormat, name: str) -> None:
    """Hold a field's text against its value."""
    field = next(each for each in form.fields if each.name == name)
    if isinstance(value, bytes):
        assert said == value.decode(errors="replace")
        return
    number = re.fullmatch(r"(?:.* )?\((-?\d+)\)", said)
    assert number, said
    assert (int(number[1]) - int(value)) % (1 << 8 * field.size) == 0


def lines_of(text: Sequence[str]) -> list[re.Match[str]]:
    """Return the events of a text."""
    matches = [_LINE.fullmatch(line) for line in text if not line.startswith(("#", "CPU:"))]
    assert all(matches)
    return [each for each in matches if each]


def test_every_field_of_every_event_is_that_of_the_text(tmp_path: Path) -> None:
    ring = record(tmp_path, EVENTS, 200)
    formats = parse_formats(ring.description)
    found = decode_ring(ring.pages, formats, 0)
    assert not found.damages
    assert not found.gaps.size
    by_name = {form.name: form for form in formats.events.values()}
    lines = lines_of(ring.fields or ring.text)
    events = list(in_order(dict(found.events)))
    assert len(events) == len(lines) > 1000
    for line, (name, event) in zip(lines, events, strict=True):
        assert (line["event"], int(line["s"] + line["us"])) == (
            name.partition("/")[2], us_of(int(event["time_ns"])),
        )  # fmt: skip
        assert int(line["pid"]) == event["common_pid"]
        depth = line["flags"][3]
        assert (0 if depth == "." else int(depth, 16)) == event["common_preempt_count"] & 0xF
        if ring.fields:
            for key, said in values_of(line["rest"], by_name[name]).items():
                assert_same(said, event[key], by_name[name], key)
    assert {"sched/sched_switch", "irq/softirq_entry", "sched/sched_process_exec"} <= {
        name for name, _ in events
    }


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_ring_holds_what_its_text_holds(tmp_path: Path, overwrite: bool) -> None:
    ring = record(tmp_path, "sched irq", 300, 64, overwrite)
    formats = parse_formats(ring.description)
    found = decode_ring(ring.pages, formats, 0)
    assert not found.damages
    times_us = [us_of(int(event["time_ns"])) for _, event in in_order(dict(found.events))]
    assert times_us == [int(line["s"] + line["us"]) for line in lines_of(ring.text)]
    assert (formats.dropped[0] > 0) != overwrite
    overrun = int(re.findall(r"^overrun: (\d+)$", ring.description, re.MULTILINE)[0])
    assert (overrun > 0) == overwrite
    gaps = [(0, overrun)] if overwrite else []
    # Of a page that is full to its end the kernel has no room for the number.
    assert found.gaps.tolist() in (gaps, [(place, LOST_UNCOUNTED) for place, _ in gaps])
