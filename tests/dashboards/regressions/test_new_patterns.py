# SPDX-License-Identifier: Apache-2.0
"""A pattern that the run before did not have is advised; where that run was too short, nothing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboards.line_protocol import Field
from dashboards.pattern_points import PATTERN, SeenPattern, patterns_in
from dashboards.points import run_points
from dashboards.regressions.command import summary
from dashboards.regressions.new_patterns import could_be_seen
from dashboards.regressions.run_advice import advise_run
from dashboards.store import Store
from reports.history.advice import ADVICE, NewPattern, find_advice, parse_advice
from reports.page.render import render_pages
from reports.patterns.kept import PATTERNS, SearchedSeries
from reports.run.folder import RunFolder
from tests.reports.pages import words_of
from tests.reports.patterns.sample_patterns import ramp_series, write_sample_patterns

PLACE = "control_loops/linux-rt"


def _run(
    store: Store, results: Path, *series: SearchedSeries, kernel: str = "6.1", branch: str = "main"
) -> RunFolder:
    """Store a run with these series, and return its folder."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    run.update(host={"kernel": kernel})
    if series:
        write_sample_patterns(run.path, *series)
    run.close()
    store.add_run(run_points(run, branch))
    return run


def _advised(store: Store, run: RunFolder) -> tuple[tuple[NewPattern, ...] | None, int | None]:
    advice = advise_run(store, run.run_id, run.path)
    assert parse_advice(advice.to_bytes()) == advice
    return advice.new_patterns, advice.patterns_untold


def test_a_pattern_that_the_run_before_did_not_have_is_new(store: Store, tmp_path: Path) -> None:
    noise, ramps = ramp_series(PLACE, "whole", None), ramp_series(PLACE, "whole")
    before = _run(store, tmp_path, noise)
    now = _run(store, tmp_path, ramps)
    assert _advised(store, before) == ((), 0)
    new = NewPattern(f"{PLACE}: whole", "ramp, period 5 s", before.run_id)
    assert _advised(store, now) == ((new,), 0)
    # The next one has it, too: it is not new any more; one of another period is.
    assert _advised(store, _run(store, tmp_path, ramps)) == ((), 0)
    found, _ = _advised(store, _run(store, tmp_path, ramp_series(PLACE, "whole", 8.0)))
    assert [each.text for each in found or ()] == ["ramp, period 8 s"]


def test_a_run_before_that_was_too_short_claims_nothing(store: Store, tmp_path: Path) -> None:
    """It took 24 s, so periods up to 6 s could be seen: 5 s would be new, 9 s may have been there."""
    _run(store, tmp_path, ramp_series(PLACE, "whole", None, count=240))
    assert _advised(store, _run(store, tmp_path, ramp_series(PLACE, "whole", 9.0))) == ((), 1)
    _run(store, tmp_path, ramp_series(PLACE, "whole", None, count=240))
    found, untold = _advised(store, _run(store, tmp_path, ramp_series(PLACE, "whole", 5.0)))
    assert [each.text for each in found or ()] == ["ramp, period 5 s"]
    assert untold == 0


def test_only_what_is_alike_is_compared(store: Store, tmp_path: Path) -> None:
    noise, ramps = ramp_series(PLACE, "whole", None), ramp_series(PLACE, "whole")
    others = ramp_series(PLACE, "hop 1", None), ramp_series("control_loops/windows", "whole", None)
    _run(store, tmp_path, *others)
    assert _advised(store, _run(store, tmp_path, ramps)) == ((), 0)
    _run(store, tmp_path, noise, kernel="5.10")  # the bench is another one
    assert _advised(store, _run(store, tmp_path, ramps)) == ((), 0)
    _run(store, tmp_path, noise)
    _run(store, tmp_path)  # not searched: the one before it is
    found, _ = _advised(store, _run(store, tmp_path, ramps))
    assert [each.text for each in found or ()] == ["ramp, period 5 s"]


def test_a_request_is_compared_with_main(store: Store, tmp_path: Path) -> None:
    before = _run(store, tmp_path, ramp_series(PLACE, "whole", None))
    _run(store, tmp_path, ramp_series(PLACE, "whole"), branch="pr")
    found, _ = _advised(store, _run(store, tmp_path, ramp_series(PLACE, "whole"), branch="pr"))
    assert [each.run_before for each in found or ()] == [before.run_id]


def test_the_page_says_it_beside_the_changes(store: Store, tmp_path: Path) -> None:
    before = _run(store, tmp_path, ramp_series(PLACE, "whole", None))
    now = _run(store, tmp_path, ramp_series(PLACE, "whole"))
    advice = advise_run(store, now.run_id, now.path)
    assert summary(advice).endswith("; 1 new pattern")
    added = {ADVICE: advice.to_bytes()}
    words = words_of(next(iter(render_pages(now.path, added).values())))
    assert f"New pattern: ramp, period 5 s , in {PLACE}: whole; run {before.run_id}" in words
    older = find_advice(now.path, {ADVICE: _without_patterns(advice.to_bytes())}, now.run_id)
    assert older is not None
    assert older.new_patterns is None


def _without_patterns(data: bytes) -> bytes:
    found = json.loads(data)
    del found["new_patterns"], found["patterns_untold"]
    return json.dumps(found).encode()


def test_a_series_is_a_point_and_its_fields_keep_their_types(store: Store, tmp_path: Path) -> None:
    run = _run(store, tmp_path, ramp_series(PLACE, "whole"), ramp_series(PLACE, "hop 1", None))
    points = [each for each in run_points(run, "main").points if each.measurement == PATTERN]
    whole, hop = points
    assert whole.tags == {
        "bench": "virtual",
        "target": "linux-rt",
        "place": PLACE,
        "series": "whole",
        "profile": "ci",
        "branch": "main",
    }
    types: dict[str, type[Field]] = {name: type(value) for name, value in whole.fields.items()}
    assert types == {name: type(value) for name, value in hop.fields.items()}
    assert types["length_s"] is float
    [ramp] = patterns_in(str(whole.fields["patterns"]))
    assert ramp.kind == "ramp"
    assert patterns_in(str(hop.fields["patterns"])) == []
    (run.path / PATTERNS).write_text("{}")
    assert not any(each.measurement == PATTERN for each in run_points(run, "main").points)


@pytest.mark.parametrize(
    ("pattern", "length_s", "could"),
    [
        (SeenPattern("ramp", "", period_s=30), 121, True),
        (SeenPattern("ramp", "", period_s=30), 119, False),
        (SeenPattern("grid", "", width_ms=5), 1, True),
        (SeenPattern("warm_up", "", end_s=30), 59, False),
        (SeenPattern("warm_up", "", end_s=30), 61, True),
        (SeenPattern("level_change", "", end_s=30), 29, False),
    ],
)
def test_what_a_series_could_have_shown(pattern: SeenPattern, length_s: float, could: bool) -> None:
    assert could_be_seen(pattern, length_s) is could
