# SPDX-License-Identifier: Apache-2.0
"""The files that Grafana reads: dashboards, data source, alert rules; written, or compared."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dashboards.grafana import alerts
from dashboards.grafana.model import SOURCE, JsonObject
from dashboards.grafana.overview import OVERVIEW
from dashboards.grafana.run_detail import RUN_DETAIL
from dashboards.grafana.subjects import INSTRUMENT, SUBJECTS
from hw.errors import ConfigError

OUTPUT = Path(__file__).resolve().parents[2] / "results" / "grafana"
JSON_FOLDER = "json"
MOUNTED_AT = "/var/lib/grafana/benchwright"
"""Where the dashboards' provider looks for the folder of JSON files."""
DASHBOARDS = (OVERVIEW, *SUBJECTS, RUN_DETAIL, INSTRUMENT)
URL, DATABASE = "BENCHWRIGHT_INFLUX_URL", "BENCHWRIGHT_INFLUX_DATABASE"
USER, PASSWORD = "BENCHWRIGHT_INFLUX_USER", "BENCHWRIGHT_INFLUX_PASSWORD"


def files(no_run_days: int = alerts.NO_RUN_DAYS) -> dict[str, str]:
    """Return the text of each file by its place.

    Args:
        no_run_days: After so many days without a run the alert on missing runs fires.
    """
    written = {
        f"{JSON_FOLDER}/{d.uid}.json": json.dumps(d.json(), indent=1, ensure_ascii=False) for d in DASHBOARDS
    }
    for place, content in (
        ("datasources", data_source()),
        ("dashboards", provider()),
        ("alerting", alerts.provisioning(no_run_days)),
    ):
        written[f"provisioning/{place}/benchwright.yaml"] = _HEAD + yaml.dump(
            content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
        )
    return {name: text.rstrip("\n") + "\n" for name, text in written.items()}


def data_source() -> JsonObject:
    """Return the data source; where it is and who asks is told by variables of Grafana's environment."""
    source = {
        "name": "Benchwright",
        "uid": SOURCE["uid"],
        "type": SOURCE["type"],
        "access": "proxy",
        "orgId": 1,
        "url": f"${URL}",
        "basicAuth": True,
        "basicAuthUser": f"${USER}",
        "jsonData": {"version": "InfluxQL", "dbName": f"${DATABASE}", "httpMode": "GET"},
        "secureJsonData": {"basicAuthPassword": f"${PASSWORD}"},
        "editable": False,
    }
    return {"apiVersion": 1, "datasources": [source]}


def provider() -> JsonObject:
    """Return the provider of the dashboards."""
    found = {
        "name": "benchwright",
        "orgId": 1,
        "folder": alerts.FOLDER,
        "type": "file",
        "disableDeletion": False,
        "allowUiUpdates": False,
        "updateIntervalSeconds": 60,
        "options": {"path": MOUNTED_AT},
    }
    return {"apiVersion": 1, "providers": [found]}


def write(folder: Path, written: dict[str, str]) -> None:
    """Write the files into a folder.

    Raises:
        ConfigError: The folder cannot be written.
    """
    for name, text in written.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error


def differences(folder: Path, written: dict[str, str]) -> list[str]:
    """Return what a folder has otherwise: files that are missing, different, or too many."""
    there = {
        path.relative_to(folder).as_posix(): path
        for part in (JSON_FOLDER, "provisioning")
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }
    found = [f"{name}: missing" for name in written if name not in there]
    found += [f"{name}: not one of these files" for name in there if name not in written]
    for name, path in there.items():
        if name in written and path.read_text(encoding="utf-8") != written[name]:
            found.append(f"{name}: differs")
    return found


class _Dumper(yaml.SafeDumper):
    """Writes the same object twice instead of a reference to it."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class's
        return True


_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by `python -m dashboards grafana`; see docs/grafana.md.
"""
