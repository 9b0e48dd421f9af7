# SPDX-License-Identifier: Apache-2.0
"""Legs lie where they were, with clocks that are off; what cannot be is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.capability import FROM_TARGET, TO_TARGET
from reports.timeline.delayed_legs import found_delay
from reports.timeline.legs import RUN_UP, load_stimulus_response
from reports.timeline.legs_evidence import LEGS_FILE, KnownDelay, load_legs
from reports.timeline.place_errors import load_place_errors
from tests.reports.timeline.legs_sample import CLIENT, Machine, write_sample_legs


@pytest.mark.parametrize("rate_ppm", [-40.0, 0.0, 25.0, 100.0])
def test_each_leg_is_what_it_was_however_far_a_clock_is_off(tmp_path: Path, rate_ppm: float) -> None:
    write_sample_legs(tmp_path, client=Machine(2_500_000_000, -7_000_000_000, rate_ppm))
    found = load_stimulus_response(tmp_path)
    for leg, first_ns in zip(found.legs, (40_000, 30_000), strict=True):
        truth_ns = first_ns + leg.number % (7 if leg.name == TO_TARGET else 5) * 100
        error_ns = np.abs(leg.time_ns - truth_ns)
        assert len(leg) == 1200 - RUN_UP
        assert (error_ns <= leg.u_ns).all()
        assert error_ns.max() < 500  # readings of the clock are 100 ns wide
        # An asymmetry of a half of the exchange is what U allows for.
        assert 10_000 <= np.median(leg.u_ns) < 11_000
    assert not found.causality.contradictions
    assert not found.breaks


def test_message_that_one_end_has_not_recorded_is_missing(tmp_path: Path) -> None:
    write_sample_legs(tmp_path, leave_out=600)
    found = load_stimulus_response(tmp_path)
    assert [found.missing(leg) for leg in found.legs] == [1, 1]
    assert 600 not in found.legs[0].number


def test_clock_that_is_wrong_is_a_contradiction_and_named(tmp_path: Path) -> None:
    write_sample_legs(tmp_path, client=Machine(CLIENT.hz, CLIENT.ahead_ns, CLIENT.rate_ppm, -100_000))
    found = load_stimulus_response(tmp_path).causality
    assert found.is_certain
    assert (found.contradictions[0].sender, found.contradictions[0].count) == ("p01", 1200 - RUN_UP)


def test_clock_that_is_off_by_less_than_its_bound_is_none(tmp_path: Path) -> None:
    write_sample_legs(tmp_path, client=Machine(CLIENT.hz, CLIENT.ahead_ns, CLIENT.rate_ppm, -35_000))
    assert not load_stimulus_response(tmp_path).causality.contradictions
    write_sample_legs(
        tmp_path, client=Machine(CLIENT.hz, CLIENT.ahead_ns, CLIENT.rate_ppm, -35_000), least_ns=30_000
    )
    assert load_stimulus_response(tmp_path).causality.is_certain


@pytest.mark.parametrize("leg", [TO_TARGET, FROM_TARGET])
def test_known_delay_is_found_in_its_leg_alone(tmp_path: Path, leg: str) -> None:
    write_sample_legs(tmp_path, delay=KnownDelay(leg, 50, 50), put_ns=50_100)
    found = found_delay(tmp_path)
    assert [each.leg for each in found] == [TO_TARGET, FROM_TARGET]
    for each in found:
        assert each.wanted_ns == (50_100 if each.leg == leg else 0)
        assert abs(each.error_ns) <= 200
        assert each.turns == 11


def test_delay_that_is_not_in_the_leg_shows(tmp_path: Path) -> None:
    write_sample_legs(tmp_path, delay=KnownDelay(TO_TARGET, 50, 50), put_ns=50_000)
    stated = load_legs(tmp_path)
    document = json.loads((tmp_path / LEGS_FILE).read_text())
    document["delay"]["leg"] = FROM_TARGET
    (tmp_path / LEGS_FILE).write_text(json.dumps(document))
    with pytest.raises(RecordError, match="no leg had a delay"):  # the client says that it had none
        found_delay(tmp_path)
    assert stated.delay is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": 0}, "need count"),
        ({"least_ns": -1}, "least_ns"),
        ({"schema": "benchwright.timeline_legs/2"}, "schema"),
        ({"client": {"node": "p01", "answer": "a", "events": "b"}}, "both ends are on p01"),
        ({"server": {"node": "p01", "answer": "../a", "events": "b"}}, "no file of this folder"),
        ({"delay": {"leg": "up", "delay_us": 50, "turn": 50}}, "delay: needs leg"),
        ({"count": 1199}, "1200 messages of 48 bytes"),
    ],
)
def test_document_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    write_sample_legs(tmp_path)
    document = json.loads((tmp_path / LEGS_FILE).read_text())
    (tmp_path / LEGS_FILE).write_text(json.dumps(document | change))
    with pytest.raises(RecordError, match=said):
        load_stimulus_response(tmp_path)


@pytest.mark.parametrize("name", ["server.bwevents", "client.ndjson", "offset-client.ndjson"])
@pytest.mark.parametrize("size_bytes", [0, 7, 300])
def test_file_that_is_cut_is_named(tmp_path: Path, name: str, size_bytes: int) -> None:
    write_sample_legs(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:size_bytes])
    with pytest.raises(RecordError):
        load_stimulus_response(tmp_path)


@pytest.mark.parametrize("rate_ppm", [-40.0, 0.0, 25.0, 100.0])
def test_places_are_held_against_a_card(tmp_path: Path, rate_ppm: float) -> None:
    client = Machine(2_500_000_000, 3_000_000_000, rate_ppm)
    write_sample_legs(tmp_path, client=client, card_off_ns=0)
    errors = load_place_errors(tmp_path)
    assert len(errors) == 2400
    assert (errors.beyond_u, errors.outside) == (0, 0)
    assert np.abs(errors.error_ns).max() < 500
    # What the card's clock moves in an interval of the comparison is what it cannot say.
    assert errors.card_ns.max() < 51_000 + abs(rate_ppm) * 50
    # Without the card the timeline is the same.
    before = load_stimulus_response(tmp_path).legs
    (tmp_path / "card.ndjson").unlink()
    for leg, other in zip(before, load_stimulus_response(tmp_path).legs, strict=True):
        assert np.array_equal(leg.sent.tai_ns, other.sent.tai_ns)
        assert np.array_equal(leg.received.tai_ns, other.received.tai_ns)


@pytest.mark.parametrize(
    ("off_ns", "beyond", "outside"),
    [(14_000, 2400, 0), (-14_000, 2400, 0), (60_000, 2400, 2400), (-60_000, 2400, 2400)],
)
def test_places_that_are_not_where_the_card_says_are_counted(
    tmp_path: Path, off_ns: int, beyond: int, outside: int
) -> None:
    write_sample_legs(tmp_path, client=Machine(2_500_000_000), card_off_ns=off_ns)
    errors = load_place_errors(tmp_path)
    assert (errors.beyond_u, errors.outside) == (beyond, outside)


def test_card_that_says_nothing_is_named(tmp_path: Path) -> None:
    write_sample_legs(tmp_path)
    with pytest.raises(RecordError, match="card: there is none"):
        load_place_errors(tmp_path)
    write_sample_legs(tmp_path, card_off_ns=0)
    answer = json.loads((tmp_path / "card.ndjson").read_text())
    for change, said in (
        ({"series": answer["series"] | {"rows": answer["series"]["rows"][:5]}}, "5 intervals, needs 8"),
        ({"steps": [{"time_tai_ns": 1, "step_ns": 1}]}, "stepped"),
        ({"device": {"clock": "tai", "tai_utc_s": 36}}, "TAI - UTC is not 37"),
    ):
        (tmp_path / "card.ndjson").write_text(json.dumps(answer | change) + "\n")
        with pytest.raises(RecordError, match=said):
            load_place_errors(tmp_path)
