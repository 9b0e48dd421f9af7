# SPDX-License-Identifier: Apache-2.0
"""Requirements: the project's own fit the pattern; wrong ones, and those of another pattern, are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from robot.api import Error

from hw.errors import ConfigError
from reports.run.current import set_current_run
from reports.run.folder import RunFolder
from reports.run.selected import KEPT, SelectedSuite, with_selected
from resources.daq_replay.keywords import (
    DaqReplayLibrary,
    _evidence_folder,  # pyright: ignore[reportPrivateUsage]
)
from resources.daq_replay.pattern import Pattern, load_pattern
from resources.daq_replay.requirements import load_requirements
from resources.requirement_scope import select

ROOT = Path(__file__).resolve().parents[3]
DAQ12_REQUIREMENTS = ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml"
DAQ12_PATTERN = ROOT / "traffic-gen" / "patterns" / "daq12.toml"

GOOD = """
[requirements]
schema = "benchwright.requirements/2"
name = "site"
pattern = "daq12"

[[requirement]]
id = "SITE-1"
stream = 31
quantity = "one_way_latency"
statistic = "max"
upper_us = 50000
lost = 0
source = "site specification 7"

[[requirement]]
id = "SITE-2"
stream = 33
quantity = "one_way_latency"
statistic = "max"
upper_us = 10000
lost = 2
source = "site specification 8"
"""


PRODUCER_REQUIREMENTS = ROOT / "robot" / "daq_producer" / "requirements" / "daq_producer.toml"
EMBEDDED_REQUIREMENTS = DAQ12_REQUIREMENTS.with_name("daq_embedded_virtual.toml")


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return load_pattern(DAQ12_PATTERN)


def test_the_projects_own_ask_of_each_stream_the_budget_of_the_pattern(pattern: Pattern) -> None:
    requirements = load_requirements(DAQ12_REQUIREMENTS)
    requirements.check_pattern(pattern)
    assert len(pattern.streams) == 48
    assert {stream.id: stream.budget_ns for stream in pattern.streams} == {
        stream: requirement.upper_ns for stream, requirement in requirements.by_stream.items()
    }
    assert all(requirement.limit.source for requirement in requirements.by_stream.values())


def test_a_sites_own_may_ask_of_some_streams_only(tmp_path: Path, pattern: Pattern) -> None:
    requirements = load_requirements(_write(tmp_path, GOOD))
    requirements.check_pattern(pattern)
    assert requirements.by_stream[33].upper_ns == 10_000_000
    assert requirements.by_stream[33].lost == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'pattern = "daq12"',
            'pattern = "daq24"',
            "requirements.pattern: must be the pattern's name 'daq12', found 'daq24'",
        ),
        ("stream = 33", "stream = 34", "SITE-2.stream: must be a stream of pattern 'daq12', found 34"),
    ],
)
def test_those_of_another_pattern_are_refused(
    tmp_path: Path, pattern: Pattern, old: str, new: str, message: str
) -> None:
    path = _write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ConfigError) as refused:
        load_requirements(path).check_pattern(pattern)
    assert str(refused.value) == f"{path}: {message}"
    with pytest.raises(Error, match=r"^CONFIG ERROR: ") as failed:
        DaqReplayLibrary(path, DAQ12_PATTERN).start_latency_evidence("linux-rt", "kernel", "two-way", "ci")
    assert message in str(failed.value)


def test_an_open_run_keeps_every_file_that_a_suite_asks_by_once_with_its_bytes(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci")
    set_current_run(run)
    kept, suite = run.path / KEPT, tmp_path / "own" / "suite.robot"
    try:
        path = _write(tmp_path, GOOD)
        load_requirements(path)
        assert not kept.exists(), "to read is not to ask"
        for _ in range(2):
            select(suite, path, ["A"])
        assert [file.name for file in kept.iterdir()] == [path.name]
        assert (kept / path.name).read_bytes() == path.read_bytes()
        path.write_text(GOOD.replace("50000", "40000"))
        select(suite, path, ["A", "B"])
        assert {file.read_bytes() for file in kept.iterdir()} == {GOOD.encode(), path.read_bytes()}
        [asked] = list(run.manifest.asked or ())
        assert [each.requirements for each in asked.asks or ()] == [("A",), ("A", "B")]
        assert {each.file for each in asked.asks or ()} == {file.name for file in kept.iterdir()}
        run.close()
        run.finalise()
        select(suite, path, ["A"])
    finally:
        set_current_run(None)


def test_a_wrong_file_is_not_kept(tmp_path: Path) -> None:
    """And one that is not there is named."""
    run = RunFolder.create(tmp_path / "results", "virtual", "ci")
    set_current_run(run)
    try:
        with pytest.raises(ConfigError):
            load_requirements(_write(tmp_path, GOOD.split("[[")[0]))
        with pytest.raises(ConfigError, match="absent"):
            load_requirements(tmp_path / "absent.toml")
    finally:
        set_current_run(None)
    assert not (run.path / "evidence" / "requirements").exists()


def test_limits_of_the_embedded_target_are_the_papers_for_the_producers_that_it_takes() -> None:
    """A subset of daq12.toml: same identifiers, limits and sources."""
    whole = load_requirements(DAQ12_REQUIREMENTS)
    part = load_requirements(EMBEDDED_REQUIREMENTS)
    assert part.by_stream.items() <= whole.by_stream.items()
    assert (whole.producers, part.producers) == ((), tuple(sorted({s // 10 for s in part.by_stream})))


def test_limits_of_a_target_that_produces_are_those_of_the_same_streams() -> None:
    """A stream has one budget, whoever sends it: own identifiers, limits and sources of daq12.toml."""
    whole = load_requirements(DAQ12_REQUIREMENTS)
    produced = load_requirements(PRODUCER_REQUIREMENTS)
    assert (whole.role, produced.role) == ("consumer", "producer")
    assert set(produced.by_stream) == {110, 111, 112, 113}
    for stream, requirement in produced.by_stream.items():
        assert requirement.id == f"DAQ-P{stream}"
        assert replace(requirement, id=f"DAQ-{stream}", of_sender=False) == whole.by_stream[stream]


def test_requirements_are_for_one_role_of_the_target(tmp_path: Path) -> None:
    produced = load_requirements(PRODUCER_REQUIREMENTS)
    produced.check_role("producer", 11)
    load_requirements(DAQ12_REQUIREMENTS).check_role("consumer")
    with pytest.raises(ConfigError, match=r"DAQ-P110\.stream: must be a stream of producer 5, found 110"):
        produced.check_role("producer", 5)
    with pytest.raises(ConfigError, match=r"requirements\.role: must be 'consumer', found 'producer'"):
        produced.check_role("consumer")


def test_only_those_of_the_requirements_send_where_a_file_says_so(tmp_path: Path) -> None:
    assert load_requirements(_write(tmp_path, GOOD)).producers == ()
    text = GOOD.replace('pattern = "daq12"', 'pattern = "daq12"\nproducers = "required"')
    assert load_requirements(_write(tmp_path, text)).producers == (3,)


def test_of_several_network_stacks_each_has_a_folder_of_its_own(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci")
    suite = "daq_replay/latency_budgets.robot"
    for asked, place in (((), "a"), (("other",), "a"), (("kernel", "other"), "a/other")):
        found: tuple[SelectedSuite, ...] = with_selected((), "b", suite)
        for stack in asked:
            found = with_selected(found, "a", suite, stack=stack)
        run.update(asked=found)
        folder = _evidence_folder(run, "daq_replay", "a", "other")
        assert folder == run.path / "evidence" / "daq_replay" / place
    assert _evidence_folder(run, "daq_replay", "b", "kernel").name == "b"
