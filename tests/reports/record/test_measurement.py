# SPDX-License-Identifier: Apache-2.0
"""The record is exactly the JSON of the design, and refuses everything else."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reports
from reports.errors import RecordError
from reports.record.measurement import (
    Evidence,
    Limit,
    Measurement,
    Uncertainty,
    UncertaintyPart,
    measurement_schema,
)

SCHEMA_FILE = Path(reports.__file__).with_name("measurement.schema.json")

# The example of the design, with the places it leaves open filled in.
EXAMPLE: dict[str, Any] = {
    "schema": "benchwright.measurement/1",
    "run_id": "20260101T000000Z-0a1b2c3d",
    "test": "Stream 31",
    "requirement": "DAQ-031",
    "quantity": "one_way_latency",
    "statistic": "max",
    "value": 1234567,
    "unit": "ns",
    "n": 600,
    "n_required": 99,
    "lost": 0,
    "allowed_lost": 0,
    "limit": {"upper": 50000000, "lower": None, "source": "Table 1"},
    "uncertainty": {
        "expanded": 83000,
        "parts": [
            {"name": "clock_offset", "kind": "bound", "value": 80000},
            {"name": "host_jitter", "kind": "standard", "value": 1500},
        ],
    },
    "margin": 48682433,
    "rule": "guard-band-U",
    "outcome": "pass",
    "reason": "",
    "subject": {
        "bench": "virtual",
        "target": "linux-rt",
        "stack": "kernel",
        "clock": "two-way",
        "stream": "31",
    },
    "conditions": {"profile": "ci", "phase": "aligned-12", "load": "idle", "impairment": "none"},
    "simulated": True,
    "evidence": [{"path": "evidence/recv.ndjson", "sha256": "0" * 64}],
    "time_utc": "2026-01-01T00:00:00.000000Z",
}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the example with one place changed; `del` removes the key."""
    data = copy.deepcopy(EXAMPLE)
    *parents, last = path.split(".")
    place: Any = data
    for parent in parents:
        place = place[int(parent)] if parent.isdigit() else place[parent]
    if value is del_key:
        del place[last]
    else:
        place[last] = value
    return data


del_key = object()


def test_the_example_of_the_design_survives_byte_for_byte():
    line = json.dumps(EXAMPLE, separators=(",", ":"))
    assert Measurement.from_line(line).to_line() == line


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("surprise", 1, "surprise: unknown key"),
        ("limit.surprise", 1, "limit.surprise: unknown key"),
        ("subject.surprise", "x", "subject.surprise: unknown key"),
        ("uncertainty.parts.0.surprise", 1, "uncertainty.parts[0].surprise: unknown key"),
        ("value", del_key, "value: missing key"),
        ("limit.lower", del_key, "limit.lower: missing key"),
        ("value", math.nan, "value: nan"),
        ("n", "600", "n: expected integer"),
        ("n", True, "n: expected integer"),
        ("n", 600.5, "n: expected integer"),
        ("simulated", 1, "simulated: expected boolean"),
        ("outcome", "passed", "outcome: 'passed' is not one of"),
        ("uncertainty.parts.0.kind", "guess", "uncertainty.parts[0].kind"),
        ("evidence", {}, "evidence: expected a list"),
        ("evidence.0.path", "/etc/passwd", "evidence.path"),
        ("evidence.0.path", "evidence/../../x", "evidence.path"),
        ("evidence.0.sha256", "0" * 63 + "G", "evidence.sha256"),
        ("schema", "benchwright.measurement/2", "schema"),
        ("rule", "none", "rule"),
        ("limit.upper", None, "neither upper nor lower"),
        ("limit.lower", 60000000, "is above upper"),
        ("uncertainty.expanded", 82999, "uncertainty.expanded"),
        ("margin", 48682434, "margin"),
        ("n", 98, "pass with n = 98 of 99"),
        ("lost", 1, "pass with 1 lost"),
        ("time_utc", "yesterday", "time_utc"),
        ("time_utc", "2026-01-01T00:00:00+01:00", "time_utc"),
    ],
)
def test_what_is_not_a_record_is_refused_with_its_place(path: str, value: object, place: str):
    with pytest.raises(RecordError) as refused:
        Measurement.from_json(changed(path, value))
    assert place in str(refused.value)


def test_a_pass_beyond_the_guard_band_is_refused():
    data = changed("value", 49_999_999)
    data["margin"] = 50_000_000 - 83_000 - 49_999_999
    with pytest.raises(RecordError, match="pass with margin -82999"):
        Measurement.from_json(data)
    data["outcome"] = "inconclusive"
    assert Measurement.from_json(data).margin == -82_999


def test_optional_words_of_a_subject_are_left_out():
    data = changed("subject.stream", del_key)
    data["subject"]["method"] = "tgpio-latch"
    assert Measurement.from_json(data).to_json()["subject"] == data["subject"]


def test_the_schema_file_is_that_of_the_dataclasses():
    assert json.loads(SCHEMA_FILE.read_text()) == measurement_schema(), "run: python -m reports schema"


def test_the_schema_accepts_the_example_and_refuses_what_the_dataclasses_refuse():
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator: Any = jsonschema.Draft202012Validator(schema)
    assert list(validator.iter_errors(EXAMPLE)) == []
    for path, value in (
        ("surprise", 1),
        ("value", del_key),
        ("n", "600"),
        ("outcome", "ok"),
        ("rule", "none"),
    ):
        assert list(validator.iter_errors(changed(path, value))), path


@given(st.lists(st.integers(0, 10**12)), st.lists(st.integers(0, 10**9)))
def test_u_of_integers_is_the_formula_rounded_up(bounds: list[int], deviations: list[int]):
    parts = [UncertaintyPart("b", "bound", value) for value in bounds]
    parts += [UncertaintyPart("s", "standard", value) for value in deviations]
    expanded = Uncertainty.from_parts(parts).expanded
    assert isinstance(expanded, int)
    rest = expanded - sum(bounds)
    square = 4 * sum(value * value for value in deviations)
    assert rest * rest >= square
    assert rest == 0 or (rest - 1) ** 2 < square


def test_u_of_floats_is_the_formula():
    parts = [UncertaintyPart("b", "bound", 0.5), UncertaintyPart("c", "bound", 0.25)]
    parts += [UncertaintyPart("s", "standard", 3.0), UncertaintyPart("t", "standard", 4.0)]
    assert Uncertainty.from_parts(parts).expanded == pytest.approx(0.75 + 2 * 5.0)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_a_part_that_would_loosen_the_verdict_is_refused(value: float):
    with pytest.raises(RecordError):
        UncertaintyPart("p", "bound", value)


def test_limits_and_evidence_check_themselves():
    with pytest.raises(RecordError):
        Limit(math.inf, None, "s")
    with pytest.raises(RecordError):
        Evidence("", "0" * 64)


def test_parts_without_a_finite_sum_are_refused() -> None:
    parts = tuple(UncertaintyPart(name, "bound", 1.7e308) for name in ("a", "b"))
    with pytest.raises(RecordError, match=r"uncertainty\.parts: .*overflow"):
        Uncertainty(1.0, parts)
