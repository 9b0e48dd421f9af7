# SPDX-License-Identifier: Apache-2.0
"""Required samples, the profile's miss probability and its name belong together."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from reports.record.sampling import required_samples
from reports.rejudge.samples import EXCLUDED, sample_discrepancies

PROFILES = Path(__file__).resolve().parents[3] / "resources" / "profiles.toml"


def _discrepancies(profile: str, excluded: float, n_required: int) -> list[str]:
    manifest: dict[str, Any] = {
        "profile": profile,
        "excluded_miss_probability": excluded,
    }
    record = {"quantity": "one_way_latency", "requirement": "DAQ-010", "n_required": n_required}
    records = [record, {"quantity": "sync_offset", "n_required": 9}]
    return list(sample_discrepancies(manifest, records, (0, 2, 0)))


def test_the_profiles_are_those_that_are_used() -> None:
    profiles = tomllib.loads(PROFILES.read_text())
    used = {
        name: table["excluded_miss_probability"]
        for name, table in profiles.items()
        if "excluded_miss_probability" in table
    }
    assert used == EXCLUDED


@pytest.mark.parametrize("profile", EXCLUDED)
def test_the_two_judges_need_as_many_samples(profile: str) -> None:
    excluded = EXCLUDED[profile]
    assert _discrepancies(profile, excluded, required_samples(excluded)) == []


def test_a_profile_called_acceptance_is_one(tmp_path: Path) -> None:
    (told,) = _discrepancies("acceptance", 0.05, required_samples(0.05))
    assert told == "run.json: excluded_miss_probability is 0.05, that of profile acceptance is 0.001"


@pytest.mark.parametrize("n_required", [1, 58, 60])
def test_fewer_samples_than_the_probability_needs_are_named(n_required: int) -> None:
    (told,) = _discrepancies("quick", 0.05, n_required)
    assert "DAQ-010" in told
