# SPDX-License-Identifier: Apache-2.0
"""A run does not become one of an earlier version by what is taken out of its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.rejudge.version import ALWAYS, OF_LATENCY, version_discrepancies, version_of

MANIFEST: dict[str, Any] = {
    "end_utc": "2026-01-01T00:00:00Z",
    "tools": {"robotframework": "7.5", "bw-traffic": "bw-traffic 0.2.0"},
    "outcome": "pass",
    "file_sizes_bytes": {},
    "asked": [],
    "problems": [],
    "attempts": [],
    "tests": {"passed": 1, "failed": 0, "skipped": 0},
    OF_LATENCY: 0.05,
}
NOW = (0, 2, 0)
LATENCY = [{"quantity": "one_way_latency"}]


def test_a_whole_manifest_has_no_discrepancy() -> None:
    assert list(version_discrepancies(MANIFEST, LATENCY, NOW)) == []


@pytest.mark.parametrize("key", [*(name for name in ALWAYS if name != "failed_tests"), OF_LATENCY])
def test_each_key_that_is_always_there_is_missed(key: str) -> None:
    without = {name: value for name, value in MANIFEST.items() if name != key}
    (told,) = version_discrepancies(without, LATENCY, NOW)
    assert told.startswith(f"run.json: {key} is missing")


def test_the_tests_that_failed_are_missed_where_some_did() -> None:
    failed = MANIFEST | {"tests": {"passed": 1, "failed": 1, "skipped": 0}}
    (told,) = version_discrepancies(failed, LATENCY, NOW)
    assert told.startswith("run.json: failed_tests is missing")


def test_any_answer_tells_the_version(tmp_path: Path) -> None:
    earlier: dict[str, Any] = {"end_utc": MANIFEST["end_utc"], "tools": {"bw-traffic": "0.1.0"}}
    assert list(version_discrepancies(earlier, LATENCY, version_of(tmp_path, earlier))) == []
    answer = tmp_path / "evidence" / "clock_sync" / "filtered.ndjson"
    answer.parent.mkdir(parents=True)
    answer.write_text(json.dumps({"type": "result", "tool": "bw-clock compare", "version": "0.2.0"}) + "\n")
    assert version_of(tmp_path, earlier) == (0, 2, 0)
    told = [each.split()[1] for each in version_discrepancies(earlier, LATENCY, (0, 2, 0))]
    assert {*told, "failed_tests"} == {*ALWAYS, OF_LATENCY}


def test_a_run_without_native_tools_is_of_no_known_version(tmp_path: Path) -> None:
    assert version_of(tmp_path, {"tools": {"robotframework": "7.5"}}) == ()
