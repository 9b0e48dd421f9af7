# SPDX-License-Identifier: Apache-2.0
"""One-way latencies, judged again from what the tools said: docs/latency.md, from `The decision` on."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_lines, read_result
from reports.rejudge.arithmetic import expanded
from reports.rejudge.carried import is_carried
from reports.rejudge.each import DAMAGE
from reports.rejudge.ended_producers import taken_by_ended
from reports.rejudge.line_breaks import touched
from reports.rejudge.machine import Machine, machine_of
from reports.rejudge.summary import stream_discrepancies, summary_discrepancies
from reports.rejudge.target_clock import NOTED, TargetClock

QUANTITY = "one_way_latency"
WITNESS_CLOCK = "host"
REPLAYS_TO_FAIL = 3
"""Of a simulated bench."""
SLACK = 0.001
"""Of the utilisation: the bench may round it up to a thousandth."""

OTHERS_MAX_PPM = 50_000
"""Of the CPUs' time: beside more by others a message may have taken twice as long."""


@dataclass(frozen=True)
class Machines:
    """What the machine took at the most, and what it is known to have taken."""

    most: Machine
    known: Machine


@dataclass(frozen=True)
class Finding:
    """What a replay says of a stream: `standing` as docs/latency.md names it."""

    value: int | None
    n: int
    lost: int
    u: float
    parts: Mapping[str, float]
    phase: str
    standing: str


class ReplayFolder:
    """The evidence of one replay."""

    def __init__(self, path: Path) -> None:
        """Read it; raises ValueError or KeyError where a file is damaged or lacks something."""
        self.path = path
        recv = read_result(path / "recv.ndjson")
        if recv is None:
            raise ValueError("recv.ndjson: no result")
        self.recv = recv
        self.progress = next(iter(reversed(read_lines(path / "recv.ndjson", "progress"))), None)
        self.sends = [read_result(file) for file in sorted(path.glob("send-*.ndjson"))]
        self.misses = read_lines(path / "misses.ndjson", "miss")
        self.witness = read_result(path / "witness.ndjson")
        self.plan = tomllib.loads((path / "plan.toml").read_text("utf-8"))
        role = path / "role.json"
        self.of_sender = role.exists()
        is_taken_as_it_is = (path / NOTED).exists()
        self.target_clock = TargetClock(path) if is_taken_as_it_is else None
        consumer = path / "plan-consumer.toml"
        self.consumer_plan = tomllib.loads(consumer.read_text("utf-8")) if consumer.exists() else self.plan

    @cached_property
    def machines(self) -> tuple[Machines, Machines]:
        """Return the machine, with the utilisation as measured and as it may have been rounded."""
        emulation = self.path / "emulation.ndjson"
        measured, rounded = (
            Machines(
                machine_of(self.witness, emulation, slack),
                machine_of(self.witness, emulation, slack, claimed=True),
            )
            for slack in (0.0, SLACK)
        )
        return measured, rounded

    @cached_property
    def is_beside_others(self) -> bool:
        """Say whether others had more of the bench's machine than OTHERS_MAX_PPM of its CPUs' time."""
        path = self.path / "machine_use.json"
        if not path.exists():
            return False
        use = json.loads(path.read_text("utf-8"))
        others_ppm = (use["every_ns"] - use["own_ns"]) * 1_000_000 // (use["cpus"] * use["elapsed_ns"])
        return bool(others_ppm > OTHERS_MAX_PPM)

    def stream(self, stream_id: int) -> Mapping[str, Any]:
        """Return what the consumer says of a stream; raises ValueError."""
        for stream in self.recv["streams"]:
            if stream["id"] == stream_id:
                return dict(stream)
        raise ValueError(f"recv.ndjson: no stream {stream_id}")

    def discrepancies(self) -> Iterator[str]:
        """Say where the tools' answers contradict themselves or each other."""
        if self.target_clock is not None:
            yield from self.target_clock.discrepancies()
        dropped = self.recv["recorder"]["miss_log_dropped"]
        for stream in self.recv["streams"]:
            own = [miss for miss in self.misses if miss["stream"] == stream["id"]]
            for discrepancy in stream_discrepancies(stream, own, dropped, self.progress):
                yield f"stream {stream['id']}: {discrepancy}"
        planned = {stream["id"]: stream for stream in self.consumer_plan["stream"]}
        run = self.consumer_plan["run"]
        for stream in self.recv["streams"]:
            own = planned.get(stream["id"], {})
            for name, planned_name in (("budget_ns", "budget_us"), ("period_ns", "period_us")):
                value = own.get(planned_name)
                if value is not None and stream[name] != value * 1000:
                    yield f"stream {stream['id']}: {name} is {stream[name]}, in the plan {value * 1000}"
        for name in ("warmup_ms", "duration_ms", "phase", "nonce", "correction", "tai_utc_s"):
            if name in run and self.recv[name] != run[name]:
                yield f"recv.ndjson: {name} is {self.recv[name]}, in the plan {run[name]}"
        for clock in self.recv["clocks"]:
            yield from _clock_discrepancies(clock)
        for send in self.sends:
            for each in send["streams"] if send else ():
                yield from self._send_discrepancies(each)

    def _send_discrepancies(self, sent: Mapping[str, Any]) -> Iterator[str]:
        received = {stream["id"]: stream for stream in self.recv["streams"]}.get(sent["id"])
        if received is None:
            yield f"stream {sent['id']}: sent, and unknown to the consumer"
        elif received["received"] > sent["sent"] or sent["sent"] + sent["unsent"] > sent["scheduled"]:
            yield f"stream {sent['id']}: {received['received']} received of {sent['sent']} sent"
        for name in ("sent_minus_scheduled", "transmit_stack"):
            if name in sent:
                for discrepancy in summary_discrepancies(sent[name]):
                    yield f"stream {sent['id']}: producer: {name}: {discrepancy}"
        if (
            received is not None
            and received["received"] == sent["sent"]
            and not received["invalid_samples"]
            and received["sent_minus_scheduled"] != sent["sent_minus_scheduled"]
        ):
            yield f"stream {sent['id']}: sent_minus_scheduled of producer and consumer differ"
        if sent["sent_minus_scheduled"]["n"] != sent["sent"]:
            n = sent["sent_minus_scheduled"]["n"]
            yield f"stream {sent['id']}: sent {sent['sent']}, sent_minus_scheduled is of {n}"

    def parts(self, producer: int) -> tuple[dict[str, float], bool]:
        """Return the parts of U of a producer's streams, ns, and whether the error of the clocks is known."""
        name = next((p["clock"] for p in self.plan["producer"] if p["number"] == producer), None)
        if self.target_clock is not None:
            parts, known = self.target_clock.parts(name)
            line_ns = self.recv.get("own_clock", {}).get("line_error_max_ns")
            return parts if line_ns is None else {**parts, "own_clock_line": line_ns}, known
        clock = next((clock for clock in self.recv["clocks"] if clock["name"] == name), None)
        if clock is None or not clock["kept"]:
            return {}, False
        return {"clock_offset": clock["bound_ns"], "clock_residual": clock["residual_ns"]}, True

    @cached_property
    def decides_nothing(self) -> bool:
        """Say whether the replay as a whole decides nothing."""
        return not (self.recv["valid"] and self.recv["complete"] and is_carried(self.path, self.recv))

    @cached_property
    def ended(self) -> frozenset[int]:
        """Return the streams that a producer takes which ended early."""
        return taken_by_ended(self.recv, self.sends)

    def touched(self, stream: Mapping[str, Any]) -> frozenset[bool]:
        """Say whether a clock that broke its line takes a stream's verdict; both where that is too close."""
        clock_of = {producer["number"]: producer["clock"] for producer in self.plan["producer"]}
        return touched(self.recv, [send for send in self.sends if send], clock_of, stream)

    def found(self, stream_id: int, record: Record) -> list[Finding]:
        """Judge a stream by a record's limit, samples and loss: all that rounding allows it to stand as."""
        stream = self.stream(stream_id)
        whole = stream["received_minus_scheduled"]
        parts, is_known = self.parts(stream["producer"])
        u = float(sum(parts.values()))
        standings = dict.fromkeys(
            self._standing(stream, record, u, machine) if is_known and not is_touched else "undecided"
            for machine in self.machines
            for is_touched in sorted(self.touched(stream))
        )
        phase = str(self.recv["phase"])
        return [
            Finding(whole["max_ns"], whole["n"], stream["lost"], u, parts, phase, each) for each in standings
        ]

    def _standing(
        self,
        stream: Mapping[str, Any],
        record: Record,
        u: float,
        machine: Machines,
    ) -> str:
        whole = stream["received_minus_scheduled"]
        limit = record["limit"]["upper"]
        if self.decides_nothing or stream["id"] in self.ended or self._is_doubtful(stream, u):
            return "undecided"
        if stream["lost"] > record["allowed_lost"]:
            return "over"
        if not whole["n"]:
            return "undecided"
        highest = whole["max_ns"]
        if highest <= limit + u and u >= limit:
            return "undecided"
        if highest <= limit - u:
            return "clean" if whole["n"] >= record["n_required"] else "short"
        late = [
            m
            for m in self.misses
            if m["stream"] == stream["id"] and m["received_minus_scheduled_ns"] > limit - u
        ]
        arrived = self._by_witness()
        rests: list[float] = []
        slowed: list[float] = []
        explained = 0
        for miss in late:
            length = miss["received_minus_scheduled_ns"]
            way = length if self.of_sender else miss["received_minus_sent_ns"]
            end = arrived(miss["received_local_tai_ns"])
            if way is not None:
                way = min(way, length)
                rests.append(
                    way - (machine.most.took(int(end - way - u), int(end + u)) if end is not None else 0.0)
                )
                slowed.append(rests[-1] - way // 2)
            took = machine.known.took(int(end - length - u), int(end + u)) if end is not None else 0.0
            explained += bool(took) and length - took <= limit - u
        is_hidden = self._is_hidden(stream, late, limit + u)
        if max(rests, default=0) > limit + u or is_hidden:
            is_slow = self.is_beside_others and not is_hidden and max(slowed, default=0) <= limit + u
            return "marginal" if is_slow else "over"
        above = sum(count for low, _width, count in whole["buckets"] if low > limit - u)
        return "explained" if late and explained == len(late) and above <= len(late) else "marginal"

    def _is_hidden(self, stream: Mapping[str, Any], late: Sequence[Mapping[str, Any]], above: float) -> bool:
        """Say whether the distributions have more messages over limit + U than the log, by each latency."""
        names = ["received_minus_scheduled", *([] if self.of_sender else ["received_minus_sent"])]
        for name in names:
            over = [miss[f"{name}_ns"] for miss in late if (miss[f"{name}_ns"] or 0) > above]
            rest = len(over) - stream[name]["overflow"]
            for low, _width, count in stream[name]["buckets"]:
                rest -= count if low > above else 0
            is_longest_logged = (stream[name]["max_ns"] or 0) <= max(over, default=above)
            if rest >= 0 and is_longest_logged:
                return False
        return True

    def _is_doubtful(self, stream: Mapping[str, Any], u: float) -> bool:
        whole, way = stream["received_minus_scheduled"], stream["received_minus_sent"]
        accounted = whole["n"] + stream["lost"] + stream["invalid_samples"]
        scheduled = [
            each["scheduled"]
            for send in self.sends
            if send
            for each in send["streams"]
            if each["id"] == stream["id"]
        ]
        return bool(
            stream["invalid_samples"]
            or accounted < stream["expected"]
            or any(number != stream["expected"] for number in scheduled)
            or (way["min_ns"] is not None and way["min_ns"] < -u)
            or (whole["min_ns"] is not None and whole["min_ns"] < -u)
        )

    def _by_witness(self) -> Callable[[int], float | None]:
        if (own := self.target_clock) is not None:
            return lambda time: own.turned(WITNESS_CLOCK, time)
        clock = next((clock for clock in self.recv["clocks"] if clock["name"] == WITNESS_CLOCK), None)
        if clock is None:
            return lambda _time: None
        series: Sequence[Sequence[int]] = clock["series"]

        def turned(time: int) -> float | None:
            before = [point for point in series if point[0] <= time]
            after = [point for point in series if point[0] > time]
            if before and after:
                (t0, o0, _), (t1, o1, _) = before[-1], after[0]
                return time + o0 + (o1 - o0) * (time - t0) / (t1 - t0)
            if before or after:
                return float(time + (before[-1] if before else after[0])[1])
            return None if clock["offset_ns"] is None else float(time + clock["offset_ns"])

        return turned


def _clock_discrepancies(clock: Mapping[str, Any]) -> Iterator[str]:
    """Say where a clock's line is known better than its exchanges allow: half the shortest round trip."""
    if not clock["kept"] or clock["rtt_min_ns"] is None or clock["bound_ns"] is None:
        return
    half_ns = clock["rtt_min_ns"] // 2
    least_ns = min((row[2] for row in clock["series"]), default=half_ns)
    for words, allowed_ns in (("half its shortest round trip", half_ns), ("its best exchange", least_ns)):
        if clock["bound_ns"] < allowed_ns:
            yield f"clock {clock['name']}: bound_ns is {clock['bound_ns']}, {words} leaves {allowed_ns}"


def decided(standings: Sequence[str], replays_over: int, needed: int, *, lone_passes: bool = False) -> str:
    """Return what the replays of a stream come to: `pass`, `fail` or `no verdict`.

    Args:
        standings: Of the stream, replay by replay.
        replays_over: Replays in which some stream of the target was over.
        needed: So many have to be, for a fail.
        lone_passes: Whether a single clean replay passes beside those that the machine explains; in the
            version before it did.
    """
    if "over" in standings and replays_over >= needed:
        return "fail"
    against = sum(each in ("over", "marginal", "undecided") for each in standings)
    clean = standings.count("clean")
    is_lone = clean == 1 and "explained" in standings and not lone_passes
    return "pass" if clean > against and not is_lone else "no verdict"


def latency_discrepancies(
    run: Path, records: Sequence[Record], *, confirmed: bool = True, broke_off: bool = False
) -> tuple[list[str], int]:
    """Judge all latencies of a run again.

    Args:
        run: The run folder.
        records: All its records.
        confirmed: Whether a fail of a simulated bench had to come again; in the version before it had not.
        broke_off: Whether streams may be without a record whose replays confirm the fail of another.

    Returns:
        What differs, and how many records were worked out from raw data.
    """
    problems: list[str] = []
    count = 0
    by_subject: dict[str, list[Record]] = {}
    for record in records:
        folder = _folder_of(record)
        if record["quantity"] == QUANTITY and folder is not None:
            by_subject.setdefault(Path(folder).parent.as_posix(), []).append(record)
    for own in by_subject.values():
        places = {_folder_of(record) or "" for record in own}
        if confirmed:
            places |= _others_beside(run, places)
        replays: dict[str, ReplayFolder] = {}
        for place in sorted(places, key=attempt_number):
            try:
                replays[place] = ReplayFolder(run / place)
                problems += [f"{place}: {discrepancy}" for discrepancy in replays[place].discrepancies()]
            except DAMAGE as error:
                problems.append(f"{place}: {type(error).__name__}: {error}")
        if len(replays) == len(places):
            count += len(own)
            problems += _judged_again(own, replays, confirmed, broke_off)
    return problems, count


def against_pattern(stream: Mapping[str, Any]) -> Record:
    """Return what a stream without a record is held against: the pattern's budget, by one message."""
    return {"limit": {"upper": stream["budget_ns"]}, "allowed_lost": 0, "n_required": 1}


def _others_beside(run: Path, places: Collection[str]) -> set[str]:
    """Return the replays of the same streams that came to their end, and of which no record is."""
    others: set[str] = set()
    for folder in {Path(place).parent for place in places}:
        for answer in (run / folder).glob("attempt-*/recv.ndjson"):
            place = (folder / answer.parent.name).as_posix()
            if place not in places and read_result(answer) is not None:
                others.add(place)
    return others


def _judged_again(
    records: Sequence[Record], replays: Mapping[str, ReplayFolder], confirmed: bool, broke_off: bool
) -> list[str]:
    problems: list[str] = []
    streams = {int(record["subject"]["stream"]): record for record in records}
    standings: dict[str, dict[int, list[Finding]]] = {}
    for place, replay in replays.items():
        try:
            standings[place] = {stream: replay.found(stream, record) for stream, record in streams.items()}
        except DAMAGE as error:
            problems.append(f"{place}: {type(error).__name__}: {error}")
            return problems
    for place in replays:
        alike = {_setting(record) for record in records if _folder_of(record) == place}
        if len(alike) > 1:
            problems.append(f"{place}: its records are of {len(alike)} settings: {'; '.join(sorted(alike))}")
    for record in records:
        problems += _value_discrepancies(
            record, standings[_folder_of(record) or ""][int(record["subject"]["stream"])][0]
        )
    over = sum(any(found[0].standing == "over" for found in each.values()) for each in standings.values())
    replays_over = {over}
    if broke_off:
        with suppress(*DAMAGE):  # a stream that was never judged may be one that cannot be
            replays_over.add(sum(_is_any_over(replay, streams) for replay in replays.values()))
    for stream, record in streams.items():
        last = [each for each in records if each["subject"]["stream"] == record["subject"]["stream"]]
        said = "fail" if any(each["outcome"] == "fail" for each in last) else last[-1]["outcome"]
        needed = REPLAYS_TO_FAIL if record["simulated"] and confirmed else 1
        wanted = {
            decided(
                [found[stream][place].standing for found in standings.values()],
                number_over,
                needed,
                lone_passes=not confirmed,
            )
            for number_over in replays_over
            for place in (0, -1)
        }
        if (said if said in ("pass", "fail") else "no verdict") not in wanted:
            problems.append(
                f"{record['requirement']}: {said}, its replays come to {' or '.join(sorted(wanted))}"
            )
    return problems


def _is_any_over(replay: ReplayFolder, recorded: Mapping[int, Record]) -> bool:
    """Say whether a replay has any stream over, those without a record among them."""
    asked = {each["id"]: recorded.get(each["id"]) or against_pattern(each) for each in replay.recv["streams"]}
    return any(replay.found(stream, record)[0].standing == "over" for stream, record in asked.items())


def _value_discrepancies(record: Record, found: Finding) -> Iterator[str]:
    for name, said, worked_out in (
        ("value", record["value"], found.value),
        ("n", record["n"], found.n),
        ("lost", record["lost"], found.lost),
        ("U", expanded(record["uncertainty"]["parts"]), found.u),
    ):
        if said != worked_out:
            yield f"{record['requirement']}: {name} is {said}, the evidence says {worked_out}"
    phase = record["conditions"]["phase"]
    if phase != found.phase:
        yield f"{record['requirement']}: phase is {phase}, the evidence says {found.phase}"
    parts = {part["name"]: part["value"] for part in record["uncertainty"]["parts"]}
    if parts != found.parts:
        yield f"{record['requirement']}: parts of U are {parts}, the evidence says {found.parts}"


def _setting(record: Record) -> str:
    """Return subject and conditions, which all records of a replay share, but for the stream."""
    subject = {name: value for name, value in record["subject"].items() if name != "stream"}
    return json.dumps({**subject, **record["conditions"]}, sort_keys=True)


def _folder_of(record: Record) -> str | None:
    """Return the folder of the replay that a record was judged from."""
    paths = [Path(each["path"]) for each in record["evidence"]]
    return next((path.parent.as_posix() for path in paths if path.name == "recv.ndjson"), None)


def attempt_number(folder: str) -> int:
    """Return the number at the end of a replay's folder; 0 where it has none."""
    found = re.search(r"-([0-9]{1,9})$", folder)
    return int(found[1]) if found else 0
