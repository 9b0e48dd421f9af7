# SPDX-License-Identifier: Apache-2.0
"""What is found of single messages, and when there is no verdict on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from reports.errors import RecordError
from reports.realtime_ethernet.capability import BULK_RISE, RECEIVE_RISE
from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    MESSAGES,
    THROUGHPUT,
    load_messages,
    read_round_trips,
    read_transfer,
)
from reports.realtime_ethernet.verdict import find_latency, find_rise, find_throughput, of_all_rounds
from tests.reports.realtime_ethernet.sample import (
    latency_answer,
    source_answer,
    write_answer,
    write_sample_messages,
)


def test_latency_is_half_of_a_round_trip_of_all_rounds_together(tmp_path: Path) -> None:
    found = find_latency(write_sample_messages(tmp_path), tmp_path, 4, "median")
    assert found.value == pytest.approx((40_000 + 1300 + 500) / 2, abs=20)
    parts = {part.name: part.value for part in found.uncertainty.parts}
    assert parts["rounds"] == pytest.approx(600, abs=20), "half of what the first and the last two are off"
    assert parts["buckets"] == 22
    assert (found.n, found.lost, found.rounds, found.causes) == (1400, 0, 14, ())


@pytest.mark.parametrize("rounds", [14, 15])
@pytest.mark.parametrize("slower", [1.1, 1.5])
@pytest.mark.parametrize(("statistic", "share"), [("median", 0.5), ("p99", 0.99)])
def test_u_holds_where_one_round_in_five_is_slower(
    rounds: int, slower: float, statistic: str, share: float
) -> None:
    """The truth is of all rounds that there could be. Of 400 measurements 95 % are expected within U."""
    random = np.random.default_rng([61, rounds, round(10 * slower), round(100 * share)])

    def trips_us(each: int) -> npt.NDArray[np.float64]:
        return 40 * np.exp(random.normal(0, 0.06, each)) + random.exponential(1.5, each)

    def value_of(some: Sequence[npt.NDArray[np.float64]]) -> float:
        return float(np.quantile(np.concatenate(some), share))

    fast, slow = trips_us(800_000), slower * trips_us(200_000)
    truth = value_of([fast, slow])
    within = 0
    for _ in range(400):
        found = [trips_us(100) * (slower if random.random() < 0.2 else 1) for _ in range(rounds)]
        value, apart = of_all_rounds(found, value_of)
        assert value is not None
        within += abs(value - truth) <= apart
    assert within >= 0.93 * 400, f"{statistic}: {within} of 400"


def test_the_last_of_an_odd_number_of_rounds_joins_its_neighbours() -> None:
    def mean(some: Sequence[float]) -> float:
        return sum(some) / len(some)

    assert of_all_rounds([1.0, 1.0, 1.0, 1.0, 6.0], mean) == (2.0, pytest.approx(8 / 3 - 2 + 1 / 3))
    assert of_all_rounds([3.0], mean) == (3.0, 0.0)
    assert of_all_rounds([], mean) == (None, 0.0)


def test_p99_is_above_the_median(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    high, middle = (find_latency(messages, tmp_path, 64, each).value for each in ("p99", "median"))
    assert high is not None
    assert middle is not None
    assert high > middle


def test_lost_round_trips_are_counted(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    write_answer(tmp_path, "002-latency-64.ndjson", latency_answer([40_000], sent=3, lost=2))
    assert find_latency(messages, tmp_path, 64, "median").lost == 2


def test_a_rise_from_the_driver_on_is_of_the_latency_without(tmp_path: Path) -> None:
    """A tenth of each round trip is receiving, which rises by half: by a tenth of half a round trip."""
    found = find_rise(RECEIVE_RISE, write_sample_messages(tmp_path, rise=1.5), tmp_path, "median")
    assert found.value == pytest.approx(100 * 0.51 * 2 / 10, abs=0.5)
    assert (found.n, found.rounds, found.causes) == (1400, 14, ())


def test_an_older_tool_says_nothing_of_receiving(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    for trial in messages.trials:
        lines = [json.loads(line) for line in (tmp_path / trial.file).read_text().splitlines()]
        lines[-1].pop("receiving", None)
        (tmp_path / trial.file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert find_rise(RECEIVE_RISE, messages, tmp_path, "median").value is None
    assert find_rise(BULK_RISE, messages, tmp_path, "median").value is not None


def test_rise_is_of_the_quantiles_without_and_with_a_bulk_receiver(tmp_path: Path) -> None:
    found = find_rise(BULK_RISE, write_sample_messages(tmp_path, rise=1.5), tmp_path, "median")
    assert found.value == pytest.approx(51, abs=0.6)
    parts = {part.name: part.value for part in found.uncertainty.parts}
    assert parts == {"rounds": pytest.approx(1, abs=0.6), "buckets": pytest.approx(0.302, abs=0.01)}
    assert (found.n, found.causes) == (1400, ())


def test_a_bulk_receiver_that_yields_shows_nothing(tmp_path: Path) -> None:
    found = find_rise(BULK_RISE, write_sample_messages(tmp_path, bulk_share=0.6), tmp_path, "median")
    assert found.causes == ("the bulk receiver reached 60% of what it reaches alone, 80% are needed",)


def test_a_bulk_receiver_of_which_nobody_knows_what_it_reaches_shows_nothing(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    without = tuple(each for each in messages.trials if each.kind != THROUGHPUT)
    found = find_rise(BULK_RISE, replace(messages, trials=without), tmp_path, "median")
    why = "the bulk receiver reached an unknown share of what it reaches alone, 80% are needed"
    assert found.causes == (why,)


@pytest.mark.parametrize("kind", [ALONE, BESIDE])
def test_a_rise_of_a_round_takes_both_of_its_trials(tmp_path: Path, kind: str) -> None:
    messages = write_sample_messages(tmp_path, rounds=15)
    trials = [
        replace(each, stolen_ticks=each.ticks) if (each.kind, each.round) == (kind, 3) else each
        for each in messages.trials
    ]
    found = find_rise(BULK_RISE, replace(messages, trials=tuple(trials)), tmp_path, "median")
    assert (found.rounds, found.n, found.causes) == (14, 1400, ())


def test_rounds_that_the_host_took_time_of_do_not_count(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path, disturbed=[5])
    for found in (
        find_latency(messages, tmp_path, 4, "median"),
        find_rise(BULK_RISE, messages, tmp_path, "p99"),
        find_throughput(messages, tmp_path, 64),
    ):
        assert found.rounds == 13
        why = "13 of 14 rounds count, 14 are needed: the machine's host took the time of 1"
        assert found.causes == (why,)
    assert find_latency(messages, tmp_path, 4, "median").n == 1300
    more = write_sample_messages(tmp_path, rounds=15, disturbed=[5])
    assert find_latency(more, tmp_path, 4, "median").causes == ()


def test_messages_that_went_another_way_show_nothing(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path, over="rtdip")
    why = ("not carried by the stack kernel: messages went over rtdip",)
    assert find_latency(messages, tmp_path, 4, "median").causes == why
    assert find_rise(BULK_RISE, messages, tmp_path, "median").causes == why
    assert find_throughput(messages, tmp_path, 64).causes == why


def test_throughput_is_the_data_of_whole_windows_over_the_time(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    write_answer(tmp_path, "001-throughput-1400.ndjson", source_answer(kbit_per_s=50_000))
    found = find_throughput(messages, tmp_path, 1400)
    assert found.value == pytest.approx(100e6 / 8 * (13.5 / 14), rel=0.01)
    assert found.uncertainty.expanded == pytest.approx(100e6 / 8 * (13.5 / 14 - 0.75), rel=0.02)


def test_nothing_measured_has_no_value(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    assert find_latency(messages, tmp_path, 512, "median").value is None
    assert find_throughput(messages, tmp_path, 512).value is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"over": 3}, "latency.over"),
        ({"lost": -1}, "-1 lost of 2 sent"),
        ({"sent": 1}, "2 round trips and 0 lost of 1 sent"),
        ({"round_trip": {}}, "latency.round_trip"),
    ],
)
def test_a_wrong_answer_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(RecordError, match=named):
        read_round_trips(latency_answer([1, 2]) | change)
    with pytest.raises(RecordError, match=r"source.windows: missing"):
        read_transfer({key: value for key, value in source_answer().items() if key != "windows"})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "else"}, r"trials\[0\].kind: must be one of latency"),
        ({"file": "../x"}, r"trials\[0\]: '../x' is no file"),
        ({"bulk_file": "x"}, "bulk_file if and only if it is beside"),
        ({"ticks": -1}, "need ticks"),
    ],
)
def test_a_wrong_trial_is_named(change: dict[str, object], named: str, tmp_path: Path) -> None:
    write_sample_messages(tmp_path)
    document = json.loads((tmp_path / MESSAGES).read_text())
    document["trials"][0].update(change)
    (tmp_path / MESSAGES).write_text(json.dumps(document))
    with pytest.raises(RecordError, match=named):
        load_messages(tmp_path)


def test_an_answer_of_another_size_is_named(tmp_path: Path) -> None:
    messages = write_sample_messages(tmp_path)
    write_answer(tmp_path, "000-latency-4.ndjson", latency_answer([1, 2], 64))
    with pytest.raises(RecordError, match=r"000-latency-4.ndjson: of 64 bytes, messages.json says 4"):
        find_latency(messages, tmp_path, 4, "median")
