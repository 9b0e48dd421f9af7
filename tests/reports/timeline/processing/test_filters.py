# SPDX-License-Identifier: Apache-2.0
"""Each filter over arrays gives what a plain loop over the same events does."""

from __future__ import annotations

import csv
import json
import math
import statistics
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.processing import pairs_in_order, plot_filters
from reports.timeline.processing.data import Events, Histogram, Pairs, Values, of_timeline
from reports.timeline.processing.export_filters import timeline_of_pairs
from reports.timeline.processing.filters import Names, Range
from tests.reports.timeline.placed_sample import START_TAI_NS, drawn_timeline
from tests.reports.timeline.processing.drawn_events import SEEDS, Row, call, context_of, drawn, rows_of

SELECTED: dict[str, tuple[dict[str, Any], Callable[[Row], bool]]] = {
    "node": ({"node": Names(("target",))}, lambda row: row["node"] == "target"),
    "lane": ({"lane": Names(("CPU ?", "str*"))}, lambda row: not row["lane"].startswith("bw-")),
    "name": ({"name": Names(("*ö*", "se?t"))}, lambda row: row["name"] in ("größer", "sent")),
    "tag": ({"tag": Range(3, 7)}, lambda row: 3 <= row["tag"] <= 7),
    "open tag": ({"tag": Range(-math.inf, 4.5)}, lambda row: row["tag"] <= 4.5),
    "time": (
        {"time_ns": Range(START_TAI_NS + 1_000_000, START_TAI_NS + 4_000_000)},
        lambda row: 1_000_000 <= row["tai_ns"] - START_TAI_NS <= 4_000_000,
    ),
    "real column": (
        {"column": "ratio", "between": Range(-0.25, 0.5)},
        lambda row: row["ratio"] is not None and -0.25 <= row["ratio"] <= 0.5,
    ),
    "own column": (
        {"column": "duration_ns", "between": Range(1, math.inf)},
        lambda row: row["duration_ns"] >= 1,
    ),
    "whole column": (
        {"column": "event", "between": Range(-math.inf, 2**60 + 1)},
        lambda row: row["event"] is not None and row["event"] <= 2**60 + 1,
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("what", SELECTED)
def test_select(what: str, seed: int) -> None:
    events = drawn(seed)
    parameters, wanted = SELECTED[what]
    expected = [row for row in rows_of(events) if wanted(row)]
    assert 0 < len(expected) < len(events)
    assert rows_of(call("select", events, **parameters)) == expected
    assert rows_of(call("select", events, every=7, **parameters)) == expected[::7]


def test_select_since_the_first_event_of_its_input() -> None:
    events = call("select", drawn(1), node=Names(("target",)))
    first = rows_of(events)[0]["tai_ns"]
    expected = [row for row in rows_of(events) if 5000 <= row["tai_ns"] - first <= 900_000]
    assert expected
    assert rows_of(call("select", events, since_first_ns=Range(5000, 900_000))) == expected


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"column": "event"}, "column and between go together"),
        ({"every": 0}, "every: must be 1 or more, found 0"),
        ({"column": "nothing", "between": Range(0, 1)}, "column 'nothing': there is none .allowed: tai_ns, "),
        ({"column": "comm", "between": Range(0, 1)}, "column 'comm': texts have no range"),
    ],
)
def test_select_refuses(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(RecordError, match=says):
        call("select", drawn(1), **parameters)


@pytest.mark.parametrize("seed", SEEDS)
def test_join_gives_what_was_taken_apart(seed: int) -> None:
    events = drawn(seed)
    parts = [call("select", events, node=Names((name,))) for name in ("target", "producer 4")]
    both = call("join", *parts)
    assert rows_of(both) == rows_of(events)
    assert len(call("join", parts[0], events.take(np.zeros(0, np.int64)))) == len(parts[0])


def test_join_refuses_what_has_no_common_axis() -> None:
    other = of_timeline(drawn_timeline(10, axis="monotonic"))
    with pytest.raises(RecordError, match="have no common axis"):
        call("join", drawn(1), other)
    with pytest.raises(RecordError, match="have no common axis"):
        call("match", drawn(1), other, within_ns=1)


def matched_plainly(
    causes: list[Row], effects: list[Row], by: tuple[str, ...], least_ns: int, within_ns: int
) -> list[tuple[Row, Row]]:
    """Walk with two fingers over the causes and effects of each key."""
    found: list[tuple[Row, Row]] = []
    for key in {tuple(row[each] for each in by) for row in causes}:
        own = [row for row in causes if tuple(row[each] for each in by) == key]
        other = [row for row in effects if tuple(row[each] for each in by) == key]
        i = j = 0
        while i < len(own) and j < len(other):
            away_ns = other[j]["tai_ns"] - own[i]["tai_ns"]
            if away_ns < least_ns:
                j += 1
            elif away_ns > within_ns:
                i += 1
            else:
                found.append((own[i], other[j]))
                i, j = i + 1, j + 1
    return sorted(found, key=lambda pair: pair[0]["tai_ns"])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("by", [("tag",), ("name",), ("tag", "name"), ("comm",)])
def test_match(by: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_in_order, "CHUNK", (3, 17, 4096)[seed % 3])
    rng = np.random.default_rng(seed)
    events = drawn(seed)
    if by == ("comm",):
        events = call("select", events, lane=Names(("CPU 0",)), node=Names(("target",)))
    is_cause = rng.random(len(events)) < 0.5
    causes, effects = events.take(is_cause), events.take(~is_cause)
    least_ns, within_ns = sorted(int(each) for each in rng.integers(-100_000, 1_500_000, 2))
    expected = matched_plainly(rows_of(causes), rows_of(effects), by, least_ns, within_ns)
    pairs: Pairs = call("match", causes, effects, by=Names(by), within_ns=within_ns, least_ns=least_ns)
    assert list(zip(rows_of(pairs.causes), rows_of(pairs.effects), strict=True)) == expected
    assert pairs.unmatched_causes == len(causes) - len(expected)
    assert pairs.unmatched_effects == len(effects) - len(expected)
    assert call("unmatched", context_of(Path(), "ways"), pairs).rows() == {
        "of": ["ways"],
        "pairs": [len(expected)],
        "unmatched_causes": [pairs.unmatched_causes],
        "unmatched_effects": [pairs.unmatched_effects],
    }


def test_match_leaves_out_what_has_no_such_column() -> None:
    events = drawn(2)
    pairs: Pairs = call("match", events, events, by=Names(("event",)), within_ns=0)
    expected = sum(row["event"] is not None for row in rows_of(events))
    assert (len(pairs), pairs.unmatched_causes) == (expected, len(events) - expected)
    with pytest.raises(RecordError, match="least_ns: 2 is more than within_ns, 1"):
        call("match", events, events, within_ns=1, least_ns=2)


def pairs_of(seed: int) -> Pairs:
    """Return pairs of events of several nodes."""
    events = drawn(seed)
    is_cause = np.random.default_rng(seed).random(len(events)) < 0.5
    return call("match", events.take(is_cause), events.take(~is_cause), within_ns=900_000, least_ns=-900_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_interval(seed: int) -> None:
    pairs = pairs_of(seed)
    found: Values = call("interval", pairs)
    assert len(found) > 20
    for k, (cause, effect) in enumerate(zip(rows_of(pairs.causes), rows_of(pairs.effects), strict=True)):
        u = cause["u_ns"] ** 2 + effect["u_ns"] ** 2
        assert (int(found.u[k]) - 1) ** 2 < u <= int(found.u[k]) ** 2 or u == 0 == found.u[k]
        assert found.value[k] == effect["tai_ns"] - cause["tai_ns"]
        assert found.lowest[k] == effect["earliest_ns"] - cause["latest_ns"]
        assert found.highest[k] == effect["latest_ns"] - cause["earliest_ns"]
        assert (found.at_ns[k], found.tag[k]) == (cause["tai_ns"], effect["tag"])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("column", ["duration_ns", "ratio", "u_ns"])
def test_histogram_and_statistics(column: str, seed: int) -> None:
    events = drawn(seed)
    found: Values = call("values", events, column=column)
    plain = [row[column] for row in rows_of(events) if row[column] is not None]
    assert found.value.tolist() == plain
    assert found.left_out == len(events) - len(plain)
    for low, high, buckets in ((None, None, 7), (0.0, 3000.0, 30), (-0.5, 0.25, 3)):
        bars: Histogram = call("histogram", found, low=low, high=high, buckets=buckets)
        edges = bars.edges.tolist()
        counts = [0] * buckets
        for value in plain:
            for k in range(buckets):
                is_last = k == buckets - 1
                if edges[k] <= value and (value < edges[k + 1] or (is_last and value == edges[-1])):
                    counts[k] += 1
        assert bars.counts.tolist() == counts
        assert (bars.below, bars.above) == (
            sum(v < edges[0] for v in plain),
            sum(v > edges[-1] for v in plain),
        )
        assert (edges[0], edges[-1]) == (
            min(plain) if low is None else low,
            max(plain) if high is None else high,
        )
    [row] = zip(*call("statistics", context_of(Path(), "it"), found).rows().values(), strict=True)
    ascending, n = sorted(plain), len(plain)
    exact = sum(map(Fraction, plain), Fraction()) / n
    assert row[:4] == ("it", "ns" if column != "ratio" else "", n, found.left_out)
    assert row[4:8] == (
        ascending[0],
        next(v for v in ascending if 100 * sum(w <= v for w in plain) >= 50 * n),
        next(v for v in ascending if 100 * sum(w <= v for w in plain) >= 99 * n),
        ascending[-1],
    )
    assert row[8] == pytest.approx(float(exact), rel=1e-14)
    assert row[9] == pytest.approx(statistics.stdev(plain), rel=1e-12)


def test_a_sum_of_large_times_is_exact() -> None:
    events = drawn(3)
    found = call("values", events, column="tai_ns")
    mean = call("statistics", context_of(Path(), "it"), found).rows()["mean"][0]
    assert mean == sum(events.numbers["tai_ns"].tolist()) / len(events)


def test_values_and_histograms_of_nothing_and_of_one_value() -> None:
    nothing = call("values", drawn(1).take(np.zeros(0, np.int64)), column="tag")
    bars: Histogram = call("histogram", nothing, buckets=3)
    assert (bars.counts.tolist(), bars.below, bars.above) == ([0, 0, 0], 0, 0)
    rows = call("statistics", context_of(Path(), "it"), nothing).rows()
    assert (rows["count"], rows["mean"], rows["deviation"]) == ([0], [None], [None])
    one = call("values", drawn(1).take(np.array([5])), column="tag")
    assert call("histogram", one, buckets=2).counts.tolist() == [1, 0]
    with pytest.raises(RecordError, match="column 'comm': texts are no values"):
        call("values", drawn(1), column="comm")
    with pytest.raises(RecordError, match=r"low, high: no 50 buckets fit between 3\.0 and 3\.0"):
        call("histogram", one, low=3, high=3)
    with pytest.raises(RecordError, match="buckets: must be from 1 to 10000, found 0"):
        call("histogram", one, buckets=0)


def test_contradictions_name_the_node_whose_clock_is_wrong() -> None:
    events = of_timeline(drawn_timeline(40, seed=5))
    names, codes = events.labels["node"]
    rng = np.random.default_rng(5)
    three = replace(events, labels={**events.labels, "node": (names, rng.integers(0, 3, codes.size))})
    assert len(names) == 3
    # A message takes 1 ms from any node to any other one; the clock of the last one is 50 ms ahead.
    ahead_ns = np.where(three.labels["node"][1] == 2, 50_000_000, 0)
    sent = rng.integers(0, len(events), 200)
    to = rng.integers(0, 3, 200)

    def moved(at: Any, node: Any, shift: Any) -> Events:
        taken = events.take(at)
        numbers = dict(taken.numbers)
        for key in ("tai_ns", "earliest_ns", "latest_ns"):
            numbers[key] = numbers[key] + shift
        return replace(taken, numbers=numbers, labels={**taken.labels, "node": (names, node)})

    node = three.labels["node"][1][sent]
    causes = moved(sent, node, ahead_ns[sent])
    effects = moved(sent, to, np.where(to == 2, 50_000_000, 0) + 1_000_000)
    rows = call("contradictions", Pairs(causes, effects, 0, 0), least_ns=500_000).rows()
    found = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    wrong = [each for each in found if each["what"] == "contradiction"]
    assert {(each["weight"], each["sender"]) for each in wrong} == {("certain", names[2])}
    assert {each["receiver"] for each in wrong} == set(names[:2])
    [suspect] = [each for each in found if each["what"] == "suspect"]
    assert suspect["node"] == names[2]
    assert suspect["put_back_least_ns"] <= 50_000_000 <= suspect["put_back_most_ns"]


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_are_exported_with_a_flow_each(seed: int) -> None:
    pairs = pairs_of(seed)
    timeline = timeline_of_pairs(pairs, "it")
    assert len(timeline) == 2 * len(pairs)
    flows = timeline.flows
    for track, index, events in (
        (flows.from_track, flows.from_index, pairs.causes),
        (flows.to_track, flows.to_index, pairs.effects),
    ):
        for k, row in enumerate(rows_of(events)):
            own = timeline.tracks[int(track[k])]
            at = int(index[k])
            assert (own.node, own.lane, own.names[int(own.name[at])]) == (
                row["node"],
                row["lane"],
                row["name"],
            )
            assert (own.tai_ns[at], own.tag[at], own.u_ns[at]) == (row["tai_ns"], row["tag"], row["u_ns"])


def test_narration(tmp_path: Path) -> None:
    events = drawn(4, 10)
    rows = rows_of(events)
    call("narration", context_of(tmp_path, "it"), events, lines=12)
    lines = (tmp_path / "step.txt").read_text().split("\n")
    assert lines[12:] == [f"and {len(rows) - 12} more", ""]
    for line, row in zip(lines[:12], rows, strict=False):
        at, _, words = line.strip().partition(" ms  ")
        assert round(Fraction(at) * 1_000_000) == row["tai_ns"] - rows[0]["tai_ns"]
        assert words.startswith(f"{row['node']}, {row['lane']}: " + row["name"].replace("\n", "?"))
        assert f", tag {row['tag']}" in words
        assert (", for " in words) == bool(row["duration_ns"])
    last = rows[-1]
    call(
        "narration",
        context_of(tmp_path, "it"),
        events,
        zero_name=Names((last["name"],)),
        zero_tag=last["tag"],
    )
    named = next(row for row in rows if (row["name"], row["tag"]) == (last["name"], last["tag"]))
    first = (tmp_path / "step.txt").read_text().split(" ms  ")[0]
    assert round(Fraction(first.strip()) * 1_000_000) == rows[0]["tai_ns"] - named["tai_ns"]
    with pytest.raises(RecordError, match="zero_name, zero_tag: no such event"):
        call("narration", context_of(tmp_path, "it"), events, zero_tag=99)


def test_narration_of_pairs(tmp_path: Path) -> None:
    pairs = pairs_of(1)
    call("narration", context_of(tmp_path, "it"), pairs)
    lines = (tmp_path / "step.txt").read_text().splitlines()
    lengths = [effect - cause for cause, effect in zip(*(each.numbers["tai_ns"].tolist() for each in
               (pairs.causes, pairs.effects)), strict=True)]  # fmt: skip
    said = [round(Fraction(line.split("  ->  ")[1].split(" ms")[0]) * 1_000_000) for line in lines[:-2]]
    assert said == lengths
    assert lines[-2:] == [
        f"{pairs.unmatched_causes} causes without effect",
        f"{pairs.unmatched_effects} effects without cause",
    ]


def test_csv_and_json_lines_are_read_back(tmp_path: Path) -> None:
    events = drawn(2, 20)
    pairs = pairs_of(2)
    lengths = call("interval", pairs)
    for data in (
        events,
        pairs,
        lengths,
        call("histogram", lengths),
        call("unmatched", context_of(tmp_path, "a"), pairs),
    ):
        columns = data.rows()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        assert rows
        call("jsonl", context_of(tmp_path, "it"), data)
        assert [json.loads(line) for line in (tmp_path / "step.jsonl").read_text().splitlines()] == rows
        call("csv", context_of(tmp_path, "it"), data)
        with (tmp_path / "step.csv").open(encoding="utf-8", newline="") as file:
            read = list(csv.DictReader(file))
        assert read == [
            {key: "" if value is None else str(value) for key, value in row.items()} for row in rows
        ]


@pytest.mark.parametrize("most", [2000, 10])
def test_a_plot_is_a_picture_by_itself(tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot_filters, "POINTS_MAX", most)
    lengths = call("interval", pairs_of(3))
    nothing = call("values", drawn(1).take(np.zeros(0, np.int64)), column="tag")
    for data in (lengths, call("histogram", lengths), nothing):
        made: list[bytes] = []
        for _ in range(2):
            call("plot", context_of(tmp_path, "way & back"), data)
            made.append((tmp_path / "step.svg").read_bytes())
        assert made[0] == made[1]
        root = ET.fromstring(made[0])  # noqa: S314 - it was written here
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert "way & back" in texts
        assert "--type0: #" in root.attrib["style"]


@pytest.mark.parametrize(("factor", "unit"), [(1, "ns"), (1_000, "µs"), (1_000_000, "ms")])
def test_a_plot_has_a_point_for_each_value_in_a_readable_unit(tmp_path: Path, factor: int, unit: str) -> None:
    at_ns, value, none = np.arange(9) * 5_000_000, np.arange(9) * 100 * factor, np.zeros(9, np.int64)
    data = Values("ns", at_ns, none, value, none, value, value)
    call("plot", context_of(tmp_path, "it"), data)
    root = ET.fromstring((tmp_path / "step.svg").read_bytes())  # noqa: S314 - it was written here
    space = "{http://www.w3.org/2000/svg}"
    texts = ["".join(each.itertext()) for each in root.iter(f"{space}text")]
    assert {unit, "0", "800", "ms from the first", "40"} <= set(texts)
    points = [each for each in root.iter(f"{space}use") if "type0" in each.attrib["style"]]
    places = [(float(each.attrib["x"]), -float(each.attrib["y"])) for each in points]
    assert len(places) == 9
    assert places == sorted(places)
    steps = np.diff(np.array(places), axis=0)
    assert np.allclose(steps, steps[0], atol=0.01)
