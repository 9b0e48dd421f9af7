# SPDX-License-Identifier: Apache-2.0
"""The verdict by a mask: half the limit passes, 1.5 times fails, and what was not judged never passes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.clock_sync.answers import series_of
from reports.clock_sync.mask import load_mask
from reports.clock_sync.mask_verdict import (
    RECORDED,
    MaskRange,
    is_masked,
    mask_measurements,
    unset_mask_measurements,
)
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import mtie, tdev
from reports.clock_sync.trial import ClockTrial, load_trial
from reports.clock_sync.verdict import sync_uncertainty
from reports.record.context import Context
from reports.record.measurement import Conditions, Measurement, Subject
from reports.units import NS_PER_S
from tests.reports.sample_clock import START_TAI_NS, compare_answer, write_clock_trial
from tests.reports.sample_run import summary

HEADER = "# name: test\n# source: a test\nquantity,tau_above_s,tau_to_s,limit_ns,slope_ns_per_s\n"
CONTEXT = Context("run", "test", Subject("virtual", "linux-rt", clock="chrony"), Conditions("ci"), True, ())
INTERVAL_NS = 100_000_000
U_NS = 400 + 450  # what the reference of the sample states, half of its widest bracket


def _answer(means_ns: list[int], **changes: Any) -> dict[str, Any]:
    """Return an answer whose series has these means, one every 100 ms; None of a time that has none."""
    rows = [[START_TAI_NS + i * INTERVAL_NS, 20, mean, mean, mean] for i, mean in enumerate(means_ns)]
    answer = compare_answer(**changes)
    answer["series"]["rows"] = rows
    answer["offset"] = summary([row[2] for row in rows for _ in range(20)])
    return answer


def _trial(folder: Path, means_ns: list[int], **others: Any) -> ClockTrial:
    changes = {key: others.pop(key) for key in ("valid", "steps", "complete") if key in others}
    write_clock_trial(folder, _answer(means_ns, **changes), **others)
    return load_trial(folder)


def _mask(folder: Path, rows: str, **limits: float) -> MaskRange:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "limits.csv"
    path.write_text(HEADER + rows)
    return MaskRange(load_mask(path), **limits)


def _judged(trial: ClockTrial, wanted: MaskRange) -> Measurement:
    (record,) = mask_measurements(trial, wanted, "CLK-1", 99, CONTEXT)
    return record


def _sine(amplitude_ns: float, seconds: int = 30, period_s: float = 5.0) -> list[int]:
    return [round(amplitude_ns * math.sin(2 * math.pi * i / 10 / period_s)) for i in range(seconds * 10)]


MASKS = {
    "max_abs_te": "max_abs_te,,,40000,0\n",
    "mtie": "mtie,0.1,6.4,40000,0\n",
    "tdev": "tdev,0.1,1.6,40000,0\n",
    "max_abs_tel": "max_abs_tel,,,40000,0\n",
    "dte_l_mtie": "dte_l_mtie,0.1,6.4,40000,0\n",
    "dte_l_tdev": "dte_l_tdev,0.1,1.6,40000,0\n",
}


@pytest.mark.parametrize("quantity", list(MASKS))
@pytest.mark.parametrize("share", [0.5, 1.5])
def test_fault_of_a_share_of_the_limit(tmp_path: Path, quantity: str, share: float) -> None:
    """A clock that swings so far that its worst value is this share of the limit."""
    unit = _trial(tmp_path / "unit", _sine(1e6))
    wanted = _mask(tmp_path, MASKS[quantity])
    at_1_ms = _judged(unit, wanted).value
    assert at_1_ms is not None
    amplitude_ns = share * 40_000 * 1e6 / abs(at_1_ms)
    record = _judged(_trial(tmp_path / "trial", _sine(amplitude_ns)), wanted)
    assert record.outcome == ("pass" if share < 1 else "fail"), record.reason
    assert abs(record.value or 0) == pytest.approx(share * 40_000, rel=1e-3)
    assert (record.requirement, record.unit, record.limit.upper) == ("CLK-1", "ns", 40_000)
    assert (record.quantity, record.statistic) == RECORDED[quantity]  # type: ignore[index]


@pytest.mark.parametrize(("share", "outcome"), [(0.5, "pass"), (1.5, "fail")])
def test_constant_error_of_a_share_of_the_limit(tmp_path: Path, share: float, outcome: str) -> None:
    trial = _trial(tmp_path / "trial", [round(-share * 40_000)] * 300)
    record = _judged(trial, _mask(tmp_path, "cte,,,40000,0\n", to_tau_s=30.0))
    assert (record.outcome, record.value) == (outcome, -share * 40_000)


def test_the_filter_wants_samples_close_to_each_other(tmp_path: Path) -> None:
    answer = _answer([0] * 300)
    for i, row in enumerate(answer["series"]["rows"]):
        row[0] = START_TAI_NS + i * 60 * NS_PER_S
    write_clock_trial(tmp_path / "trial", answer)
    record = _judged(load_trial(tmp_path / "trial"), _mask(tmp_path, MASKS["dte_l_mtie"]))
    assert (record.outcome, record.value) == ("inconclusive", None)
    assert "too few samples a second" in record.reason


def test_the_recorded_tau_is_that_at_which_least_is_left(tmp_path: Path) -> None:
    """1.5 of 5 us leave less room for an error of the reference than 48 of 52 us, the larger share."""
    ramp_ns = [750 * i for i in range(300)]
    wanted = _mask(tmp_path, "mtie,0.1,0.3,5000,0\nmtie,0.3,6.4,52000,0\n")
    record = _judged(_trial(tmp_path / "trial", ramp_ns), wanted)
    assert (record.value, record.limit.upper, record.margin) == (1_500, 5_000, 3_500 - 2 * U_NS)
    assert "tau = 0.2 s" in record.limit.source
    assert "judged at 6 octaves of tau from 0.2 s to 6.4 s" in record.limit.source
    assert "a test" in record.limit.source


def test_values_are_those_of_the_series(tmp_path: Path) -> None:
    trial = _trial(tmp_path / "trial", _sine(20_000))
    series = series_of(trial.filtered)
    assert series is not None
    for name, statistic, gain in (("mtie", mtie, 2.0), ("tdev", tdev, 4 / math.sqrt(6))):
        record = _judged(trial, _mask(tmp_path, f"{name},0.1,0.2,90000,0\n"))
        curve = statistic(series, [2])
        assert curve is not None
        assert record.value == curve.value[0]
        assert record.n == curve.n[0]
        assert record.uncertainty.expanded == pytest.approx(gain * U_NS)
    record = _judged(trial, _mask(tmp_path, MASKS["max_abs_te"]))
    assert record.uncertainty.expanded == U_NS == sync_uncertainty(trial).expanded
    assert record.limit.lower == -40_000


def test_u_of_a_curve_holds_for_any_error_within_the_bound() -> None:
    """Errors of at most B move MTIE by at most 2 B, TDEV by at most 4 B / sqrt(6), however they lie."""
    rng = np.random.default_rng(5)
    truth = np.cumsum(rng.normal(0, 20, 400))
    worst = {"mtie": 0.0, "tdev": 0.0}
    for trial in range(60):
        signs = rng.choice([-1.0, 1.0], 400) if trial else np.tile([1.0, -1.0], 200)
        errors = 1000 * signs * (rng.random(400) if trial % 2 else 1.0)
        for name, statistic in (("mtie", mtie), ("tdev", tdev)):
            exact = statistic(ClockSeries.regular(INTERVAL_NS, truth), [1, 2, 8])
            seen = statistic(ClockSeries.regular(INTERVAL_NS, truth + errors), [1, 2, 8])
            assert exact is not None
            assert seen is not None
            worst[name] = max(worst[name], float(np.abs(exact.value - seen.value).max()))
    assert 1900 < worst["mtie"] <= 2000 + 1e-6
    assert 1500 < worst["tdev"] <= 4000 / math.sqrt(6) + 1e-6


@pytest.mark.parametrize(
    ("rows", "limits", "said"),
    [
        (
            "mtie,0.1,1000,40000,0\n",
            {},
            "judged at 8 octaves of tau from 0.2 s to 25.6 s",
        ),
        ("mtie,0.1,273,40000,0\nmtie,273,inf,50000,0\n", {}, "the mask asks for 0.1 s to 273 s"),
        ("mtie,0.01,6.4,40000,0\n", {}, "the mask asks for 0.01 s to 6.4 s"),
        ("mtie,50,1000,40000,0\n", {}, "no tau can be judged from 30 s"),
        ("tdev,0.1,6.4,40000,0\n", {}, "judged at 4 octaves of tau from 0.2 s to 1.6 s"),
        ("cte,,,40000,0\n", {}, "averaged over 30 s; the mask asks for 1000 s"),
        ("dte_l_mtie,0.1,1000,40000,0\n", {}, "the mask asks for 0.1 s to 1000 s"),
        ("mtie,0.1,6.4,40000,0\n", {"to_tau_s": 100.0}, "the mask asks for 0.1 s to 100 s"),
    ],
)
def test_a_series_too_short_never_passes(
    tmp_path: Path, rows: str, limits: dict[str, float], said: str
) -> None:
    record = _judged(_trial(tmp_path / "trial", _sine(500)), _mask(tmp_path, rows, **limits))
    assert record.outcome == "inconclusive"
    assert said in record.reason


def test_what_is_over_a_mask_fails_however_short_the_series(tmp_path: Path) -> None:
    record = _judged(_trial(tmp_path / "trial", _sine(90_000)), _mask(tmp_path, "mtie,0.1,1000,40000,0\n"))
    assert record.outcome == "fail"


@pytest.mark.parametrize(
    ("rows", "limits"),
    [
        ("mtie,0.1,1000,40000,0\n", {"to_tau_s": 10.0}),
        ("mtie,0.001,1000,40000,0\n", {"from_tau_s": 0.1, "to_tau_s": 10.0}),
        ("mtie,0,6.4,40000,0\n", {}),
        ("mtie,0.1,2,40000,0\nmtie,2,inf,50000,0\n", {}),
        ("cte,,,40000,0\n", {"to_tau_s": 30.0}),
        ("max_abs_tel,,,40000,0\n", {}),
        ("dte_l_mtie,0.1,1000,40000,0\n", {"to_tau_s": 6.4}),
    ],
)
def test_a_series_as_long_as_is_asked_for_passes(tmp_path: Path, rows: str, limits: dict[str, float]) -> None:
    record = _judged(_trial(tmp_path / "trial", _sine(500)), _mask(tmp_path, rows, **limits))
    assert (record.outcome, record.reason) == ("pass", "")


def test_a_gap_is_not_bridged(tmp_path: Path) -> None:
    """A jump during a gap is in no window of MTIE; what is left of the series is shorter."""
    answer = _answer([0] * 150 + [90_000] * 150)
    for row in answer["series"]["rows"][150:]:
        row[0] += 3 * INTERVAL_NS
    write_clock_trial(tmp_path / "trial", answer)
    trial = load_trial(tmp_path / "trial")
    record = _judged(trial, _mask(tmp_path, "mtie,0.1,6.4,40000,0\n"))
    assert (record.outcome, record.value) == ("pass", 0)
    record = _judged(trial, _mask(tmp_path, MASKS["max_abs_te"]))
    assert (record.outcome, record.value) == ("fail", 90_000)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"valid": False}, "invalid result"),
        ({"complete": False}, "ended early"),
        ({"steps": [{"time_tai_ns": START_TAI_NS, "step_ns": 20_000}]}, "stepped by 20"),
    ],
)
def test_never_passes_on_a_doubtful_answer(tmp_path: Path, others: dict[str, Any], said: str) -> None:
    trial = _trial(tmp_path / "trial", _sine(500), **others)
    for rows in MASKS.values():
        record = _judged(trial, _mask(tmp_path, rows))
        assert record.outcome == "inconclusive"
        assert said in record.reason


def test_a_stall_excuses_a_fail(tmp_path: Path) -> None:
    trial = _trial(tmp_path / "trial", _sine(90_000), stalls_ms=(40,))
    record = _judged(trial, _mask(tmp_path, MASKS["mtie"]))
    assert record.outcome == "inconclusive"
    assert "the bench stalled" in record.reason


def test_a_bench_that_cannot_tell(tmp_path: Path) -> None:
    """A limit below U: nothing could pass there, whatever the clock does."""
    record = _judged(_trial(tmp_path / "trial", _sine(0)), _mask(tmp_path, "mtie,0.1,6.4,1000,0\n"))
    assert record.outcome == "inconclusive"
    assert "bench not capable" in record.reason


def test_no_sample_is_unset(tmp_path: Path) -> None:
    answer = compare_answer()
    answer["offset"] = summary([])
    answer["series"]["rows"] = []
    write_clock_trial(tmp_path / "trial", answer)
    trial = load_trial(tmp_path / "trial")
    for rows in MASKS.values():
        assert _judged(trial, _mask(tmp_path, rows)).outcome == "unset"


def test_a_clock_that_was_not_measured_leaves_unset_records() -> None:
    wanted = MaskRange(load_mask("g8272-prtc-a"))
    records = unset_mask_measurements(wanted, "CLK-1", 99, "no lock", CONTEXT)
    assert [(r.quantity, r.outcome, r.reason) for r in records] == [
        ("te", "unset", "no lock"),
        ("mtie", "unset", "no lock"),
        ("tdev", "unset", "no lock"),
    ]


def test_masks_are_for_locked_clocks_with_sound_packets(tmp_path: Path) -> None:
    trial = _trial(tmp_path, _sine(500))
    assert is_masked(trial)
    for change in ({"kind": "holdover"}, {"kind": "asymmetry"}, {"impairment": "50 us one way"}):
        assert not is_masked(replace(trial, facts=replace(trial.facts, **change)))  # type: ignore[arg-type]
