# SPDX-License-Identifier: Apache-2.0
"""The tables of fields are read, and a change of a field keeps the rest of its file."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench.verdicts.bench_verify_fields import (
    FOLDERS,
    YEAR_NS,
    change_document,
    changes_of_fields,
    load_fields,
    ways_of_key,
)
from tests.reports.software_latency.test_evidence import write_folder


def test_each_table_is_of_a_capability_whose_evidence_is_known() -> None:
    fields = load_fields()
    assert {field.capability for field in fields} == set(FOLDERS)
    assert len({(field.capability, field.file, field.line, field.key) for field in fields}) == len(fields)


def test_a_star_stands_for_each_of_a_list() -> None:
    document = {"a": [{"b": 1, "c": 2}, {"b": 3}], "b": 4}
    assert ways_of_key(document, "a.*.b") == [("a", 0, "b"), ("a", 1, "b")]


def test_only_the_value_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "answer.ndjson"
    file.write_text('{"type":"ready"}\n{"type":"result","tai_ns":5,"n":[1]}\n')
    change_document(file, ("tai_ns",), lambda value: value + YEAR_NS)
    assert file.read_text() == f'{{"type":"ready"}}\n{{"type":"result","tai_ns":{5 + YEAR_NS},"n":[1]}}\n'


def test_each_field_of_a_run_has_its_changes(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / "software_latency" / "linux-rt"
    folder.mkdir(parents=True)
    write_folder(folder)
    changes = [
        each for each in changes_of_fields(tmp_path, random.Random(1)) if each.field.file.endswith(".json")
    ]
    taken = [each for each in changes if each.field.key == "exchanges.*.hardware_ns"]
    assert [each.what.rpartition(" ")[2] for each in taken] == ["removed", "halved", "doubled", "negated"]
    before = json.loads((folder / "round_trips.json").read_text())
    next(each for each in changes if each.field.key == "target").make(tmp_path)
    assert "target" in before
    assert "target" not in json.loads((folder / "round_trips.json").read_text())
