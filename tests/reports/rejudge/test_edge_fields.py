# SPDX-License-Identifier: Apache-2.0
"""Changes of a run of timed edges are named where other evidence holds them."""

from __future__ import annotations

from pathlib import Path

from reports.rejudge.run import rejudge
from tests.reports.rejudge.edge_run import make_edge_run
from tests.reports.rejudge.field_campaign import unnamed_changes


def test_changes_of_trials_and_witnesses_are_named_where_other_evidence_holds_them(tmp_path: Path) -> None:
    run = make_edge_run(tmp_path / "results").path
    assert rejudge(run).problems == ()
    unnamed, count = unnamed_changes(run, tmp_path / "work", "timed_edges")
    assert len(unnamed) <= 0.1 * count, unnamed
    assert count > 150
