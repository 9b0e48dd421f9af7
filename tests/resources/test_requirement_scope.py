# SPDX-License-Identifier: Apache-2.0
"""What the project's own suites ask of each kind of target, read from the suites as they are."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from reports.run.current import set_current_run
from reports.run.folder import RunFolder
from reports.run.selected import SelectedSuite
from resources.clock_sync.keywords import ClockSyncLibrary
from resources.clock_sync.read_latency_keywords import ClockReadLatencyLibrary
from resources.clock_sync.time_service_keywords import JUDGED_BY, TimeServiceLibrary
from resources.daq_replay.keywords import DaqReplayLibrary
from resources.daq_replay.largest_pattern_keywords import LargestPatternLibrary
from resources.every_target import EveryTarget
from resources.keywords.requirement_scope import RequirementScope, names_in, of_subjects
from resources.provisioning.keywords import ProvisioningLibrary
from resources.realtime_ethernet.keywords import RealtimeEthernetLibrary
from resources.timed_edges.keywords import TimedEdgesLibrary

ROOT = Path(__file__).resolve().parents[2]


def _file(name: str) -> Path:
    (found,) = (ROOT / "robot").glob(f"*/requirements/{name}")
    return found


_api: Any = import_module("robot.api")

CLOCKS = ClockSyncLibrary(_file("clock_sync_virtual.toml"))
EDGES = TimedEdgesLibrary(_file("timed_edges_virtual.toml"), _file("clock_sync_virtual.toml"))
PROVISIONING = ProvisioningLibrary(_file("provisioning.toml"))
DAQ = DaqReplayLibrary(_file("daq12.toml"), ROOT / "traffic-gen" / "patterns" / "daq12.toml")
LARGEST = LargestPatternLibrary(_file("largest_pattern.toml"), _file("daq12.toml"))
TIME_SERVICE = TimeServiceLibrary(_file("clock_time_service_virtual.toml"))
MESSAGES = RealtimeEthernetLibrary(_file("realtime_ethernet_virtual.toml"))
FRAGMENTS = RealtimeEthernetLibrary(
    _file("realtime_ethernet_virtual.toml"), str(_file("realtime_ethernet_fragments_virtual.toml"))
)
READS = ClockReadLatencyLibrary(_file("clock_read_latency_virtual.toml"))


def suites_of(*target: str) -> dict[str, Any]:
    """Return the suites that a target takes part in, by folder and file; arguments as of EveryTarget."""
    suite = _api.TestSuite.from_file_system(ROOT / "robot")
    suite.visit(EveryTarget(*target))
    found: dict[str, Any] = {}
    pending = [suite]
    while pending:
        each = pending.pop()
        pending += each.suites
        if each.tests:
            found[f"{Path(each.source).parent.name}/{Path(each.source).stem}"] = each
    return found


SUITES = suites_of("linux-rt")


def selected(library: RequirementScope, suite: Any) -> list[str]:
    return [name for _file, names in library.selected(names_in(suite)) for name in names]


@pytest.mark.parametrize(
    ("library", "suite", "expected"),
    [
        (
            CLOCKS,
            "clock_sync/sync_error",
            {"CLK-CHRONY", "CLK-NTP-USER", "CLK-PTP-SOFTWARE", "CLK-PHC2SYS"},
        ),
        (CLOCKS, "clock_sync/disturbances", {"CLK-CHRONY", "CLK-PTP-SOFTWARE"}),
        (
            EDGES,
            "timed_edges/clocks",
            {"EDGE-CHRONY", "EDGE-NTP-USER", "EDGE-PTP-SOFTWARE", "EDGE-PHC2SYS", "EDGE-TIMESERVICE"},
        ),
        (EDGES, "timed_edges/witnesses", set[str]()),
        (
            PROVISIONING,
            "provisioning/same_state",
            {"PROV-TWICE", "PROV-RESTORE", "PROV-POWER-CUT", "PROV-RESTART"},
        ),
        (PROVISIONING, "provisioning/faults", set[str]()),
        (READS, "clock_sync/read_latency", {"CLK-READ-REALTIME", "CLK-READ-TIMECARD"}),
        (
            TIME_SERVICE,
            "clock_sync/time_service",
            {f"CLK-TIMESERVICE{name}" for name in ("", "-BOUND", "-U", "-U-WIDTH", "-READS", "-HOLDOVER")},
        ),
    ],
)
def test_a_suite_asks_what_its_tests_name(library: RequirementScope, suite: str, expected: set[str]) -> None:
    assert set(selected(library, SUITES[suite])) == expected


def test_the_suite_of_methods_asks_for_methods_only() -> None:
    found = selected(EDGES, SUITES["timed_edges/methods"])
    assert found
    assert not {name for name in found if name.removeprefix("EDGE-") in ("CHRONY", "NTP-USER", "PHC2SYS")}


def test_the_template_row_asks_for_every_stream_and_a_test_for_the_largest_pattern() -> None:
    suite = SUITES["daq_replay/latency_budgets"]
    assert len(selected(DAQ, suite)) == 48
    assert len(selected(LARGEST, suite)) == 1
    assert selected(LARGEST, SUITES["clock_sync/sync_error"]) == []


def test_a_kind_is_asked_for_its_own_clock_stacks_alone() -> None:
    windows = ClockSyncLibrary(_file("clock_sync_windows_virtual.toml"))
    assert set(selected(windows, suites_of("windows")["clock_sync/sync_error"])) == {
        "CLK-AS-FOUND",
        "CLK-W32TIME",
    }


def test_the_suite_of_single_messages_asks_each_size_and_quantity_but_not_in_quick() -> None:
    suite = "realtime_ethernet/messages"
    found = set(selected(MESSAGES, suites_of("linux", "profile=ci")[suite]))
    sizes = {f"RTE-{size}-{name}" for size in (4, 64, 512, 1400) for name in ("MEDIAN", "P99")}
    rises = {f"RTE-{rise}-{name}" for rise in ("BULK", "RECEIVE") for name in ("MEDIAN", "P99")}
    rest = rises | {"RTE-64-THROUGHPUT", "RTE-1400-THROUGHPUT"}
    assert found == sizes | rest
    large = {f"RTE-{size}-{name}" for size in (16384, 65507) for name in ("MEDIAN", "P99", "THROUGHPUT")}
    assert set(selected(FRAGMENTS, suites_of("linux", "profile=ci")[suite])) == found | large
    assert suite not in suites_of("linux", "profile=quick")
    assert suite in SUITES


def test_what_a_profile_leaves_out_is_not_asked() -> None:
    windows = TimeServiceLibrary(_file("clock_time_service_windows_virtual.toml"))
    suite = suites_of("windows", "profile=ci")["clock_sync/time_service"]
    assert set(selected(windows, suite)) == {
        f"CLK-TIMESERVICE{name}" for name in ("", "-BOUND", "-U", "-U-WIDTH", "-READS")
    }
    quick = suites_of("linux-rt", "profile=quick")
    assert set(selected(CLOCKS, quick["clock_sync/sync_error"])) == {"CLK-CHRONY", "CLK-PTP-SOFTWARE"}
    assert selected(EDGES, quick["timed_edges/methods"]) == ["EDGE-LATCH-DEVIATION"]
    assert set(selected(PROVISIONING, quick["provisioning/same_state"])) == {"PROV-TWICE", "PROV-RESTORE"}
    assert selected(LARGEST, quick["daq_replay/latency_budgets"]) == []


def test_every_keyword_that_judges_the_time_service_is_known() -> None:
    steps = {str(test.body[0].name) for test in SUITES["clock_sync/time_service"].tests}
    assert steps == {*JUDGED_BY, "Measure Other Stacks Beside It"}


def _windows(_variable: str) -> str:
    return "windows"


def test_a_suite_of_tests_that_must_fail_asks_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path, "virtual", "quick")
    set_current_run(run)
    monkeypatch.setattr("resources.requirement_scope.robot_variable", _windows)
    try:
        windows = ClockSyncLibrary(_file("clock_sync_windows_virtual.toml"))
        windows.start_suite(suites_of("windows", "profile=quick")["clock_sync/sync_error"], None)
        assert run.manifest.asked == (SelectedSuite("windows", "clock_sync/sync_error.robot", ()),)
        windows.start_suite(suites_of("windows")["clock_sync/sync_error"], None)
        assert run.manifest.asked is not None
        assert run.manifest.asked[0].requirements == ("CLK-AS-FOUND", "CLK-W32TIME")
    finally:
        set_current_run(None)


def test_where_tests_name_no_subject_all_are_asked() -> None:
    subjects = {"A": "chrony", "B": "phc2sys"}
    assert of_subjects(subjects, {"${CLOCK}"}) == ["A", "B"]
    assert of_subjects(subjects, {"phc2sys", "Stay Within"}) == ["B"]
