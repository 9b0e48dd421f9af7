# SPDX-License-Identifier: Apache-2.0
"""Tables of the dossier: what rows share is said once, and ids that follow each other are a range."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from reports.dossier.model import Dossier
from reports.dossier.page import dossier_page
from reports.dossier.tables import id_ranges, parts_tables, result_tables, results_of
from reports.dossier.view import View
from tests.reports.dossier.sample import finished_run, gather
from tests.reports.sample_run import Disturbance

ORDER = ["A-1", "A-2", "A-3", "A-4", "B-1"]
LATE = 33


@pytest.fixture(scope="module")
def dossier(tmp_path_factory: pytest.TempPathFactory) -> Dossier:
    late = Disturbance(path_delay_ns={LATE: 15_000_000})
    return gather([finished_run(tmp_path_factory.mktemp("results"), late, simulated=True).path])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (ORDER, "A-1 to B-1"),
        (["A-3", "A-1", "A-2"], "A-1 to A-3"),
        (["A-1", "A-2", "A-4", "B-1"], "A-1, A-2, A-4, B-1"),
        (["A-2", "elsewhere"], "A-2, elsewhere"),
        ([], ""),
    ],
)
def test_ids_that_follow_each_other_are_a_range(names: list[str], said: str) -> None:
    assert id_ranges(names, ORDER) == said


def test_what_rows_share_is_said_above_them(dossier: Dossier) -> None:
    found = results_of(dossier.targets[0])
    tables = {table.what: table for table in result_tables(found)}
    assert sum(len(table.rows) for table in tables.values()) == len(found)
    latency = tables["one_way_latency", "max"]
    assert latency.common == "stack kernel, clock two-way, profile ci, phase aligned-12"
    assert [row.own for row in latency.rows[:2]] == ["stream 10", "stream 11"]
    assert latency.shares == (0.5, 0.99), "of so few samples p99.9 has no bound"


def test_the_same_u_is_told_once_for_all_that_have_it(dossier: Dossier) -> None:
    [table] = [each for each in parts_tables(dossier.targets[0]) if each.quantity == "one_way_latency"]
    names = [row.id for row in dossier.targets[0].requirements]
    assert len(table.rows) < 20 < len(names)
    assert len({row.record.uncertainty for row in table.rows}) == len(table.rows)


def test_messages_over_budget_are_counted(dossier: Dossier) -> None:
    view = View(dossier, lambda _attempt: 7)
    said = {row.id: view.over_budget(view.shown(row.results[0])) for row in dossier.targets[0].requirements}
    n = {row.id: view.shown(row.results[0]).record.n for row in dossier.targets[0].requirements}
    assert said.pop(f"DAQ-0{LATE}") == f"7 of {n[f'DAQ-0{LATE}']}"
    assert set(said.values()) == {f"0 of {n[name]}" for name in said}


def test_untested_on_hardware_is_explained_and_then_a_sign(dossier: Dossier, tmp_path: Path) -> None:
    html = dossier_page(dossier, ())
    assert html.count("untested on hardware") < 30
    assert html.count("\u25c7") > len(dossier.targets[0].requirements)


def test_skipped_tests_of_several_targets_are_one_line(dossier: Dossier) -> None:
    [target], [run] = dossier.targets, dossier.runs
    twice = tuple(
        dataclasses.replace(run.tests_skipped[0], name=f"Qualification.{name}.Clocks: Holds")
        for name in (target.name, "windows")
    )
    both = dataclasses.replace(
        dossier,
        targets=(target, dataclasses.replace(target, name="windows")),
        runs=(dataclasses.replace(run, tests_skipped=twice),),
    )
    [note] = View(both).notes("tests_skipped")
    assert (note.test, note.targets) == ("Qualification.Clocks: Holds", f"{target.name}, windows")
    assert not any(kind == "test skipped" for _runs, kind, _text in View(both).deviations())
