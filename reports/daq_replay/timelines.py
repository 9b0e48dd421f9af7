# SPDX-License-Identifier: Apache-2.0
"""The messages of a replay's list of misses as a timeline: due and sent, the kernel's stamp, and the read.

Times are those of the target's clock, so that its own events have no error; those of the producers have U
of their streams (`stream_uncertainty`). Where that is not known, or a clock broke its line, the producer's
events have no place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.excerpts import replays_of_run, target_witness
from reports.daq_replay.verdict import ReplayResults, stream_uncertainty
from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.global_time import Places
from reports.timeline.placed_events import Flows, Timeline, Track, placed_track
from reports.tools.answers import Miss, StreamResult, WitnessResult

SENT, READ = ("due", "sent"), ("kernel has the last frame", "last byte read")
TARGET = "target"


def timelines_of(run: Path) -> tuple[list[Timeline], list[str]]:
    """Return a timeline for each replay of a run, and in words what cannot be read."""
    found: list[Timeline] = []
    problems: list[str] = []
    for folder in replays_of_run(run):
        place = folder.relative_to(run / "evidence").as_posix()
        evidence = load_replay(folder)
        own = list(evidence.problems)
        try:
            found.append(timeline_of(place, evidence.replay(), target_witness(folder, own)))
        except RecordError as error:
            own = [str(error)]
        problems += [f"{place}: {each}" for each in own]
    return found, problems


def timeline_of(place: str, replay: ReplayResults, witness: WitnessResult | None = None) -> Timeline:
    """Return the messages of a replay that are in its list of misses.

    Args:
        place: What it is called.
        replay: As it is judged.
        witness: What the witness in the target saw; None: there was none.

    Raises:
        RecordError: A time cannot be.
    """
    tracks: list[Track] = []
    flows: list[tuple[Times, Times, Times, Times]] = []
    left_out: Counter[str] = Counter()
    for stream in replay.recv.streams:
        misses = [each for each in replay.misses if each.stream == stream.id]
        if misses:
            _add_stream(stream, misses, replay, tracks, flows, left_out)
    if witness is not None:
        tracks += _away(witness)
    columns = [np.concatenate(each) for each in zip(*flows, strict=True)] if flows else []
    return Timeline(
        place,
        "tai",
        "the target's clock",
        tuple(tracks),
        Flows(*columns),
        {reason: count for reason, count in left_out.items() if count},
        replay.recv.tai_utc_s,
    )


def _add_stream(
    stream: StreamResult,
    misses: Sequence[Miss],
    replay: ReplayResults,
    tracks: list[Track],
    flows: list[tuple[Times, Times, Times, Times]],
    left_out: Counter[str],
) -> None:
    """Add the two tracks of a stream, and the flows from sending to the kernel's stamp, and to the read."""
    n = len(misses)
    is_sent = np.array([each.received_minus_sent_ns is not None for each in misses])
    is_stamped = np.array([each.kernel_stamp_local_tai_ns is not None for each in misses])
    uncertainty, unknown = stream_uncertainty(stream, replay)
    if replay.clock_broke(stream.producer):
        unknown = "a clock broke its line"
    try:
        read = np.array([each.received_local_tai_ns for each in misses], np.int64)
        latency = np.array([each.received_minus_scheduled_ns for each in misses], np.int64)
        way = np.array([each.received_minus_sent_ns or 0 for each in misses], np.int64)
        stamp = np.array([each.kernel_stamp_local_tai_ns or 0 for each in misses], np.int64)
        sequence = np.array([each.sequence for each in misses], np.int64)
        u_ns = np.full(2 * n, 0 if unknown else round(uncertainty.expanded), np.int64)
        own_u_ns = np.repeat(np.array([replay.recv.own_line_ns or 0, 0], np.int64), n)
    except OverflowError as error:
        raise RecordError(f"misses.ndjson, recv.ndjson: stream {stream.id}: {error}") from error
    there = np.concatenate([np.ones(n, np.bool_), is_sent])
    if unknown:
        left_out[f"producer {stream.producer}: {unknown}"] += int(there.sum())
        there[:] = False
    name, tag = np.repeat(np.arange(2), n), np.tile(sequence, 2)
    also = {"latency_ns": np.tile(latency, 2)}
    lane = f"stream {stream.id}"
    sent_ns = _places(np.concatenate([read - latency, read - way]), u_ns, there)
    sent, at_sent = placed_track(f"producer {stream.producer}", lane, SENT, sent_ns, name, tag, columns=also)
    read_ns = _places(
        np.concatenate([stamp, read]), own_u_ns, np.concatenate([is_stamped, np.ones(n, np.bool_)])
    )
    got, at_got = placed_track(TARGET, lane, READ, read_ns, name, tag, columns=also)
    number = len(tracks)
    if len(sent):
        tracks.append(sent)
        first = np.where(is_stamped, at_got[:n], at_got[n:])
        chosen = at_sent[n:] >= 0
        flows.append(_flow(number, at_sent[n:][chosen], number + 1, first[chosen]))
    target = len(tracks)
    tracks.append(got)
    flows.append(_flow(target, at_got[:n][is_stamped], target, at_got[n:][is_stamped]))


def _flow(cause: int, causes: Times, effect: int, effects: Times) -> tuple[Times, Times, Times, Times]:
    return np.full(causes.size, cause), causes, np.full(effects.size, effect), effects


def _places(tai_ns: Times, u_ns: Times, known: NDArray[np.bool_]) -> Places:
    return Places(tai_ns, tai_ns - u_ns, tai_ns + u_ns, u_ns, known)


def _away(witness: WitnessResult) -> list[Track]:
    """Return when the target's most urgent thread did not run, a track a processor."""
    try:
        windows = np.array([list(each) for each in witness.windows], np.int64).reshape(-1, 3)
    except OverflowError as error:
        raise RecordError(f"witness-target.ndjson: windows: {error}") from error
    found: list[Track] = []
    for cpu in np.unique(windows[:, 2]).tolist():
        begin_ns, end_ns, _ = windows[windows[:, 2] == cpu].T
        zero, known = np.zeros_like(begin_ns), np.ones(begin_ns.shape, np.bool_)
        found.append(
            placed_track(
                TARGET,
                f"CPU {cpu}",
                ("most urgent thread did not run",),
                _places(begin_ns, zero, known),
                zero,
                zero,
                duration_ns=end_ns - begin_ns,
            )[0]
        )
    return found
