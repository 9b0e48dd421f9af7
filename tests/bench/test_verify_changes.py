# SPDX-License-Identifier: Apache-2.0
"""The changes of `make bench-verify` are generated: none of schema, manifest and files is left out."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from bench.verdicts.bench_verify import (
    SCHEMA,
    alter,
    change_file,
    changes_of,
    drawn,
    form_of,
    other,
    schema_ways,
)
from reports.run.files import write_file_list
from tests.reports.sample_run import make_run


def test_each_key_each_record_and_each_file_has_its_changes(tmp_path: Path) -> None:
    run = make_run(tmp_path).path
    changes = list(changes_of(run, random.Random(1)))
    places = {(change.kind, change.place.partition(": ")[2]) for change in changes}
    keys = {".".join(map(str, way)) for way in schema_ways(json.loads(SCHEMA.read_text()))}
    changed = {place for kind, place in places if kind == "record"}
    lacking = {"subject.method", "subject.axes", "conditions.numbers"}  # records of streams have none
    assert {key for key in keys if "*" not in key and key not in changed} == lacking
    assert ("manifest", "counts.pass removed") in places
    assert sum(change.kind == "record removed" for change in changes) == 48
    assert ("file removed", "evidence/daq_replay/attempt-1/recv.ndjson") in {
        (change.kind, change.place) for change in changes
    }
    few = Counter(change.kind for change in drawn(changes, 2, random.Random(1)))
    assert few == {kind: min(2, count) for kind, count in Counter(each.kind for each in changes).items()}


def test_a_value_becomes_another_of_its_type_or_goes() -> None:
    document = {"counts": [3, False, None, "pass"]}
    for number in range(4):
        alter(document, ("counts", number), other)
    assert document == {"counts": [4, True, 5, "fail"]}
    alter(document, ("counts",), None)
    assert document == {}


@pytest.mark.parametrize(
    "text", ['{"a":1,"b":[2.5,"ä"]}', '{\n "a": 1,\n "b": [\n  "\\u00e4"\n ]\n}\n', '{"a": 1, "b": null}\n']
)
def test_a_changed_file_keeps_its_form(tmp_path: Path, text: str) -> None:
    """Only the value that was changed makes it longer, not how it was written."""
    document = json.loads(text)
    assert form_of(text, document)(document) == text
    file = tmp_path / "answer.json"
    file.write_text('{"a":31}')
    change_file(file, random.Random(1))
    assert file.read_text() == '{"a":41}'


def test_each_size_of_the_list_has_its_change(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    write_file_list(run)
    changes = list(changes_of(run.path, random.Random(1)))
    sizes = run.manifest.file_sizes_bytes or {}
    assert sum(change.kind == "listed size" for change in changes) == len(sizes) > 1
    assert "run.json: file_sizes_bytes removed" in {change.place for change in changes}
    next(change for change in changes if change.kind == "listed size").make(run.path)
    assert json.loads((run.path / "run.json").read_text())["file_sizes_bytes"] != sizes
