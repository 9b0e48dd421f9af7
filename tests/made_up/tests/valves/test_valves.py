# SPDX-License-Identifier: Apache-2.0
"""The suite of valves runs; whatever shows, keeps, judges again or follows values has them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboards.grafana.files import files
from dashboards.points import run_points
from dashboards.regressions.watched import watched
from reports.dossier.figures import draw_figures
from reports.dossier.gather import gather
from reports.dossier.page import dossier_page
from reports.errors import RequirementsError
from reports.rejudge.run import rejudge
from reports.requirement_forms import read_set
from reports.run.folder import RunFolder
from resources.pace import Pace

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "robot" / "valves" / "valves.toml"


def _robot(results: Path, profile: str) -> subprocess.CompletedProcess[str]:
    command = [
        *(sys.executable, "-m", "robot", "--pythonpath", ".", "--outputdir", str(results / "robot")),
        *("--listener", f"reports.listener.Listener;results={results}"),
        *("--variable", f"PROFILE:{profile}", "--variable", "BENCH:hw/benches/virtual.yaml"),
        *("--prerunmodifier", f"resources.every_target.EveryTarget:profile={profile}:linux-rt:windows"),
        "robot/valves",
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _module(*arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of two targets."""
    results = tmp_path_factory.mktemp("results")
    done = _robot(results, "ci")
    assert done.returncode == 0, done.stdout + done.stderr
    return (results / "latest").resolve()


def _words(file: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", file.read_text()))


def test_the_pages_show_it(run: Path) -> None:
    page = (run / "qualification-windows.html").read_text()
    assert '<a href="#valves">Valves</a>' in page
    assert "VALVE-1: 31" in _words(run / "qualification-windows.html")
    assert "<li>Valves: 1</li>" in page
    assert 'id="others"' not in page, "a section shows it, and no list of other values"
    over_targets = run / "qualification.html"
    assert "<h3>Valves of 2 targets</h3>" in over_targets.read_text()
    assert "<li>Valves: 2</li>" in over_targets.read_text()
    assert "Valve delay" in _words(over_targets), "a group of the matrix"
    assert "of valve solenoid" in _words(over_targets), "its axis"


def test_the_dossier_has_its_figure_its_distribution_and_its_condition(run: Path, tmp_path: Path) -> None:
    dossier = gather([run])
    file = tmp_path / "dossier.html"
    file.write_text(dossier_page(dossier, draw_figures(dossier, {RunFolder.open(run).run_id: run})))
    assert file.read_text().count("How late the valve opened.") == 2
    words = _words(file)
    assert "opened - told to" in words
    assert re.search(r"p99\.9 \[95 %\].*19\.9", words)
    assert "valve solenoid" in words
    assert "pressure_kpa=250" in words


def test_it_is_judged_again(run: Path, tmp_path: Path) -> None:
    sound = rejudge(run)
    assert not sound.problems
    assert (sound.worked_out, sound.records) == (2, 2)
    _module("reports", "verify", str(run))
    changed = shutil.copytree(run, tmp_path / run.name)
    for delays in changed.rglob("delays.json"):
        before = hashlib.sha256(delays.read_bytes()).hexdigest()
        delays.write_text(delays.read_text().replace("31000", "61000"))
        records = changed / "measurements.jsonl"
        records.write_text(
            records.read_text().replace(before, hashlib.sha256(delays.read_bytes()).hexdigest())
        )
    told = [each for each in rejudge(changed).problems if "the delays give 61000" in each]
    assert len(told) == 2


def test_a_record_of_another_valve_or_without_its_delays_is_named(run: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(run, tmp_path / run.name)
    records = changed / "measurements.jsonl"
    text = records.read_text()
    records.write_text(text.replace('"solenoid"', '"needle"'))
    of = "VALVE-1: measured of valve needle, the requirement is on solenoid"
    assert [problem for problem in rejudge(changed).problems if "measured of" in problem] == [of, of]
    records.write_text(text.splitlines(keepends=True)[0])
    assert [each for each in rejudge(changed).problems if each.endswith("raw data that no record names")]


def test_it_is_stored_and_followed_and_the_page_of_trends_shows_it(run: Path, tmp_path: Path) -> None:
    points = run_points(RunFolder.open(run), "main")
    followed = [each for point in points.points for each in watched(point.measurement, point.tags)]
    assert [(each.measurement, each.field, each.tags["quantity"]) for each in followed] == [
        ("hil_valves", "value_ns", "valve_delay")
    ] * 2
    store, page = tmp_path / "store.sqlite", tmp_path / "trends.html"
    _module("dashboards", "import", str(run), "--store", str(store))
    _module("dashboards", "trends", "--store", str(store), "--output", str(page))
    text = page.read_text()
    assert '<a href="#valves">Valves</a>' in text
    assert '<section id="valves" data-measurement="hil_valves"' in text
    assert '"valve":"solenoid"' in text.replace(" ", "")


def test_grafana_has_a_dashboard_of_it() -> None:
    made = {Path(name).name: text for name, text in files().items()}
    dashboard = json.loads(made["bw-valves.json"])
    assert dashboard["title"].endswith("valves")
    assert "hil_valves" in json.dumps(dashboard["panels"])
    assert '\\"valve\\"' in json.dumps(dashboard["panels"]), "one line a valve"
    assert "hil_valves" in made["bw-run.json"]


def test_a_profile_without_its_times_leaves_it_out(tmp_path: Path) -> None:
    done = _robot(tmp_path, "quick")
    assert "profile quick leaves out every test of these suites" in done.stderr


def test_its_suite_has_a_budget() -> None:
    assert Pace("ci").budgets_s["linux-rt"]["valves/opening.robot"] == 60


def test_its_requirement_has_a_form() -> None:
    text = REQUIREMENTS.read_text()
    with pytest.raises(RequirementsError, match=r"requirement\[1\]\.statistic: must be one of max"):
        read_set(text.replace('"max"', '"mean"').encode(), "valves.toml")
