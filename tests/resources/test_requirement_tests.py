# SPDX-License-Identifier: Apache-2.0
"""Tests that come from a requirements file, as Robot Framework's own selection finds them; no bench runs."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from robot.api import Error

from hw.errors import ConfigError
from reports.listener import EXIT_LISTENER_FAILED
from resources.daq_replay.keywords import DaqReplayLibrary
from resources.qualify import given_variables
from resources.requirement_tests import RequirementTests

ROOT = Path(__file__).resolve().parents[2]
MODIFIER = "resources.requirement_tests.RequirementTests"
REPLAY = "robot/daq_replay/latency_budgets.robot"
_api: Any = import_module("robot.api")


def robot(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robot", "--pythonpath", ".", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def named_in(output: Path) -> list[str]:
    return [str(test.get("name")) for test in ET.parse(output).iter("test")]  # noqa: S314 - our own


def made(folder: str, *arguments: str) -> list[Any]:
    suite = _api.TestSuite.from_file_system(ROOT / folder)
    suite.visit(RequirementTests(*arguments))
    return list(suite.all_tests)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with requirements of two streams, and a suite of which one fails."""
    text = (ROOT / "robot/daq_replay/requirements/daq12.toml").read_text()
    head, *rows = text.split("[[requirement]]")
    (tmp_path / "site.toml").write_text("[[requirement]]".join([head, *rows[:2]]))
    (tmp_path / "site.robot").write_text(
        "*** Settings ***\n"
        "Library    resources.daq_replay.keywords.DaqReplayLibrary    ${REQUIREMENTS}"
        "    traffic-gen/patterns/daq12.toml\n"
        "Test Template    Judge\n"
        "*** Variables ***\n"
        f"${{REQUIREMENTS}}    {tmp_path}/site.toml\n"
        "*** Test Cases ***\n"
        "Every Stream\n    every requirement\n"
        "Last\n    nothing\n"
        "*** Keywords ***\n"
        "Judge\n    [Arguments]    ${stream}\n"
        "    IF    $stream == 'every requirement'    Judge Stream    ${stream}\n"
        "    Should Not Be Equal    ${stream}    11\n"
    )
    return tmp_path


def test_a_made_test_is_selected_by_its_name(tmp_path: Path) -> None:
    output = ["--dryrun", "--outputdir", str(tmp_path), "--log", "none", "--report", "none"]
    asked = ["--test", "DAQ-010 *", REPLAY]
    names = [test.name for test in made(REPLAY)]
    assert len(names) == 49
    done = robot(*output, "--prerunmodifier", MODIFIER, *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert named_in(tmp_path / "output.xml") == [names[0]]
    assert robot(*output, *asked).returncode == 252, "without it"


def test_failed_tests_run_again_from_the_output_that_robot_printed(site: Path) -> None:
    """The listener leaves Robot's files where they were asked for, and the run folder has the same bytes."""
    listener = f"reports.listener.Listener;bench=lab;profile=quick;results={site}/results"
    options = ["--prerunmodifier", MODIFIER, "--xunit", "x.xml", "--listener", listener]
    first, again = site / "first", site / "again"
    done = robot(*options, "--outputdir", str(first), str(site / "site.robot"))
    assert done.returncode == EXIT_LISTENER_FAILED, "the other tests pass and record nothing"
    assert len(named_in(first / "output.xml")) == 3
    (run,) = (site / "results").glob("2*")
    assert {"x.xml", "output.xml", "log.html", "report.html"} <= {path.name for path in first.iterdir()}
    for name in ("output.xml", "log.html", "report.html"):
        assert (run / name).read_bytes() == (first / name).read_bytes()
    done = robot(
        *options,
        *("--rerunfailed", str(first / "output.xml"), "--outputdir", str(again)),
        str(site / "site.robot"),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    failed = named_in(again / "output.xml")
    assert len(failed) == 1
    assert " Stream 11 " in failed[0]


def test_without_the_modifier_the_row_makes_the_tests(site: Path) -> None:
    robot("--outputdir", str(site), str(site / "site.robot"))
    found = named_in(site / "output.xml")
    assert [name.partition(" Arrives")[0].partition("Stream ")[2] for name in found] == ["10", "11", ""]
    assert found == [test.name for test in made(str(site / "site.robot"))]


def test_tests_of_another_file_than_the_suites_fail_and_say_so(site: Path) -> None:
    (site / "other.toml").write_text((site / "site.toml").read_text().replace("upper_us = ", "upper_us = 9"))
    wrong = ["--variable", f"REQUIREMENTS:{site}/other.toml"]
    done = robot("--prerunmodifier", MODIFIER, *wrong, "--outputdir", str(site), str(site / "site.robot"))
    assert done.returncode == 2
    assert f"{site}/other.toml: the tests are not made from this file" in done.stdout
    right = f"{MODIFIER}:requirements={site}/other.toml"
    done = robot("--prerunmodifier", right, *wrong, "--outputdir", str(site), str(site / "site.robot"))
    assert done.returncode == 1
    assert "Within 9" in named_in(site / "output.xml")[0]


def test_a_wrong_file_is_named_and_its_row_stays(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [test.name for test in made(str(site / "site.robot"), "requirements=nowhere.toml")]
    assert names == ["Every Stream", "Last"]
    assert "[ ERROR ] nowhere.toml: " in capfd.readouterr().err


def test_a_target_has_the_requirements_of_its_kind() -> None:
    bench = "bench=hw/benches/virtual.yaml"
    every = made("robot/daq_producer", bench, "target=embedded")
    own = [test for test in every if "Requirement" in test.metadata]
    assert 0 < len(own) < 48
    values = {each.name: each.value for each in own[0].parent.resource.variables}
    assert values["${TARGET}"] == ("embedded",)
    assert values["${BENCH}"] == ("hw/benches/virtual.yaml",)
    assert made("robot/daq_producer", bench, "target=linux-rt") == []
    whole = "requirements=robot/daq_replay/requirements/daq12.toml"
    assert len(made("robot/daq_replay", bench, "target=embedded", whole)) == 49
    assert len(made("robot/daq_replay", bench, "target=embedded")) < 49


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("requirements",), "must be NAME=VALUE"),
        (("bench=hw/benches/virtual.yaml", "target=arm"), "no target 'arm'; there are: linux-rt"),
    ],
)
def test_a_wrong_argument_is_named(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        made("robot/daq_replay", *arguments)


def test_variables_for_robot_are_those_of_the_modifier() -> None:
    assert list(given_variables([])) == []
    options = ["--variable", "A:1", "--variable=B:x:y", "-v", "C:3", "--test", "T:1", "--variable", "D:"]
    assert list(given_variables(options)) == [("A", "1"), ("B", "x:y"), ("C", "3")]


@pytest.mark.parametrize("stream", ["12", "eleven", "011"])
def test_a_stream_that_has_no_requirement_is_bad_input(site: Path, stream: str) -> None:
    replay = DaqReplayLibrary(site / "site.toml", ROOT / "traffic-gen" / "patterns" / "daq12.toml")
    expected = rf"CONFIG ERROR: .*site.toml: no requirement on stream '{stream}'; there are: 10, 11"
    with pytest.raises(Error, match=expected):
        replay.judge_stream(stream)
