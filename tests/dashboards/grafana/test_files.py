# SPDX-License-Identifier: Apache-2.0
"""The files for Grafana: laid out without overlaps, with explicit ids and units, portable InfluxQL."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.__main__ import main
from dashboards.grafana.files import DASHBOARDS, MOUNTED_AT, files
from dashboards.grafana.influxql import SUBJECT_VARIABLES
from dashboards.grafana.model import COLUMNS, Panel, place
from dashboards.points import (
    EDGES,
    MEASUREMENT_OF_QUANTITY,
    MEASUREMENTS,
    OUTCOME_CODE,
    RUN_TAGS,
    SERIES_TAGS,
    SYNC,
    VERDICT,
)
from tests.dashboards.grafana.queries import alert_rules, all_dashboards
from tests.dashboards.two_years import SHARDS

ROOT = Path(__file__).resolve().parents[3]
Json = dict[str, Any]
UIDS = (
    "bw-clock-sync",
    "bw-instrument",
    "bw-latency",
    "bw-legs",
    "bw-loop",
    "bw-messages",
    "bw-noise",
    "bw-overview",
    "bw-run",
    "bw-software",
    "bw-timed-edges",
    "bw-wakeups",
)
NOT_PORTABLE = re.compile(
    r"\b(SLIMIT|SOFFSET|SAMPLE|HOLT_WINTERS|SHOW\s+SERIES|INTO|tz)\b|SELECT\s+\*", re.IGNORECASE
)
DATA_SOURCE = "provisioning/datasources/benchwright.yaml"
_TABLE_GROUPS_MAX = 1


def all_panels() -> list[tuple[str, Json]]:
    return [(uid, panel) for uid, d in all_dashboards().items() for panel in d["panels"]]


def raw_queries() -> list[str]:
    """Return every query of the files as it is written there."""
    found: list[str] = [str(target["query"]) for _, p in all_panels() for target in p.get("targets", [])]
    for dashboard in all_dashboards().values():
        found += [str(variable["query"]) for variable in dashboard["templating"]["list"]]
        found += [str(a["target"]["query"]) for a in dashboard["annotations"]["list"] if "target" in a]
    for rule in alert_rules():
        found += [str(part["model"]["query"]) for part in rule["data"] if "query" in part["model"]]
    return found


def test_dashboards_keep_their_addresses() -> None:
    """Links of a lab's own pages lead to them."""
    assert set(all_dashboards()) == set(UIDS)


def test_check_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grafana", "--output", str(tmp_path)]) == 0
    assert main(["grafana", "--check", "--output", str(tmp_path)]) == 0
    (tmp_path / "json" / "bw-run.json").unlink()
    (tmp_path / "json" / "mine.json").write_text("{}")
    alerting = tmp_path / "provisioning" / "alerting" / "benchwright.yaml"
    alerting.write_text(alerting.read_text().replace("lt", "gt"))
    capsys.readouterr()
    assert main(["grafana", "--check", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "json/bw-run.json: missing",
        "json/mine.json: not one of these files",
        "provisioning/alerting/benchwright.yaml: differs",
    ]


def test_days_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grafana", "--output", str(tmp_path), "--no-run-days", "14"]) == 0
    text = (tmp_path / "provisioning" / "alerting" / "benchwright.yaml").read_text()
    assert 'moving_average(count("outcome_code"), 15)' in text
    assert "No run in 14 days" in text
    assert main(["grafana", "--no-run-days", "0"]) == 2
    assert "--no-run-days >= 1" in capsys.readouterr().err


def test_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "json").write_text("a file")
    assert main(["grafana", "--output", str(tmp_path)]) == 2
    assert str(tmp_path / "json") in capsys.readouterr().err


def overlaps(panels: list[Json]) -> list[tuple[str, str]]:
    """Return the pairs of panels that overlap, and those that stand out of the page."""
    found = [(p["title"], "page") for p in panels if p["gridPos"]["x"] + p["gridPos"]["w"] > COLUMNS]
    for one, other in itertools.combinations(panels, 2):
        a, b = one["gridPos"], other["gridPos"]
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        if not (beside or above):
            found.append((one["title"], other["title"]))
    return found


@pytest.mark.parametrize("uid", UIDS)
def test_panels_do_not_overlap(uid: str) -> None:
    panels: list[Json] = all_dashboards()[uid]["panels"]
    assert overlaps(panels) == []
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert len({panel["title"] for panel in panels}) == len(panels)


def test_overlap_is_found() -> None:
    panels: list[Json] = all_dashboards()["bw-overview"]["panels"]
    panels[1]["gridPos"]["x"] -= 1
    assert overlaps(panels) == [(panels[0]["title"], panels[1]["title"])]


def test_rows_are_as_high_as_their_highest_panel() -> None:
    def of_size(width: int, height: int) -> Panel:
        return Panel("", "text", "", (), width, height, {}, {})

    placed = place([of_size(12, 4), of_size(12, 9), of_size(6, 2), of_size(20, 1)])
    assert [(x, y) for _, x, y in placed] == [(0, 0), (12, 0), (0, 9), (0, 11)]


def test_every_panel_says_its_unit_and_what_it_shows() -> None:
    for uid, panel in all_panels():
        if panel["type"] != "text":
            assert panel["fieldConfig"]["defaults"]["unit"], (uid, panel["title"])
            assert panel["description"], (uid, panel["title"])


def without_room_below_zero(panels: list[Json]) -> list[str]:
    """Return the panels whose axis ends above 0, though what they show can be below it."""
    signed = re.compile(rf'\((?:"value_ns"|"margin_\w+")\) AS .* FROM "(?:{SYNC}|{EDGES}|{VERDICT})"')

    def ends_above_zero(panel: Json) -> bool:
        custom = panel["fieldConfig"]["defaults"].get("custom", {})
        return custom.get("scaleDistribution", {}).get("type") == "log"

    return [
        panel["title"]
        for panel in panels
        if ends_above_zero(panel) and any(signed.search(target["query"]) for target in panel["targets"])
    ]


def test_a_mean_below_zero_is_drawn() -> None:
    """Edges come early and clocks are behind: a plain logarithmic axis leaves such points out, silently."""
    panels = [panel for _, panel in all_panels()]
    assert without_room_below_zero(panels) == []
    (delay,) = (panel for panel in panels if panel["title"] == "Delay of an edge")
    delay["fieldConfig"]["defaults"]["custom"]["scaleDistribution"] = {"type": "log", "log": 10}
    assert without_room_below_zero(panels) == ["Delay of an edge"]


def not_shown(panels: list[Json]) -> list[str]:
    """Return the quantities of a series whose values none of the panels shows over time."""
    queries = [str(target["query"]) for panel in panels for target in panel.get("targets", [])]

    def shows(query: str, quantity: str) -> bool:
        asked = re.search(r"\"quantity\" (?:= '(\w+)'|=~ /(\S+)/)", query)
        return asked is None or re.fullmatch(asked[1] or asked[2], quantity) is not None

    return [
        quantity
        for quantity, measurement in MEASUREMENT_OF_QUANTITY.items()
        if not any(
            shows(query, quantity)
            for query in queries
            if re.search(rf'"value_ns"\) AS .* FROM "{measurement}" .* time\(', query)
        )
    ]


def test_every_quantity_of_a_series_is_shown() -> None:
    """Those that no other panel names come with the others of their series, a new one too."""
    panels = [panel for _, panel in all_panels()]
    assert not_shown(panels) == []
    fewer = [panel for panel in panels if panel["title"] != "Other values of clocks"]
    assert not_shown(fewer) == ["clock_step", "clock_witness_difference", "path_shift"]


def test_outcomes_are_told_in_words() -> None:
    """A state that only a colour tells would be lost on many readers."""
    words = {str(code): name for name, code in OUTCOME_CODE.items()}
    for uid, panel in all_panels():
        if panel["type"] == "state-timeline":
            (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
            assert {code: shown["text"] for code, shown in mapping["options"].items()} == words, uid


@pytest.mark.parametrize("uid", UIDS)
def test_choice_and_time_go_with_the_reader(uid: str) -> None:
    dashboard = all_dashboards()[uid]
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert names[: len(SUBJECT_VARIABLES)] == list(SUBJECT_VARIABLES)
    for variable in dashboard["templating"]["list"]:
        if variable["name"] not in ("run", "one"):
            assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".*")
    (link,) = dashboard["links"]
    assert (link["includeVars"], link["keepTime"]) == (True, True)
    assert set(link["tags"]) <= set(dashboard["tags"])
    assert [a["name"] for a in dashboard["annotations"]["list"][1:]] == ["Regressions", "Bench changes"]


def test_links_to_a_run_lead_to_its_dashboard() -> None:
    links = re.findall(r"/d/[^\"]*", json.dumps(all_dashboards()))
    assert len(links) >= 2
    for link in links:
        assert link.startswith("/d/bw-run?var-run=${__data.fields.run}&")
        assert "${__url_time_range}" in link


def test_queries_are_portable() -> None:
    for query in raw_queries():
        assert not NOT_PORTABLE.search(query), query
        if query.startswith("SELECT"):
            columns = query[len("SELECT ") : query.index(" FROM ")]
            parts = re.split(r",\s*(?![^(]*\))", columns)
            assert all(re.search(r' AS "[^"]+"$', part) for part in parts), query


def test_query_that_is_not_portable_is_found() -> None:
    for query in ('SELECT sample(x, 3) AS "x"', "SHOW SERIES", "SELECT x FROM y SLIMIT 1", "SELECT * FROM y"):
        assert NOT_PORTABLE.search(query)


def test_tables_are_grouped_by_one_tag_at_most() -> None:
    for uid, panel in all_panels():
        for target in panel.get("targets", []):
            if target["resultFormat"] == "table" and "GROUP BY" in target["query"]:
                groups = target["query"].partition("GROUP BY")[2].count('"') // 2
                assert groups <= _TABLE_GROUPS_MAX, (uid, panel["title"])


def test_names_are_of_the_schema() -> None:
    """Measurements and tags are spelt as the points have them; fields are proven by the queries' answers."""
    for query in raw_queries():
        for measurement in re.findall(r'FROM "(\w+)"', query):
            assert measurement in (*MEASUREMENTS, "hil_spool"), query
        for tags in re.findall(r"GROUP BY (?:time\([^)]*\),? ?)?((?:\"\w+\"(?:, )?)*)", query):
            assert set(re.findall(r"\w+", tags)) <= {
                *SERIES_TAGS,
                "kind",
                "measurement",
                *RUN_TAGS,
                "host",
            }, query


def test_alert_rules_are_whole() -> None:
    rules = {rule["uid"]: rule for rule in alert_rules()}
    assert set(rules) == {"bw-margin", "bw-outcome", "bw-no-run", "bw-set-aside"}
    panels = {(uid, panel["id"]) for uid, panel in all_panels()}
    for rule in rules.values():
        refs = [part["refId"] for part in rule["data"]]
        assert rule["condition"] == refs[-1] == "C"
        assert [part["model"].get("expression") for part in rule["data"]] == [None, "A", "B"]
        assert [part["datasourceUid"] for part in rule["data"]] == ["benchwright", "__expr__", "__expr__"]
        assert (rule["dashboardUid"], rule["panelId"]) in panels
        assert "$" not in json.dumps([rule["annotations"], rule["labels"]]), (
            "Grafana would take it for a variable"
        )
    assert {uid: rule["noDataState"] for uid, rule in rules.items()} == {
        "bw-margin": "OK",
        "bw-outcome": "OK",
        "bw-no-run": "Alerting",
        "bw-set-aside": "OK",
    }
    evaluator = rules["bw-margin"]["data"][2]["model"]["conditions"][0]["evaluator"]
    assert evaluator == {"type": "lt", "params": [0]}


def test_secrets_come_from_the_environment_only() -> None:
    source = yaml.safe_load(files()[DATA_SOURCE])
    (found,) = source["datasources"]
    assert found["uid"] == "benchwright"
    assert found["secureJsonData"] == {"basicAuthPassword": "$BENCHWRIGHT_INFLUX_PASSWORD"}
    for value in (found["url"], found["basicAuthUser"], found["jsonData"]["dbName"]):
        assert re.fullmatch(r"\$BENCHWRIGHT_INFLUX_[A-Z]+", value)


def test_every_panel_of_a_dashboard_is_in_its_file() -> None:
    for dashboard in DASHBOARDS:
        assert len(dashboard.panels) == len(all_dashboards()[dashboard.uid]["panels"])
        with pytest.raises(ValueError, match="is not in list"):
            dashboard.panel_id("no such panel")


def test_docs_list_every_panel_rule_and_variable() -> None:
    text = (ROOT / "docs" / "grafana.md").read_text()
    for dashboard in DASHBOARDS:
        (row,) = [line for line in text.splitlines() if f"`{dashboard.uid}` |" in line]
        listed = row.rstrip(" |").rpartition("| ")[2].split("; ")
        assert listed == [panel.title for panel in dashboard.panels]
    assert set(re.findall(r"^\| `(bw-[a-z-]+)` \|", text, re.MULTILINE)) == {r["uid"] for r in alert_rules()}
    source = files()[DATA_SOURCE]
    assert set(re.findall(r"^\| `(BENCHWRIGHT_\w+)`", text, re.MULTILINE)) == set(
        re.findall(r"\$(BENCHWRIGHT_\w+)", source)
    )
    assert f"`{MOUNTED_AT}`" in text
    assert f"{MOUNTED_AT}:ro" in text
    assert f"SHARD DURATION {SHARDS}" in text
