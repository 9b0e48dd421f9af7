# SPDX-License-Identifier: Apache-2.0
"""Filters that read: what a run holds of events, streams of programs, recordings of kernels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from reports.errors import RecordError
from reports.timeline.event_stream_file import SUFFIX, read_event_stream, read_event_streams
from reports.timeline.kernel_recording import load_recording
from reports.timeline.kernel_tracks import timeline_of_recording
from reports.timeline.placed_events import Axis, Timeline, merged_order
from reports.timeline.processing.data import Events, Pairs, joined, of_timeline, of_track
from reports.timeline.processing.filters import ALL, Context, Names, named_filter
from reports.timeline.processing.stream_events import Clock, track_of_stream
from reports.timelines import timelines_of_run

EVIDENCE = "evidence"
TAI_UTC_MAX_S = 3600


@named_filter("run")
def run_events(context: Context, *, timeline: Names = ALL) -> Events:
    """Give the events of a timeline that the run itself holds.

    Args:
        context: Of the step.
        timeline: Its name; one alone may match.
    """
    return of_timeline(_of_run(context, timeline))


@named_filter("flows")
def run_flows(context: Context, *, timeline: Names = ALL) -> Pairs:
    """Give what caused what as the run itself says it.

    Args:
        context: Of the step.
        timeline: Its name; one alone may match.
    """
    found = _of_run(context, timeline)
    events, flows, offsets = of_timeline(found), found.flows, found.offsets
    place = merged_order(found.tracks).argsort(kind="stable")
    causes = events.take(place[offsets[flows.from_track] + flows.from_index])
    effects = events.take(place[offsets[flows.to_track] + flows.to_index])
    order = causes.numbers["tai_ns"].argsort(kind="stable")
    return Pairs(causes.take(order), effects.take(order), 0, 0)


def _of_run(context: Context, names: Names) -> Timeline:
    timelines, problems = timelines_of_run(context.run)
    wanted = [each for each in timelines if names.match(each.place)]
    if len(wanted) != 1:
        found = "; ".join([", ".join(sorted(each.place for each in timelines)) or "none", *problems])
        raise RecordError(f"timeline {', '.join(names)}: {len(wanted)} match, one has to (found: {found})")
    (timeline,) = wanted
    evidence = context.run / EVIDENCE
    place = evidence / timeline.place
    files = [place] if place.is_dir() else sorted(place.parent.glob(f"{place.name}[-.]*"))
    for each in files:
        context.note(f"{EVIDENCE}/{each.relative_to(evidence).as_posix()}", each)
    for problem in problems:
        if problem.startswith(f"{timeline.place}: "):
            context.leave_out(f"not read: {problem}")
    _leave_out(context, timeline)
    return timeline


def _leave_out(context: Context, timeline: Timeline) -> None:
    for reason, count in timeline.left_out.items():
        context.leave_out(f"{count} events: {reason}")


@named_filter("streams")
def streams(
    context: Context, *, path: str, node: str, clock: Clock = "monotonic", tai_utc_s: int | None = None
) -> Events:
    """Give the events of programs, of a file or of all of a folder that `bw-events record` has written.

    Args:
        context: Of the step.
        path: File or folder, of the run, or, with `./` or `../`, beside the graph's file.
        node: The machine.
        clock: On whose axis.
        tai_utc_s: TAI - UTC of `realtime`, where the machine's kernel does not know it.
    """
    if tai_utc_s is not None and abs(tai_utc_s) > TAI_UTC_MAX_S:
        raise RecordError(f"tai_utc_s: must be from -{TAI_UTC_MAX_S} to {TAI_UTC_MAX_S}, found {tai_utc_s}")
    found = context.path(path)
    files = sorted(found.glob(f"*{SUFFIX}")) if found.is_dir() else [found]
    for file in files:
        context.note(f"{path.rstrip('/')}/{file.name}" if found.is_dir() else path, file)
    read = read_event_streams(found) if found.is_dir() else [read_event_stream(found)]
    if not read:
        raise RecordError(f"{path}: no *{SUFFIX} in it")
    axis: Axis = "tai" if clock == "realtime" else "monotonic"
    by = f"the {node}'s CLOCK_{clock.upper().replace('-', '_')}"
    lanes: Counter[str] = Counter()
    parts: list[Events] = []
    for stream in read:
        lane = f"{stream.program} {stream.pid} {stream.stream}"
        lanes[lane] += 1
        lane = f"{lane} {lanes[lane]}" if lanes[lane] > 1 else lane
        track, unplaced = track_of_stream(node, lane, stream, clock, tai_utc_s)
        for count, reason in (
            (unplaced, "too far from the readings of the clock, or at a break of it"),
            (stream.lost, "had no room in the ring"),
            (stream.incomplete, "not all of their bytes are there"),
        ):
            if count:
                context.leave_out(f"{count} events: {lane}: {reason}")
        if stream.damaged_bytes:
            context.leave_out(f"{stream.damaged_bytes} bytes at the end: {lane}: no whole block")
        parts.append(of_track(track, Timeline(path, axis, by, ())))
    return joined(parts)


@named_filter("kernel")
def kernel(context: Context, *, path: str, node: str) -> Events:
    """Give the events of a kernel's recording; a thread is one that lasts while it has the CPU.

    Args:
        context: Of the step.
        path: The file, as of `streams`.
        node: The machine.
    """
    file: Path = context.path(path)
    context.note(path, file)
    recording = load_recording(file)
    for ring in recording.rings.values():
        ring.require_whole(path)
    timeline = timeline_of_recording(path, node, recording)
    _leave_out(context, timeline)
    return of_timeline(timeline)
