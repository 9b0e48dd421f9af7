# SPDX-License-Identifier: Apache-2.0
"""A capability is its own folder and three rows: whatever shows, keeps or follows values has it then."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reports.rejudge.run import rejudge
from tests.reports.pages import words_of

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with all that was made of a run that has the capability."""
    folder = tmp_path_factory.mktemp("capability")
    done = subprocess.run(
        [sys.executable, "-m", "tests.made_up_capability", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_pages_show_it(made: Path) -> None:
    page = (made / "qualification-windows.html").read_text()
    assert '<a href="#valves">Valves</a>' in page
    assert '<h2 id="valves">' in page
    assert "VALVE-1: 31" in words_of(page)
    assert "<li>Valves: 1</li>" in page
    assert 'id="others"' not in page, "a section shows it, and no list of other values"


def test_the_page_over_targets_shows_it(made: Path) -> None:
    page = (made / "qualification.html").read_text()
    assert "<h3>Valves of 2 targets</h3>" in page
    assert "<li>Valves: 2</li>" in page
    assert "Valve delay" in words_of(page), "a group of the matrix"
    assert "of valve solenoid" in words_of(page), "its axis"


def test_the_dossier_has_its_figure_and_its_distribution(made: Path) -> None:
    page = (made / "dossier.html").read_text()
    assert page.count("How late the valve opened.") == 2
    assert "opened - told to" in page
    assert re.search(r"p99\.9 \[95 %\].*19\.9", words_of(page))


def test_the_dossier_names_its_axis_and_its_condition(made: Path) -> None:
    page = words_of((made / "dossier.html").read_text())
    assert "valve solenoid" in page
    assert "pressure_kpa=250" in page


def test_the_second_judge_holds_the_axis_against_the_requirement(made: Path, tmp_path: Path) -> None:
    run = next(path for path in (made / "results").iterdir() if path.is_dir() and not path.is_symlink())
    assert not [problem for problem in rejudge(run).problems if "measured of" in problem]
    changed = shutil.copytree(run, tmp_path / "changed")
    records = changed / "measurements.jsonl"
    records.write_text(records.read_text().replace('"solenoid"', '"needle"'))
    of = "VALVE-1: measured of valve needle, the requirement is on solenoid"
    assert [problem for problem in rejudge(changed).problems if "measured of" in problem] == [of, of]


def test_it_is_stored_and_followed(made: Path) -> None:
    followed = json.loads((made / "followed.json").read_text())
    assert followed == [["hil_valves", "value_ns", "valve_delay"]] * 2


def test_the_page_of_trends_has_a_part_of_it(made: Path) -> None:
    page = (made / "trends.html").read_text()
    assert '<a href="#valves">Valves</a>' in page
    assert '<section id="valves" data-measurement="hil_valves"' in page
    assert '"hil_valves"' in page
    assert '"valve":"solenoid"' in page.replace(" ", "")


def test_grafana_has_a_dashboard_of_it(made: Path) -> None:
    dashboard = json.loads((made / "bw-valves.json").read_text())
    assert dashboard["title"].endswith("valves")
    assert "hil_valves" in json.dumps(dashboard["panels"])
    assert '\\"valve\\"' in json.dumps(dashboard["panels"]), "one line a valve"
    assert "hil_valves" in (made / "bw-run.json").read_text()
