# SPDX-License-Identifier: Apache-2.0
"""RTC-Testbench's statistics: the text that its `stat_to_json()` prints, as its two loggers send it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.errors import PointError
from dashboards.line_protocol import Point
from dashboards.rtc_testbench import NO_MINIMUM, import_statistics, is_statistics
from hw.errors import ConfigError
from reports.clock_sync.tai_utc import TAI_UTC_S

T_NS = 1_795_000_000_000_000_000

# Names, order, spacing and formats of stat_to_json() in src/stat.c.
MESSAGE = """{{"testbench" :
{{"Timestamp" : {time},
"MeasurementName" : "{bench}",
"stats" : 
{{
"TCName" : "{name}",
"FramesSent": {sent},
"FramesReceived": {received},
"RoundTripTimeMin": {rt_min},
"RoundTripMax": {rt_max},
"RoundTripAv": {rt_av:f},
"OnewayMin": {ow_min},
"OnewayMax": {ow_max},
"OnewayAv": {ow_av:f},
"ProcFirstMin": 18446744073709551615,
"ProcFirstMax": 0,
"ProcFirstAv": 0.000000,
"RxWorkloadMin": 18446744073709551615,
"TxHwTimestampMissing": 0,
"OutofOrderErrors": {disorder},
"FrameIdErrors": 0,
"PayloadErrors": 0,
"RoundTripOutliers": {outliers},
"OnewayOutliers": 0
}}
}}
}}
"""  # noqa: W291 - the blank behind "stats" : is theirs


def message(**changes: object) -> str:
    values: dict[str, object] = {
        "time": T_NS,
        "bench": "bench1",
        "name": "TsnHigh",
        "sent": 1000,
        "received": 1000,
        "rt_min": 900,
        "rt_max": 1100,
        "rt_av": 1000.0,
        "ow_min": 40,
        "ow_max": 120,
        "ow_av": 60.0,
        "disorder": 0,
        "outliers": 0,
    }
    return MESSAGE.format(**{**values, **changes})


def points_of(folder: Path, text: str, **options: object) -> dict[tuple[str, str], Point]:
    file = folder / "statistics.json"
    file.write_text(text)
    assert is_statistics(file)
    run = import_statistics(file, "main", **options)  # type: ignore[arg-type]
    return {(point.tags["stream"], point.tags["quantity"]): point for point in run.points}


def test_periods_are_combined(tmp_path: Path) -> None:
    """As the MQTT logger sends them: figures of one period each."""
    later = message(
        time=T_NS + 10**9, received=3000, rt_max=1500, ow_min=30, ow_av=80.0, disorder=2, outliers=1
    )
    points = points_of(tmp_path, message() + later)
    one_way = points["TsnHigh", "one_way_latency"]
    assert one_way.fields["value_ns"] == 120_000.0
    assert one_way.fields["min_ns"] == 30_000.0
    assert one_way.fields["mean_ns"] == pytest.approx(75_000.0)
    assert (one_way.fields["n"], one_way.fields["out_of_order"]) == (4000, 2)
    round_trip = points["TsnHigh", "round_trip_time"]
    assert (round_trip.fields["value_ns"], round_trip.fields["outliers"]) == (1_500_000.0, 1)
    assert one_way.time_ns == T_NS - TAI_UTC_S * 10**9


def test_times_in_utc(tmp_path: Path) -> None:
    assert points_of(tmp_path, message(), tai=False)["TsnHigh", "one_way_latency"].time_ns == T_NS


def test_of_figures_since_the_start_the_last_count(tmp_path: Path) -> None:
    """As the JSON/UDP logger sends them: without a time, the figures of the whole run each time."""
    text = message(time=0) + message(time=0, received=2000, sent=2000)
    with pytest.raises(ConfigError, match="say --time"):
        points_of(tmp_path, text)
    points = points_of(tmp_path, text, start_ns=T_NS)
    assert points["TsnHigh", "one_way_latency"].fields["n"] == 2000
    assert points["TsnHigh", "one_way_latency"].time_ns == T_NS


def test_classes_are_series_and_what_was_not_measured_is_none(tmp_path: Path) -> None:
    mirror = message(name="Rtc", rt_min=NO_MINIMUM, rt_max=0, rt_av=0.0)
    points = points_of(tmp_path, message() + mirror)
    assert set(points) == {
        ("TsnHigh", "one_way_latency"),
        ("TsnHigh", "round_trip_time"),
        ("Rtc", "one_way_latency"),
    }
    assert points["Rtc", "one_way_latency"].tags["bench"] == "bench1"


def test_messages_until_2025_are_read(tmp_path: Path) -> None:
    """They began with another key; a minimum under another name costs that figure alone."""
    old = message().replace('"testbench"', '"reference"').replace("RoundTripTimeMin", "RoundTripShortest")
    (tmp_path / "old.json").write_text(old)
    assert is_statistics(tmp_path / "old.json")
    points = points_of(tmp_path, "\ufeff" + old)
    fields = points["TsnHigh", "round_trip_time"].fields
    assert (fields["value_ns"], "min_ns" in fields) == (1_100_000.0, False)


def test_period_without_a_frame_does_not_weigh(tmp_path: Path) -> None:
    silent = message(time=T_NS + 1, received=0, ow_min=NO_MINIMUM, ow_max=0, ow_av=0.0)
    point = points_of(tmp_path, silent + message())["TsnHigh", "one_way_latency"]
    assert (point.fields["mean_ns"], point.fields["min_ns"]) == (60_000.0, 40_000.0)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (message() + "{", "message 2"),
        (message() + message(bench="bench2"), "bench1, bench2"),
        (message(time=12_000_000_000), "since a boot"),
        (message().replace('"TsnHigh"', "7"), "must be texts"),
        (message().replace('"OnewayMax": 120', '"OnewayMax": "120"'), "stats.OnewayMax"),
        ('{"testbench": 1}', "need an object"),
        (
            message().replace("RoundTrip", "Rtt").replace("Oneway", "Forward"),
            "class 'TsnHigh': none of its figures is known; known are RoundTripMax",
        ),
        (message() + '{"testbench":' + "[" * 100_000, "message 2: nested too deep"),
        (message(name=r"Tsn\ud800"), "half of a surrogate pair"),
    ],
)
def test_other_texts_are_refused(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        points_of(tmp_path, text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-1e400", "1" * 400, "1e308"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    """As a count, alone or summed over two messages: they have no period, then the last one counts alone."""
    file = tmp_path / "statistics.json"
    file.write_text(message().replace('"FramesReceived": 1000', f'"FramesReceived": {number}') * 2)
    with pytest.raises((ConfigError, PointError)):
        import_statistics(file, "main")
