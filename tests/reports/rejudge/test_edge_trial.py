# SPDX-License-Identifier: Apache-2.0
"""A trial of timed edges is read again as it was written, and what contradicts itself in it is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.rejudge.edge_trial import EdgeTrial as Reread
from reports.run.folder import RunFolder
from reports.timed_edges.capability import MAX_ABS, PEAK_TO_PEAK
from reports.timed_edges.trial import CAPTURE, TRIAL, BudgetPart, Budgets, Counts
from resources.timed_edges.software import ART_TICK_NS, PHC_TICK_NS, latched_delays, sampled_budgets
from tests.reports.rejudge.edge_trials import FOLDER, LATCH, folder_of
from tests.reports.sample_edges import add_trial, drawn_trial
from tests.reports.sample_run import summary


def latched(run: RunFolder, tail_ns: float = 0.0, *, has_blocks: bool = True, **changes: Any) -> Reread:
    """Write a trial of latched delays (Listing 1), one in a hundred later; return it as it is read again.

    They wander together; a tool of before tells no blocks, which show that.
    """
    drawn = np.random.default_rng(9).normal(-300, 40, 2000) + 40 * np.sin(np.arange(2000) / 20)
    drawn[::100] += np.linspace(0, tail_ns, 20)
    values = np.rint(drawn).astype(int).tolist()
    answer: dict[str, Any] = {"valid": True, "complete": True, "delay": summary(values)}
    answer["peak_to_peak_ns"] = {"100": max(values[:100]) - min(values[:100])}
    if has_blocks:
        answer["blocks"] = {"size": 2, "means_ns": np.reshape(values, (-1, 2)).mean(axis=1).tolist()}
    delays = latched_delays(answer)
    trial = drawn_trial(np.array(values, float), "latched", "gettime-software", seen_by=CAPTURE)
    counts = Counts(wanted=2000, pairs=2000)
    budgets = sampled_budgets(delays, PHC_TICK_NS)
    add_trial(run, replace(trial, delays=delays, budgets=budgets, counts=counts), answer=answer)
    folder = run.path / FOLDER / "latched"
    document = json.loads((folder / TRIAL).read_text())
    for path, value in changes.items():
        inner = document
        *way, last = path.split("__")
        for step in way:
            inner = inner[step]
        inner[last] = value
    (folder / TRIAL).write_text(json.dumps(document))
    return Reread(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"delays__mean_ns": -301}, "mean_ns of the delays is not that of the software's answer"),
        ({"delays__deviation_ns": 5}, "deviation_ns is 5"),
        ({"delays__kurtosis": 30.0}, "kurtosis is 30.0, that of the buckets"),
        ({"counts__pairs": 1}, "1 pairs, 2000 delays"),
        ({"seen_by": "nobody"}, "seen_by is 'nobody'"),
        ({"budgets__mean": [{"name": "x", "kind": "bound", "value_ns": -1}]}, "x of mean is below 0"),
        ({"budgets__peak_to_peak": []}, "resolution of peak_to_peak is None"),
        ({"budgets__mean": []}, "jitter of mean is None"),
        ({"has_blocks": False}, ""),
        ({"delays__blocks": {"size": 2, "means_ns": [-300.0] * 1000}}, "blocks of the delays is not that"),
        (
            {"has_blocks": False, "delays__blocks": {"size": 200, "means_ns": [-300.0] * 10}},
            "blocks of the delays",
        ),
    ],
)
def test_latched_delays_are_those_of_the_software(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    told = list(latched(folder_of(tmp_path), **changes).discrepancies())
    assert bool(told) == bool(said)
    assert not said or any(said in each for each in told)


def test_latched_delays_that_were_interrupted_are_judged_alike(tmp_path: Path) -> None:
    trial = latched(folder_of(tmp_path), tail_ns=90_000.0)
    parts = trial.parts("standard_deviation")
    assert parts is not None
    assert parts[0][0] == "repeatability"
    assert parts[0][2] > 4 * trial.data["delays"]["deviation_ns"] / (2 * 1999) ** 0.5
    assert list(trial.discrepancies()) == []


def test_delays_that_wander_together_make_the_jitter_of_their_mean(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    jitters_ns: list[float] = []
    for has_blocks in (False, True):
        parts = latched(run, has_blocks=has_blocks).parts("mean")
        assert parts is not None
        jitters_ns += [value for name, _, value in parts if name == "jitter"]
    alone_ns, together_ns = jitters_ns
    assert together_ns > 2 * alone_ns


def test_a_pin_fires_at_ticks_of_the_timer() -> None:
    """Both implementations have the figure by themselves: 38.4 MHz."""
    assert pytest.approx(26.0417, abs=1e-4) == ART_TICK_NS


def test_parts_of_a_budget_are_read_as_they_are_written(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    budgets = Budgets(peak_to_peak=(BudgetPart("noise", "bound", 3),))
    add_trial(run, replace(drawn_trial(np.zeros(9), LATCH), budgets=budgets))
    found = Reread(run.path / FOLDER / LATCH)
    assert found.parts(PEAK_TO_PEAK) == [("noise", "bound", 3)]
    assert found.parts(MAX_ABS) is None


@pytest.mark.parametrize("key", ["software_file", "waveforms_file"])
def test_a_file_that_a_trial_names_has_to_lie_beside_it(tmp_path: Path, key: str) -> None:
    changes: dict[str, Any] = {key: "gone.json"}
    told = list(latched(folder_of(tmp_path), **changes).discrepancies())
    assert f"{key} is 'gone.json', and there is no such file" in told
