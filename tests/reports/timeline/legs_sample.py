# SPDX-License-Identifier: Apache-2.0
"""Evidence of stimulus and response in its documented form, made up of ways and clocks that a test states.

The server's clock is the reference. Of each end its counter and its clock are lines of the true time; both
streams are written here by traffic-gen/events/stream_file.h, not by the recorder.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.timeline.capability import FROM_TARGET, TO_TARGET
from reports.timeline.legs_evidence import Card, KnownDelay, StimulusResponse, write_legs
from reports.timeline.recorded_end import RecordedEnd
from tests.reports.sample_run import summary

TARGET = "linux-rt"
TAI_UTC_S = 37
BEGIN_NS = 1_800_000_000_000_000_000
INTERVAL_NS = 2_000_000
SENDING_NS = 900
POINTS = {
    "server": ("stimulus.sent", "response.received"),
    "client": ("stimulus.received", "response.sent"),
}


@dataclass(frozen=True)
class Machine:
    """A machine's counter and clock.

    Attributes:
        hz: Of its counter.
        ahead_ns: Its clock is ahead of the reference at the beginning.
        rate_ppm: And so much faster.
        events_ahead_ns: What its points say besides: a clock that is wrong, of which exchanges tell nothing.
    """

    hz: int
    ahead_ns: int = 0
    rate_ppm: float = 0.0
    events_ahead_ns: int = 0

    def clock_ns(self, true_ns: int) -> int:
        """Return TAI by its clock."""
        return true_ns + self.ahead_ns + round((true_ns - BEGIN_NS) * self.rate_ppm / 1e6)

    def ticks(self, true_ns: int) -> int:
        """Return what its counter shows."""
        return (true_ns - BEGIN_NS + 5_000_000_000) * self.hz // 1_000_000_000


SERVER = Machine(1_000_000_000)
CLIENT = Machine(2_500_000_000, ahead_ns=4_000_000_000, rate_ppm=25.0)


def stream_bytes(
    program: str,
    machine: Machine,
    points: tuple[str, ...],
    events: Sequence[tuple[int, int, int] | tuple[int, int, int, int]],
    end_ns: int,
) -> bytes:
    """Return a stream file.

    Args:
        program: Name of the program.
        machine: Whose counter.
        points: Their names.
        events: Number of the point, tag and true time of each, in order; the number that came with it.
        end_ns: True time of the last reading of the clock.
    """
    with_data = {each[0] for each in events if len(each) > 3}

    def block(kind: int, body: bytes, position: int = 0) -> bytes:
        return struct.pack("<IHHQQ", 0x01020304, kind, 0, position, len(body)) + body

    names = struct.pack("<64s32sQQIIII", program.encode(), b"all", 1, machine.hz, 1, len(points), 1, 1 << 16)
    for number, name in enumerate(points):
        group, _, own = name.partition(".")
        kind, decoder = (2, b"<q") if number in with_data else (1, b"")
        names += struct.pack("<24s40s24s144sIIqq", group.encode(), own.encode(), decoder, b"", kind, 0, 0, 0)
    found = [b"BWSTREAM", block(1, names)]
    for at_ns in range(BEGIN_NS - 500_000_000, end_ns + 500_000_000, 500_000_000):
        ticks = machine.ticks(at_ns)
        half = machine.hz // 20_000_000
        clock_ns = machine.clock_ns(at_ns) - TAI_UTC_S * 1_000_000_000
        found.append(block(3, struct.pack("<IiQQq", 0, TAI_UTC_S, ticks - half, ticks + half, clock_ns)))
    slots = b""
    for point, tag, at_ns, *data in events:
        ticks, size = machine.ticks(at_ns + machine.events_ahead_ns), 8 * len(data)
        place = len(slots) // 32
        slots += struct.pack("<QqIIHHI", ticks, tag, 1, 0, point, size, place + 1 | 0x80000000)
        if data:
            slots += struct.pack("<q20xI", data[0], place + 2)
    end = struct.pack("<QQQ", len(slots) // 32, 0, 0)
    return b"".join([*found, block(2, slots), block(5, end)])


def card_answer(client: Machine, off_ns: int, end_ns: int) -> dict[str, Any]:
    """Return the answer of `bw-clock compare`, of the client's clock against a card that is off."""
    interval_ns = 100_000_000
    rows: list[list[int]] = []
    for begin_ns in range(BEGIN_NS - 200_000_000, end_ns + 200_000_000, interval_ns):
        ends = [client.clock_ns(at) - at - off_ns for at in (begin_ns, begin_ns + interval_ns)]
        rows.append([begin_ns, 10, sum(ends) // 2, min(ends), max(ends)])
    return {
        "type": "result", "tool": "bw-clock compare", "complete": False, "valid": True, "invalid_reasons": [],
        "device": {"clock": "tai", "tai_utc_s": TAI_UTC_S}, "reference": {"clock": "card"},
        "read": "filtered", "phc_read": None, "iterations": 10, "discarded": 0, "elapsed_ns": 1,
        "start_tai_ns": rows[0][0], "reference_bound_ns": None, "offset": summary([row[2] for row in rows]),
        "window": summary([100] * len(rows)), "steps": [], "gaps": [],
        "series": {
            "interval_ns": interval_ns, "columns": ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"],
            "rows": rows,
        },
    }  # fmt: skip


def exchanges_answer(machine: Machine, half_ns: int, end_ns: int, shifted_ns: int = 0) -> dict[str, Any]:
    """Return the answer of `bw-traffic offset`, of a machine's clock against the reference.

    Args:
        machine: Whose clock.
        half_ns: Half of the round trip of each exchange.
        end_ns: True time at which the events end.
        shifted_ns: By so much it is wrong.
    """
    series = [
        (at_ns, machine.clock_ns(at_ns) - at_ns + shifted_ns, half_ns)
        for at_ns in range(BEGIN_NS - 400_000_000, end_ns + 400_000_000, 50_000_000)
    ]
    return {
        "type": "result", "tool": "bw-traffic offset", "complete": True, "valid": True, "invalid_reasons": [],
        "peer": "10.78.0.1:9999", "exchanges": len(series), "at_local_tai_ns": series[-1][0],
        "offset_ns": series[-1][1], "rate_ppb": 0, "bound_ns": half_ns, "bound_growth_ppb": 0,
        "tai_utc_s": TAI_UTC_S, "series": series, "clock_steps": [],
    }  # fmt: skip


def write_sample_legs(
    folder: Path,
    *,
    count: int = 1200,
    to_ns: Callable[[int], int] = lambda number: 40_000 + number % 7 * 100,
    from_ns: Callable[[int], int] = lambda number: 30_000 + number % 5 * 100,
    server: Machine = SERVER,
    client: Machine = CLIENT,
    half_ns: int = 20_000,
    delay: KnownDelay | None = None,
    put_ns: int = 0,
    least_ns: int = 0,
    leave_out: int = -1,
    card_off_ns: int | None = None,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
) -> StimulusResponse:
    """Write evidence, and return what `legs.json` says.

    Args:
        folder: It is made.
        count: Stimuli.
        to_ns: What the leg to the target takes, by the message's number.
        from_ns: Likewise back.
        server: Its machine.
        client: Likewise.
        half_ns: Half of a round trip of an exchange between both clocks.
        delay: What `legs.json` and the answers say of a known delay.
        put_ns: What it really took, and adds to its leg.
        least_ns: Of the wiring.
        card_off_ns: A card is read, too, which is off by so much; None: there is none.
        leave_out: A message of which the client has recorded nothing; -1: of each.
        answers: Changes of the answers of `server` and `client`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    events: dict[str, list[tuple[int, int, int]]] = {"server": [], "client": []}
    sent_ns = BEGIN_NS
    for number in range(count):
        sent_ns = BEGIN_NS + number * INTERVAL_NS
        is_delayed = delay is not None and number // delay.turn % 2 == 1
        added_ns = {delay.leg: put_ns} if delay and is_delayed else {}
        received_ns = sent_ns + to_ns(number) + added_ns.get(TO_TARGET, 0)
        answered_ns = received_ns + 1000
        back_ns = answered_ns + from_ns(number) + added_ns.get(FROM_TARGET, 0)
        events["server"] += [(0, number, sent_ns), (1, number, back_ns)]
        if number != leave_out:
            events["client"] += [(0, number, received_ns), (1, number, answered_ns)]
    machines = {"server": server, "client": client}
    for name, machine in machines.items():
        raw = stream_bytes(f"bw-traffic-{name}", machine, POINTS[name], events[name], sent_ns)
        (folder / f"{name}.bwevents").write_bytes(raw)
        has_delay = delay is not None and (name == "server") == (delay.leg == TO_TARGET)
        asked_us = delay.delay_us if delay is not None and has_delay else 0
        answer: dict[str, Any] = {
            "type": "result", "tool": "bw-traffic stimulus", "complete": True, "valid": True,
            "invalid_reasons": [], "count": count, "size_bytes": 48, "sent": count, "received": count,
            "negative": 0, "delay_receive_us": 0, "delay_send_us": asked_us,
            "sending": summary([SENDING_NS] * count),
            "sending_delayed": summary([SENDING_NS + put_ns] * count if has_delay else []),
        }  # fmt: skip
        answer |= (answers or {}).get(name, {})
        (folder / f"{name}.ndjson").write_text(json.dumps(answer) + "\n")
    exchanges = exchanges_answer(client, half_ns, sent_ns)
    (folder / "offset-client.ndjson").write_text(json.dumps(exchanges) + "\n")
    card = None if card_off_ns is None else Card("card.ndjson", 100)
    if card_off_ns is not None:
        answer = card_answer(client, card_off_ns, sent_ns)
        (folder / "card.ndjson").write_text(json.dumps(answer) + "\n")
    found = StimulusResponse(
        TARGET,
        RecordedEnd("p01", "server.ndjson", "server.bwevents"),
        RecordedEnd(TARGET, "client.ndjson", "client.bwevents", "offset-client.ndjson"),
        48,
        count,
        INTERVAL_NS // 1000,
        TAI_UTC_S,
        least_ns,
        delay,
        card,
    )
    write_legs(folder, found)
    return found
