# SPDX-License-Identifier: Apache-2.0
"""A loop of camera and tracker, worked out again from streams and truth file: docs/control-loops.md.

Places on the timeline are read off by straight lines. When the target was where a command says is found by
going back along its path in steps, not by the nearest point of a line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.camera_cut import cut_problems
from reports.rejudge.each import judge_evidence
from reports.rejudge.placed_stream import NS_PER_S, PlacedStream, read_placed
from reports.rejudge.quantiles import SHARES, SLACK_NS, quantile, quantile_problems
from reports.rejudge.rule import outcome_of, outcome_problems
from reports.rejudge.under_load import load_problems, split_beside

Json = Mapping[str, Any]
Ns = dict[int, int]

DOCUMENT = "camera.json"
ENDS = "camera", "tracker", "display"
NS_PER_MS = 1_000_000
LOOK_BACK_NS = 3 * NS_PER_S
FINE = 16
"""Steps between two moments of the path."""
TURN_SHARE = 0.02
"""Of the speed: where steps differ by more, the path turns."""
AXIS = re.compile(r"(.+) at (\d+) ms")
LEGS = {
    "camera to tracker": ("camera", "camera.captured", "tracker", "tracker.picture"),
    "tracker to camera": ("tracker", "tracker.command_send", "camera", "camera.command_received"),
    "tracker to display": ("tracker", "tracker.forward", "display", "display.picture"),
    "camera to display": ("camera", "camera.captured", "display", "display.picture"),
}
OWN = {
    "whole": ("camera", "camera.captured", "camera.command_received"),
    "tracker": ("tracker", "tracker.picture", "tracker.command_send"),
}


def camera_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, samples, parts of U and outcome of each stretch, and the checks of the bench."""
    read = cache(_read)
    judges = (
        ("loop_delay", _stretch),
        ("loop_out_of_picture", _out_of_picture),
        ("loop_contradictions", _order),
        ("loop_whole_outside", _sum),
        ("loop_whole_beyond_u", _sum),
        ("loop_unaccounted", _account),
        ("loop_witnesses_en", _witnesses),
        ("loop_slope_error", partial(_slope, read)),
    )
    return judge_evidence(run, records, DOCUMENT, read, _facts, judges)


@dataclass
class Evidence:
    """All of a folder."""

    file: Path
    facts: Json
    programs: dict[str, PlacedStream]
    pictures: list[Json]
    commands: list[Json]
    places: list[tuple[int, int, int]]
    head: Json
    is_whole: bool
    run_up: int = 0


def _read(file: Path) -> Evidence:
    facts: Json = json.loads(file.read_text("utf-8"))
    folder = file.parent
    lines = [json.loads(line) for line in (folder / facts["truth"]).read_text("utf-8").splitlines()]
    of = {
        kind: [each for each in lines if each["type"] == kind]
        for kind in ("camera", "picture", "command", "end")
    }
    pictures = sorted(of["picture"], key=lambda each: each["number"])
    places = [json.loads(line) for line in (folder / facts["places"]).read_text("utf-8").splitlines()]
    end: Json = of["end"][-1] if of["end"] else {}
    return Evidence(
        file,
        facts,
        {name: read_placed(facts, facts[name], folder) for name in ENDS if name in facts},
        pictures,
        [each for each in of["command"] if not each["refused"]],
        [(each["t_ns"], each["x_q8"], each["y_q8"]) for each in places],
        of["camera"][0],
        bool(end) and not end.get("lacks") and end.get("pictures") == len(pictures),
        facts.get("warm_up", 0),
    )


def _first(placed: PlacedStream, point: str) -> Ns:
    """Return ticks of the first event of each tag."""
    found: Ns = {}
    for tag, ticks in sorted(placed.stream.events.get(point, []), key=lambda each: each[1]):
        found.setdefault(tag, ticks)
    return found


def _leg(found: Evidence, name: str) -> tuple[Ns, float]:
    """Return what each picture took, and U that exchanges leave."""
    sender, out, receiver, back = LEGS[name]
    one, other = found.programs[sender], found.programs[receiver]
    sent, came = _first(one, out), _first(other, back)
    took = {
        tag: other.tai_ns(came[tag]) - one.tai_ns(sent[tag])
        for tag in sent.keys() & came.keys()
        if tag >= found.run_up
    }
    return took, (one.half_ns + other.half_ns) / 2


def _own(found: Evidence, name: str, run_up: int | None = None) -> Ns:
    program, begin, end = OWN[name]
    one = found.programs[program]
    first, last = _first(one, begin), _first(one, end)
    return {
        tag: round((last[tag] - first[tag]) * one.ns_per_tick)
        for tag in first.keys() & last.keys()
        if tag >= (found.run_up if run_up is None else run_up)
    }


def _axis(record: Record, facts: Json) -> str:
    [axis] = record["subject"]["axes"]
    name, _, _ = split_beside(axis["value"])
    found = AXIS.fullmatch(name)
    if axis["axis"] != "stretch" or found is None:
        raise ValueError(f"its axis is {axis}")
    asked_us = facts["delay"]["asked_us"] if "delay" in facts else 0
    if int(found[2]) * 1000 != asked_us:
        raise ValueError(f"its axis is {axis['value']}, {DOCUMENT} is of {asked_us} us")
    return found[1]


def _stretch(record: Record, found: Evidence) -> Iterator[str]:
    name = _axis(record, found.facts)
    is_own = name in OWN
    took, u_ns = (_own(found, name), 0.0) if is_own else _leg(found, name)
    times = [took[tag] for tag in sorted(took)]
    if record["n"] != len(times) or record["lost"]:
        yield f"n is {record['n']}, lost {record['lost']}; the streams say {len(times)} and 0"
    if not times:
        return
    if not (yield from quantile_problems(record, times, u_ns, is_own=is_own)):
        return
    outcome = outcome_of(record, record["value"], len(times))
    if outcome in ("pass", "fail") and (
        not found.is_whole or any(each.stream.lost for each in found.programs.values())
    ):
        outcome = "inconclusive"
    backwards = not is_own and _early(found, 0)
    if record["outcome"] != outcome and not (backwards and record["outcome"] == "inconclusive"):
        yield f"{record['outcome']}, its streams come to {outcome}"


def _early(found: Evidence, parts_of_half: float) -> int:
    early = 0
    for name, least in zip(("camera to tracker", "tracker to camera"), found.facts["least_ns"], strict=True):
        took, u_ns = _leg(found, name)
        early += sum(each < least - SLACK_NS - 2 * parts_of_half * u_ns for each in took.values())
    return early


def _out_of_picture(record: Record, found: Evidence) -> Iterator[str]:
    _axis(record, found.facts)
    out = 0
    for picture, (_, x, y) in zip(found.pictures, found.places, strict=True):
        pose = picture["pose"]
        zoom = pose["zoom_q8"] / 256
        out += not (
            abs(x - pose["x_q8"]) * zoom / 256 <= found.head["width_px"] / 2
            and abs(y - pose["y_q8"]) * zoom / 256 <= found.head["height_px"] / 2
        )
    value = 100 * out / len(found.pictures)
    if record["n"] != len(found.pictures) or abs((record["value"] or 0) - value) > 1e-9:
        said = f"{value} of {len(found.pictures)}"
        yield f"value is {record['value']} of {record['n']}, the truth file says {said}"
    if found.is_whole or record["outcome"] != "inconclusive":
        yield from outcome_problems(record, record["n"])


def _order(record: Record, found: Evidence) -> Iterator[str]:
    n = sum(len(_leg(found, name)[0]) for name in ("camera to tracker", "tracker to camera"))
    early = _early(found, 4)
    if record["n"] != n or not early <= (record["value"] or 0) <= n:
        yield f"value is {record['value']} of {record['n']}, the streams say {early} or more of {n}"
    yield from outcome_problems(record, record["n"])


def _sum(record: Record, found: Evidence) -> Iterator[str]:
    """Hold the sum of the parts against the camera's counter: by lines within both machines' round trips."""
    whole, tracker = _own(found, "whole"), _own(found, "tracker")
    there, _ = _leg(found, "camera to tracker")
    back, u_ns = _leg(found, "tracker to camera")
    every = sorted(whole.keys() & tracker.keys() & there.keys() & back.keys())
    if record["n"] != len(every):
        yield f"n is {record['n']}, the streams say {len(every)}"
    off = sorted(abs(there[tag] + tracker[tag] + back[tag] - whole[tag]) for tag in every)
    if off and off[len(off) // 2] > 4 * u_ns + SLACK_NS and record["value"] == 0:
        yield f"value is 0, and half of the pictures are {off[len(off) // 2]} ns off the counter"
    yield from outcome_problems(record, record["n"])


def _account(record: Record, found: Evidence) -> Iterator[str]:
    """Count the pictures with a loop delay, and those that stop on the way, by the programs' points."""
    left = {picture["number"] for picture in found.pictures}
    if record["n"] != len(left):
        yield f"n is {record['n']}, the truth file has {len(left)} pictures"
    camera, tracker = found.programs["camera"], found.programs["tracker"]
    steps = (
        {picture["number"] for picture in found.pictures if picture["queued"]},
        _first(camera, "camera.sent").keys(),
        _first(tracker, "tracker.picture").keys(),
        _first(tracker, "tracker.command_send").keys(),
        _first(camera, "camera.command_received").keys(),
    )
    for passed in steps:
        left = left & set(passed)
    closed = _first(camera, "camera.captured").keys() & _first(camera, "camera.command_received").keys()
    value = len(set(closed) ^ left)
    if record["value"] != value:
        yield f"value is {record['value']}, the streams say {value}"
    yield from cut_problems(_own(found, "whole", 0), found.run_up, len(found.pictures), _rest(found))
    yield from outcome_problems(record, record["n"])


def _rest(found: Evidence) -> int:
    """Return how many pictures are captured before the target moves between two of them."""
    words = found.head["options"]
    still_ms = int(words[words.index("--still-ms") + 1]) if "--still-ms" in words else 0
    return math.ceil(still_ms * 1000 / found.facts["period_us"]) + 1 if still_ms else 0


def _by_pictures(found: Evidence) -> tuple[list[int], float]:
    """Return the loop's delay of each command by the path, and the path's speed in pixels a second."""
    delays: list[int] = []
    velocities = [
        tuple((b[axis] - a[axis]) / 256 / ((b[0] - a[0]) / NS_PER_S) for axis in (1, 2))
        for a, b in pairwise(found.places)
    ]
    speed = median(math.hypot(*each) for each in velocities)
    straight = [math.hypot(b[0] - a[0], b[1] - a[1]) <= TURN_SHARE * speed for a, b in pairwise(velocities)]
    for command in found.commands:
        if command["picture"] < found.run_up:
            continue
        came, look = command["came_ns"], command["look"]
        best: tuple[float, int, int] | None = None
        for number, (a, b) in enumerate(pairwise(found.places)):
            if a[0] < came - LOOK_BACK_NS or b[0] > came:
                continue
            for step in range(FINE):
                at = a[0] + (b[0] - a[0]) * step // FINE
                apart = math.hypot(
                    a[1] + (b[1] - a[1]) * step / FINE - look["x_q8"],
                    a[2] + (b[2] - a[2]) * step / FINE - look["y_q8"],
                )
                if best is None or apart < best[0]:
                    best = apart, at, number
        if best is None or not (0 < best[2] < len(straight) and straight[best[2] - 1] and straight[best[2]]):
            continue
        delays.append((command["motor_ns"] if command["obeyed"] else came) - best[1])
    return delays, speed


def _witnesses(record: Record, found: Evidence) -> Iterator[str]:
    """Hold both witnesses' medians against each other: E_n itself rests on U, of which a part is noted."""
    delays, speed = _by_pictures(found)
    whole = sorted(_own(found, "whole").values())
    if record["value"] is None or not delays or not whole:
        if record["value"] is not None:
            yield f"value is {record['value']}, and a witness says nothing"
        return
    if abs(record["n"] - len(delays)) > max(2, len(delays) // 20):
        yield f"n is {record['n']}, the path tells of {len(delays)} commands"
    apart = abs(median(delays) - median(whole))
    # The tracker sees a place to a pixel at the most, and a step is a part of a period.
    least = 2 * NS_PER_S / speed + NS_PER_MS
    if record["value"] <= 1 and apart > max(least, 2 * record["value"] * 10 * NS_PER_MS):
        yield f"value is {record['value']}, both witnesses are {apart / NS_PER_MS:.2f} ms apart"
    outcome = outcome_of(record, record["value"], record["n"])
    if record["outcome"] != outcome and not (outcome == "pass" and record["outcome"] == "inconclusive"):
        yield f"{record['outcome']}, its value comes to {outcome}"


def _slope(read: Callable[[Path], Evidence], record: Record, found: Evidence) -> Iterator[str]:
    """Work out the slope from the folders beside the one that the record names."""
    points: list[tuple[float, float]] = []
    for other in sorted(found.file.parent.parent.glob(f"*/{DOCUMENT}")):
        each = read(other)
        if "load" not in each.facts and "delay" in each.facts and (whole := _own(each, "whole")):
            delay = each.facts["delay"]
            middle = quantile(list(whole.values()), SHARES["median"])
            points.append(((delay["there_us"] + delay["back_us"]) / 2, middle / 1000))
    points.sort()
    if record["n"] != len(points):
        yield f"n is {record['n']}, there are {len(points)} delays"
    if len(points) > 1:
        value = (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0]) - 2
        if abs(record["value"] - value) > 0.001 + abs(value) / 100:
            yield f"value is {record['value']}, the streams say {value}"
    if {part["name"] for part in record["uncertainty"]["parts"]} not in (set(), {"loop", "path"}):
        yield "parts of U must be loop and path"
    yield from outcome_problems(record, record["n"])


def _facts(record: Record, found: Evidence) -> Iterator[str]:
    """Say where a record and its document do not go together."""
    facts = found.facts
    if record["subject"].get("target") != facts["target"]:
        yield f"target is {record['subject'].get('target')}, {DOCUMENT} is of {facts['target']}"
    named = {Path(each["path"]).name for each in record["evidence"]}
    ends = [facts[name] for name in ENDS if name in facts]
    files = [end.get(key) for end in ends for key in ("answer", "events", "exchanges")]
    for name in (*files, facts["truth"], facts["places"]):
        if name and name not in named:
            yield f"{name} is not among its evidence"
    yield from load_problems(record, facts, found.file.parent)
    times = [picture["captured_ns"] for picture in found.pictures]
    if times != [at for at, _, _ in found.places]:
        yield f"{facts['places']} is not of the pictures of {facts['truth']}"
