# SPDX-License-Identifier: Apache-2.0
"""The dashboards have the types of `@grafana/schema`, and wrong ones do not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.dashboards.grafana.queries import all_dashboards
from tests.dashboards.grafana.schema_check import HERE, type_errors

pytestmark = pytest.mark.slow  # npm brings the types once: a registry may not answer

Json = dict[str, Any]


def panel(dashboard: Json, kind: str) -> Json:
    return next(one for one in dashboard["panels"] if one["type"] == kind)


def defaults(dashboard: Json, kind: str) -> Json:
    found: Json = panel(dashboard, kind)["fieldConfig"]["defaults"]
    return found


def an_override(dashboard: Json, name: str, value: object) -> None:
    panel(dashboard, "table")["fieldConfig"]["overrides"][0]["properties"] = [{"id": name, "value": value}]


WRONG: dict[str, Callable[[Json], object]] = {
    "version-as-text": lambda d: d.update(schemaVersion="39"),
    "unknown-key": lambda d: d.update(colour="red"),
    "wrong-draw-style": lambda d: defaults(d, "timeseries")["custom"].update(drawStyle="lines"),
    "unknown-option": lambda d: panel(d, "stat")["options"].update(footer=True),
    "missing-option": lambda d: panel(d, "stat")["options"].pop("colorMode"),
    "unknown-kind": lambda d: panel(d, "table").update(type="tabel"),
    "option-of-another-kind": lambda d: panel(d, "table")["options"].update(mergeValues=True),
    "field-of-another-kind": lambda d: defaults(d, "table")["custom"].update(lineWidth=1),
    "unknown-override": lambda d: an_override(d, "custom.widht", 3),
    "override-of-wrong-type": lambda d: an_override(d, "custom.width", "3"),
    "unknown-refresh": lambda d: d["templating"]["list"][0].update(refresh=7),
    "threshold-as-text": lambda d: defaults(d, "stat")["thresholds"]["steps"][0].update(value="0"),
    "wrong-mapping": lambda d: defaults(d, "state-timeline")["mappings"][0].update(type="values"),
    "wrong-format": lambda d: panel(d, "stat")["targets"][0].update(resultFormat="tabel"),
    "annotation-without-query": lambda d: d["annotations"]["list"][1]["target"].pop("query"),
    "width-as-text": lambda d: panel(d, "stat")["gridPos"].update(w="4"),
    "legend-elsewhere": lambda d: panel(d, "timeseries")["options"]["legend"].update(placement="left"),
    "link-as-text": lambda d: d["links"][0].update(keepTime="yes"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the errors of the dashboards, and of one made wrong in each of the ways."""
    right = all_dashboards()
    every = {name: json.dumps(dashboard, indent=1) for name, dashboard in right.items()}
    for name, spoil in WRONG.items():
        wrong = copy.deepcopy(right["bw-overview"])
        spoil(wrong)
        every[name] = json.dumps(wrong, indent=1)
    return type_errors(every, tmp_path_factory.mktemp("tsc"))


def test_dashboards_have_grafanas_types(found: dict[str, list[str]]) -> None:
    assert {name: errors for name, errors in found.items() if name not in WRONG and errors} == {}
    assert set(found) - set(WRONG) == set(all_dashboards())


@pytest.mark.parametrize("name", WRONG)
def test_wrong_dashboard_is_found(found: dict[str, list[str]], name: str) -> None:
    assert found[name]


def test_lock_names_no_registry() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text())
    packages: dict[str, Json] = {name: p for name, p in lock["packages"].items() if name}
    assert packages
    assert all("integrity" in package and "resolved" not in package for package in packages.values())
    assert "://" not in json.dumps(lock)
