# SPDX-License-Identifier: Apache-2.0
"""Calibration files: what corrects, what casts doubt on a result, what is refused."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from scope.calibration import SCHEMA, Calibration, load_calibration
from scope.errors import CalibrationError

SKEW = {
    "id": '"ch2"',
    "kind": '"channel_skew"',
    "delay_ps": "12.5",
    "uncertainty_ps": "3",
    "uncertainty_kind": '"standard"',
    "date": "2026-01-10",
    "expires": "2027-01-10",
    "source": '"channels swapped"',
    "instrument_serial": '"MY123"',
}
CABLE = {
    **{key: value for key, value in SKEW.items() if key != "instrument_serial"},
    "id": '"cable-7"',
    "kind": '"cable_delay"',
    "delay_ps": "5020",
    "uncertainty_ps": "20",
    "uncertainty_kind": '"bound"',
    "expires": "2026-06-30",
}
EGRESS = {**CABLE, "id": '"eth1-sdp0"', "kind": '"nic_egress"', "delay_ps": "-3000"}
TODAY = date(2026, 3, 1)


def write(folder: Path, *records: dict[str, str], schema: str = SCHEMA) -> Path:
    lines = [f'schema = "{schema}"']
    for record in records:
        lines += ["[[record]]", *(f"{key} = {value}" for key, value in record.items())]
    path = folder / "calibration.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def calibration(tmp_path: Path) -> Calibration:
    return load_calibration(write(tmp_path, SKEW, CABLE, EGRESS))


def test_delays_in_the_way_of_both_signals_have_opposite_signs(calibration: Calibration) -> None:
    found = calibration.correction(["eth1-sdp0"], ["ch2", "cable-7"], TODAY, "MY123")
    assert found.delay_s == pytest.approx((12.5 + 5020 + 3000) * 1e-12)
    assert [(part.name, part.kind) for part in found.parts] == [
        ("channel_skew:ch2", "standard"),
        ("cable_delay:cable-7", "bound"),
        ("nic_egress:eth1-sdp0", "bound"),
    ]
    assert [part.value_s for part in found.parts] == pytest.approx([3e-12, 20e-12, 20e-12])
    assert found.doubts == ()


def test_what_is_in_the_way_of_both_cancels(calibration: Calibration) -> None:
    found = calibration.correction(["cable-7"], ["cable-7", "ch2"], date(2026, 12, 1), "MY123")
    assert found.delay_s == pytest.approx(12.5e-12)
    assert [part.name for part in found.parts] == ["channel_skew:ch2"]
    assert found.doubts == ()


@pytest.mark.parametrize(
    ("today", "serial", "doubts"),
    [
        (date(2026, 6, 30), "MY123", ()),
        (date(2026, 7, 1), "MY123", ("calibration cable-7 expired on 2026-06-30",)),
        (date(2026, 1, 9), "MY123", ("calibration ch2 is of 2026-01-10", "calibration cable-7 is of")),
        (TODAY, "MY999", ("calibration ch2 is of instrument MY123, not MY999",)),
        (TODAY, "", ("calibration ch2 is of instrument MY123, not unknown",)),
    ],
)
def test_record_that_does_not_hold_casts_doubt(
    calibration: Calibration, today: date, serial: str, doubts: tuple[str, ...]
) -> None:
    found = calibration.correction([], ["ch2", "cable-7"], today, serial)
    assert len(found.doubts) == len(doubts)
    assert all(text.startswith(start) for text, start in zip(found.doubts, doubts, strict=True))
    assert found.delay_s == pytest.approx(5032.5e-12)


def test_unknown_and_repeated_ids_are_refused(calibration: Calibration) -> None:
    with pytest.raises(CalibrationError, match=r'no record "ch9"; there are: cable-7, ch2, eth1-sdp0'):
        calibration.correction(["ch9"], [], TODAY, "MY123")
    with pytest.raises(CalibrationError, match='record "ch2" stands twice'):
        calibration.correction([], ["ch2", "ch2"], TODAY, "MY123")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("kind", '"skew"', 'kind: "skew", must be one of channel_skew'),
        ("kind", "3", "kind: 3, must be a text"),
        ("id", '" "', "id: ' ', must be a text"),
        ("delay_ps", '"12"', "delay_ps: '12', must be a finite number"),
        ("delay_ps", "nan", "delay_ps: nan"),
        ("delay_ps", "true", "delay_ps: True"),
        ("uncertainty_ps", "0", "uncertainty_ps: 0.0, must be above 0"),
        ("uncertainty_ps", "-1", "uncertainty_ps: -1.0, must be above 0"),
        ("uncertainty_kind", '"2 sigma"', "must be bound or standard"),
        ("date", '"2026-01-10"', "date: '2026-01-10', must be a day"),
        ("date", "2026-01-10T12:00:00", "must be a day"),
        ("expires", "2026-01-09", "expires: 2026-01-09, must not be before date"),
        ("colour", '"red"', "unknown field colour; allowed: id, kind"),
    ],
)
def test_wrong_field_is_named(tmp_path: Path, field: str, value: str, text: str) -> None:
    with pytest.raises(CalibrationError) as caught:
        load_calibration(write(tmp_path, CABLE, {**SKEW, field: value}))
    assert "calibration.toml: record 2: " in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize("field", sorted(SKEW))
def test_missing_field_is_named(tmp_path: Path, field: str) -> None:
    record = {key: value for key, value in SKEW.items() if key != field}
    with pytest.raises(CalibrationError, match=f"record 1: {field}: missing"):
        load_calibration(write(tmp_path, record))


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="No such file"):
        load_calibration(tmp_path / "none.toml")
    with pytest.raises(CalibrationError, match="schema"):
        load_calibration(write(tmp_path, schema="other/1"))
    with pytest.raises(CalibrationError, match='id: "ch2" stands twice'):
        load_calibration(write(tmp_path, SKEW, SKEW))
    path = write(tmp_path, SKEW)
    path.write_text(path.read_text().replace("[[record]]", "[[records]]"))
    with pytest.raises(CalibrationError, match="unknown field records"):
        load_calibration(path)
    path.write_text(f'schema = "{SCHEMA}"\nrecord = 3\n')
    with pytest.raises(CalibrationError, match="must be tables"):
        load_calibration(path)
    path.write_text("schema = \n")
    with pytest.raises(CalibrationError, match=r"calibration\.toml: "):
        load_calibration(path)
