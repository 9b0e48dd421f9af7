# SPDX-License-Identifier: Apache-2.0
"""The suite of the producer's role: a test a requirement; skipped where a target is its own consumer."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "robot" / "daq_producer" / "produced_streams.robot"

_api: Any = import_module("robot.api")


def test_a_target_does_not_produce_into_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    suite = _api.TestSuite.from_file_system(str(SUITE))
    variables = ["TARGET:linux-rt", "CONSUMER:linux-rt", "BENCH:no-such-file.yaml"]
    result = suite.run(output=None, log=None, report=None, console="none", variable=variables)
    tests = {test.name: (test.status, test.message) for test in result.suite.all_tests}
    assert {status for status, _ in tests.values()} == {"SKIP"}
    assert all("target linux-rt cannot produce into itself" in message for _, message in tests.values())
    assert "DAQ-P113 Stream 113 Arrives Within 10 ms" in tests
    assert len(tests) == 5
