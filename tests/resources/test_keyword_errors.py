# SPDX-License-Identifier: Apache-2.0
"""An error in a keyword says in Robot's results who is at fault."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LIBRARY = """
import json
from pathlib import Path
from hw import errors
from reports.errors import RecordError, RunFolderError
from resources.keywords.robot_api import keyword, library


@library(scope="SUITE")
class Faulty:
    @keyword
    def be_at_fault(self, kind: str, times: int = 1) -> None:
        if kind == "file":
            Path("/proc/nowhere/x").write_text("x")
        named = {"RecordError": RecordError, "RunFolderError": RunFolderError, "KeyError": KeyError}
        named["RuntimeError"] = RuntimeError
        raise (named.get(kind) or getattr(errors, kind))(f"{kind} seen {times + 1} times")
"""

SUITE = """
*** Settings ***
Library          faulty.Faulty
Test Template    Be At Fault

*** Test Cases ***
"""

EXPECTED = {
    "ConfigError": "CONFIG ERROR: ConfigError seen 3 times",
    "BenchError": "BENCH ERROR: BenchError seen 3 times",
    "MeasurementError": "MEASUREMENT ERROR: MeasurementError seen 3 times",
    "RecordError": "MEASUREMENT ERROR: RecordError seen 3 times",
    "RunFolderError": "BENCH ERROR: RunFolderError seen 3 times",
    "file": "BENCH ERROR: [Errno 2] No such file or directory: '/proc/nowhere/x'",
    "KeyError": "KeyError: 'KeyError seen 3 times'",
    "RuntimeError": "RuntimeError: RuntimeError seen 3 times",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ElementTree.Element]:
    """Run a suite with one test a kind of error; return the test cases of its results."""
    folder = tmp_path_factory.mktemp("robot")
    (folder / "faulty.py").write_text(LIBRARY)
    rows = "".join(f"{kind}    {kind}    times=2\n" for kind in [*EXPECTED, "CapabilityError"])
    (folder / "suite.robot").write_text(SUITE + rows)
    command = [sys.executable, "-m", "robot", "--xunit", "xunit.xml", "--outputdir", str(folder)]
    subprocess.run(
        [*command, str(folder / "suite.robot")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        check=False,
    )
    tree = ElementTree.parse(folder / "xunit.xml")  # noqa: S314 - written by our own Robot Framework
    return {str(case.get("name")): case for case in tree.iter("testcase")}


@pytest.mark.parametrize("kind", EXPECTED)
def test_the_message_begins_with_who_is_at_fault(results: dict[str, ElementTree.Element], kind: str) -> None:
    failure = results[kind].find("failure")
    assert failure is not None
    assert failure.get("message") == EXPECTED[kind]


def test_a_missing_capability_skips(results: dict[str, ElementTree.Element]) -> None:
    skipped = results["CapabilityError"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "SKIPPED: CapabilityError seen 3 times"
