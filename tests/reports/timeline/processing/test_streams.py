# SPDX-License-Identifier: Apache-2.0
"""Programs that were recorded: where their events lie, and what another library makes of them."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_streams
from reports.timeline.processing.data import Events, Pairs, Values
from reports.timeline.processing.filters import Context, Names
from reports.timeline.processing.stream_events import clock_record, track_of_stream
from tests.campaign import Campaign
from tests.patience import HANG_S
from tests.reports.hostile import damaged
from tests.reports.timeline.processing.drawn_events import call

_arrow: Any = import_module("pyarrow")  # it has no types


@pytest.fixture(scope="module")
def recorded(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, range]]:
    """Record a program of four threads, and one of intervals; give CLOCK_MONOTONIC before and after each."""
    native = repository / ".build/linux"
    folder, when = tmp_path_factory.mktemp("recorded"), dict[str, range]()
    for name, program in (("threads", ["threads", "4", "5000"]), ("pauses", ["values"])):
        argv = [str(native / "traffic-gen/bw-events"), "record", "--output", str(folder / name)]
        argv += ["--ring-kib", "16384", "--", str(native / "tests/traffic_gen/events-probe"), *program]
        before_ns = time.monotonic_ns()
        subprocess.run(argv, check=True, capture_output=True, timeout=HANG_S)
        when[name] = range(before_ns, time.monotonic_ns())
    return folder, when


def context_of(folder: Path) -> Context:
    """Return what a source stands in, beside its file."""
    return Context("step", (), folder / "no run", folder, folder)


def stream_of(folder: Path) -> EventStream:
    """Return the one stream of a folder."""
    (stream,) = read_event_streams(folder)
    return stream


def test_events_lie_where_the_clock_of_the_machine_says(recorded: tuple[Path, dict[str, range]]) -> None:
    folder, when = recorded
    context = context_of(folder)
    events: Events = call("streams", context, path="./threads", node="here")
    assert len(events) == 20_000
    assert (events.axis, events.by) == ("monotonic", "the here's CLOCK_MONOTONIC")
    assert events.numbers["latest_ns"].min() >= when["threads"].start
    assert events.numbers["earliest_ns"].max() <= when["threads"].stop
    assert context.left_out == {}
    (name,) = context.hashes
    assert name.startswith("./threads/events-probe.")
    for thread in np.unique(events.columns["thread"]):
        own = events.take(events.columns["thread"] == thread)
        assert np.array_equal(own.numbers["tag"] & 0xFFFFFFFF, np.arange(5000))
    raw: Events = call("streams", context, path="./threads", node="here", clock="monotonic-raw")
    assert raw.by == "the here's CLOCK_MONOTONIC_RAW"
    tai: Events = call("streams", context, path="./threads", node="here", clock="realtime", tai_utc_s=37)
    assert tai.axis == "tai"
    assert abs(int(tai.numbers["tai_ns"][0]) / 1e9 - 37 - time.time()) < 3600


def test_an_interval_lies_where_it_began_and_lasts(recorded: tuple[Path, dict[str, range]]) -> None:
    folder, when = recorded
    events: Events = call("streams", context_of(folder), path="./pauses", node="here")
    pauses = call("select", events, name=Names(("probe.pause",)))
    assert pauses.numbers["tag"].tolist() == [0, 1, 2]
    begin, lasts = pauses.numbers["tai_ns"], pauses.numbers["duration_ns"]
    assert (lasts >= 2_000_000 - 2 * pauses.numbers["u_ns"]).all()
    assert (begin[1:] >= (begin + lasts)[:-1] - 2 * pauses.numbers["u_ns"][1:]).all()
    assert begin[-1] + lasts[-1] <= when["pauses"].stop + pauses.numbers["u_ns"][-1]


@pytest.mark.parametrize("percentile", [50, 99, 100])
def test_another_library_matches_the_same_events(
    recorded: tuple[Path, dict[str, range]], percentile: int
) -> None:
    """Apache Arrow's join_asof looks for the nearest effect behind a cause, of one thread and pair."""
    events: Events = call("streams", context_of(recorded[0]), path="./threads", node="here")
    events = replace(events, columns={**events.columns, "pair": events.numbers["tag"] >> 1})
    is_cause = events.numbers["tag"] % 2 == 0
    causes, effects = events.take(is_cause), events.take(~is_cause)
    whole: Pairs = call("match", causes, effects, by=Names(("thread",)), within_ns=10**12)
    assert np.array_equal(whole.effects.numbers["tag"], whole.causes.numbers["tag"] + 1)
    assert len(whole) == 10_000
    within_ns = int(np.percentile(call("interval", whole).value, percentile))
    pairs: Pairs = call("match", causes, effects, by=Names(("thread", "pair")), within_ns=within_ns)
    lengths: Values = call("interval", pairs)

    def table(side: Events, **more: Any) -> Any:
        key = {name: side.columns[name] for name in ("thread", "pair")}
        return _arrow.table({"at": side.numbers["tai_ns"], **key, **more})

    joined = table(causes, tag=causes.numbers["tag"]).join_asof(
        table(effects, effect_at=effects.numbers["tai_ns"], effect_tag=effects.numbers["tag"]),
        on="at",
        by=["thread", "pair"],
        tolerance=within_ns,
    )
    rows = [row for row in joined.to_pylist() if row["effect_at"] is not None]
    assert len(rows) == len(pairs) >= 10_000 * percentile // 100
    assert pairs.unmatched_causes == pairs.unmatched_effects == 10_000 - len(rows)
    theirs = sorted((row["tag"], row["effect_tag"], row["effect_at"] - row["at"]) for row in rows)
    ours = zip(
        pairs.causes.numbers["tag"].tolist(), lengths.tag.tolist(), lengths.value.tolist(), strict=True
    )
    assert sorted(ours) == theirs


def test_numbers_that_came_with_events_are_columns(
    recorded: tuple[Path, dict[str, range]], repository: Path, tmp_path: Path
) -> None:
    native = repository / ".build/linux"
    argv = [str(native / "traffic-gen/bw-events"), "record", "--output", str(tmp_path / "data"), "--"]
    argv += [str(native / "tests/traffic_gen/events-probe"), "data", "150"]
    subprocess.run(argv, check=True, capture_output=True, timeout=HANG_S)
    stream = stream_of(tmp_path / "data")
    numbered = replace(stream, points=tuple(replace(each, decoder="<Hbq") for each in stream.points))
    track, _ = track_of_stream("here", "it", numbered, "monotonic", None)
    (has,) = np.flatnonzero(track.tag == 11)  # of 11 bytes, each 11
    found = [int(track.columns[f"data_{k}"][has]) for k in range(3)]
    assert found == [0x0B0B, 11, 0x0B0B0B0B0B0B0B0B]
    assert not track.columns["data_2"][track.tag != 11].any()
    assert "data_0" not in track_of_stream("here", "it", stream, "monotonic", None)[0].columns


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"path": "./a\0b"}, r"'\./a\\x00b': no name of a file"),
        (
            {"path": "./threads", "clock": "realtime", "tai_utc_s": 10**10},
            "must be from -3600 to 3600, found 10000000000",
        ),
    ],
)
def test_values_that_nothing_can_be_computed_with_are_refused(
    recorded: tuple[Path, dict[str, range]], keys: dict[str, Any], says: str
) -> None:
    with pytest.raises(RecordError, match=says):
        call("streams", context_of(recorded[0]), node="here", **keys)


def test_what_has_no_clock_is_refused(recorded: tuple[Path, dict[str, range]], tmp_path: Path) -> None:
    stream = stream_of(recorded[0] / "threads")
    with pytest.raises(RecordError, match=r"events-probe: clock monotonic: no reading"):
        clock_record("here", replace(stream, clocks=()), "monotonic", None)
    unknown = tuple(replace(each, tai_utc_s=0) for each in stream.clocks)
    with pytest.raises(RecordError, match=r"does not know TAI - UTC: give tai_utc_s"):
        clock_record("here", replace(stream, clocks=unknown), "realtime", None)
    for counter_hz, clocks, says in (
        (0, stream.clocks[:3], "within 0 ns tell no frequency"),
        (1, tuple(replace(each, after_ticks=each.before_ticks - 1) for each in stream.clocks), "cannot be"),
        (1, tuple(replace(each, clock_ns=2**63 - 1) for each in stream.clocks), "cannot be"),
    ):
        with pytest.raises(RecordError, match=says):
            track_of_stream(
                "here", "it", replace(stream, counter_hz=counter_hz, clocks=clocks), "monotonic", None
            )
    (tmp_path / "empty").mkdir()
    for path, says in (
        ("./empty", r"\./empty: no \*\.bwevents in it"),
        ("./nothing", r"\./nothing: does not exist"),
        ("../x", r"\.\./x: does not exist"),
        ("/etc", "/etc: lies outside of the run"),
    ):
        with pytest.raises(RecordError, match=says):
            call("streams", context_of(tmp_path), path=path, node="here")
    copy = Context("step", (), tmp_path, None, tmp_path)
    with pytest.raises(RecordError, match=r"\./empty: was read from beside the file: give that"):
        call("streams", copy, path="./empty", node="here")


def test_a_cut_stream_says_what_is_left_out(recorded: tuple[Path, dict[str, range]], tmp_path: Path) -> None:
    (file,) = (recorded[0] / "threads").iterdir()
    whole = file.read_bytes()
    (tmp_path / file.name).write_bytes(whole[: len(whole) - 7])
    context = context_of(tmp_path)
    events: Events = call("streams", context, path=f"./{file.name}", node="here")
    assert len(events) == 20_000
    assert [" bytes at the end: events-probe " in each for each in context.left_out["step"]] == [True]


def test_damaged_streams_are_placed_or_refused(
    recorded: tuple[Path, dict[str, range]], tmp_path: Path, campaign: Campaign
) -> None:
    (file,) = (recorded[0] / "pauses").iterdir()
    whole = file.read_bytes()
    for random in campaign.rounds(100):
        data = damaged(whole, random)
        (tmp_path / file.name).write_bytes(data)
        with campaign.trying(data):
            try:
                call("streams", context_of(tmp_path), path="./", node="here")
                campaign.reached.add("placed")
            except RecordError:
                campaign.reached.add("refused")
    assert campaign.reached == {"placed", "refused"}
