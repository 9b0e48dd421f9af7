# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with a JSON text is a ValueError, so that readers name their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.errors import RecordError, RunFolderError
from reports.record.json_text import load_json
from reports.run.folder import RunFolder


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, '{"a": "\\ud800"}', '["x\\uDFFF"]', b"\xff\xfe{}", '{"\\ud83d": 1}']
)
def test_what_no_page_can_hold_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        load_json(text)


def test_a_pair_and_plain_text_are_read() -> None:
    assert load_json('{"a": "\\ud83d\\ude00 \\u00b5"}') == {"a": "\U0001f600 \u00b5"}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"requirement": "\\ud800"}'])
def test_records_of_a_run_are_named(tmp_path: Path, text: str) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci", simulated=True)
    (run.path / "measurements.jsonl").write_text(f"{text}\n")
    with pytest.raises((RecordError, RunFolderError), match=r"measurements\.jsonl"):
        RunFolder.open(run.path).records()
