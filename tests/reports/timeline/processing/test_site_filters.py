# SPDX-License-Identifier: Apache-2.0
"""Filters of a site: an error in their code is named by their file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports.timeline.processing.graph_sample import SITE, processed

SMALL = """\
folder = "site"

[steps]
events = {filter = "run", timeline = "*/attempt-9"}
length = {filter = "values", inputs = "events", column = "latency_ns"}
doubled = {filter = "times", inputs = "length", factor = 2}
list = {filter = "csv", inputs = "doubled"}
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return replace", "raise KeyError('x')\n    return replace", "ours.py:12: KeyError: 'x'"),
        ("return replace", "return 1 +\n    replace", "ours.py:12: SyntaxError: invalid syntax"),
        ("class Factor:", "raise SystemExit(0)\nclass Factor:", "ours.py:7: "),
        ("value: int", "value: int = nothing", "ours.py:8: NameError: name 'nothing' is not defined"),
        (
            "factor: int",
            "factor: list",
            "ours.py:10: TypeError: filter times: factor: must be",
        ),
        ('"times"', '"match"', "ours.py: filter 'match': there is one of this name already"),
        ("return replace", "return 7 or replace", "ours.py: TypeError: filter times: gave int, not Values"),
    ],
)
def test_an_error_in_the_code_of_a_site_is_named_with_file_and_line(
    run: Path, old: str, new: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert SITE.count(old) == 1
    (run.parents[1] / "site" / "ours.py").write_text(SITE.replace(old, new))
    (run.parents[1] / "late.toml").write_text(SMALL)
    assert processed(run) == 2
    assert says in capsys.readouterr().err
    assert sorted(path.name for path in (run.parents[1] / "site").iterdir()) == ["ours.py"]
