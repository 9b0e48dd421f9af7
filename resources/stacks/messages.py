# SPDX-License-Identifier: Apache-2.0
"""What the messages of one replay took, by type of streams, and what the bench's machine took of each.

A type is the pattern's own: the last digit of a stream's id. Streams of one type may have several budgets:
the type has the smallest of them, so that no message that misses its own is within it.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hw.errors import MeasurementError
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import ReplayResults, stream_uncertainty, witness_time
from reports.errors import RecordError
from reports.stacks.evidence import StreamType
from reports.stacks.turns import TypeMessages
from reports.tools.answers import StreamResult
from reports.tools.taken_time import UTILISATION_MAX_PERMILLE, TakenTime
from resources.daq_replay.pattern import Stream

MESSAGES = "messages.csv"
"""Of `bw-traffic recv --log`: a line for each message that came and counts."""


def type_name(message_type: int) -> str:
    """Return the name of a type of streams."""
    return f"type {message_type}"


def types_of(streams: Iterable[Stream]) -> tuple[StreamType, ...]:
    """Return the types of streams, each with the smallest budget of its streams."""
    budgets_ns: dict[int, int] = {}
    for each in streams:
        budgets_ns[each.message_type] = min(each.budget_ns, budgets_ns.get(each.message_type, each.budget_ns))
    return tuple(StreamType(type_name(each), budgets_ns[each]) for each in sorted(budgets_ns))


def type_messages(
    folder: Path,
    streams: Sequence[Stream],
    witness_clock: str,
    threshold_ns: int,
    faults: Iterable[str] = (),
) -> dict[str, TypeMessages]:
    """Read a replay that was logged message by message.

    Args:
        folder: Its evidence.
        streams: That were replayed.
        witness_clock: Of the node of the bench's witness.
        threshold_ns: Of the witness: shorter pauses are none.
        faults: What only who collected the answers has seen go wrong.

    Raises:
        MeasurementError: Something speaks against the replay: it is no turn of this stack. Says what.
    """
    try:
        replay = load_replay(folder).replay(witness_clock)
        rows = _rows(folder / MESSAGES)
        results = {each.id: replay.recv.stream(each.id) for each in streams}
    except RecordError as error:
        raise MeasurementError(str(error)) from error
    types = {each.id: type_name(each.message_type) for each in streams}
    causes = [*replay.causes(), *faults]
    for number, result in results.items():
        causes += _causes(result, replay, len(rows.get(number, ())))
    if dropped := replay.recv.recorder.get("message_log_dropped", 0):
        causes.append(f"{dropped} messages are not in the log of messages")
    if causes:
        raise MeasurementError("; ".join(dict.fromkeys(causes)))
    found: dict[str, tuple[list[int], list[int], list[int]]] = defaultdict(lambda: ([], [], []))
    by_witness = witness_time(replay)
    machine = _machine_time(replay, threshold_ns)
    for number, result in results.items():
        slack_ns = int(stream_uncertainty(result, replay)[0].expanded)
        latencies_ns, taken_ns, lost = found[types[number]]
        lost.append(result.lost)
        for way_ns, received_local_ns in rows.get(number, ()):
            took_ns = 0
            if machine is not None and by_witness is not None:
                received_ns = by_witness(received_local_ns)
                if received_ns is None:
                    raise MeasurementError(
                        f"stream {number}: when a message came is not known by the witness"
                    )
                took_ns = machine.most_ns(received_ns - way_ns - slack_ns, received_ns + slack_ns)
            latencies_ns.append(way_ns)
            taken_ns.append(took_ns)
    return {
        name: TypeMessages(np.array(latencies, np.int64), np.array(taken, np.int64), sum(lost))
        for name, (latencies, taken, lost) in sorted(found.items())
    }


def _machine_time(replay: ReplayResults, threshold_ns: int) -> TakenTime | None:
    """Return when the bench's machine is known to have been away from both ends; None: nobody watched.

    Interrupts that nobody claims are left to the stacks: in them the kernel's own does its work. Of a window
    of the witness less may be left than it would have noticed by itself: that is no pause.
    """
    witness = replay.witness
    if witness is None:
        return None
    seen = witness.pauses(overdue=True, known=True)
    pauses = [(begin, end) for begin, end in seen if end - begin >= threshold_ns]
    return TakenTime.between(
        [*pauses, *replay.emulator_pauses], min(witness.utilisation_permille or 0, UTILISATION_MAX_PERMILLE)
    )


def _causes(result: StreamResult, replay: ReplayResults, logged: int) -> list[str]:
    """Return why a stream's messages cannot be taken as they are."""
    _, unknown = stream_uncertainty(result, replay)
    causes = [unknown] if unknown else []
    if result.invalid_samples:
        causes.append(f"stream {result.id}: {result.invalid_samples} messages without the time of sending")
    if logged != result.received_minus_sent.n:
        causes.append(
            f"stream {result.id}: {logged} messages are in {MESSAGES},"
            f" {result.received_minus_sent.n} were counted"
        )
    if logged + result.lost < result.expected:
        missing = result.expected - result.lost - logged
        causes.append(f"stream {result.id}: {missing} of {result.expected} messages are not accounted for")
    return causes


def _rows(path: Path) -> dict[int, list[tuple[int, int]]]:
    """Return received - sent, and when each came by the consumer's clock, by stream; raises RecordError."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                way_ns = int(row["received_minus_scheduled_ns"]) - int(row["lateness_ns"])
                found[int(row["stream"])].append((way_ns, int(row["received_local_tai_ns"])))
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise RecordError(f"{path.name}: {error!r}") from error
    return found
