# SPDX-License-Identifier: Apache-2.0
"""Timed edges by method, beside Table II of the paper on intra-process clock synchronisation.

A peak to peak grows with the number of edges: it stands beside another only at equal numbers. The standard
deviation does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.paper_table import table_rows
from reports.record.measurement import Number
from reports.timed_edges.capability import METHODS
from reports.timed_edges.trial import OSCILLOSCOPE, BudgetPart, EdgeTrial
from reports.timed_edges.verdict import uncertainty_of

TABLE = Path(__file__).with_name("intra-process-table2.csv")

COUNT_MIN = 100
_COLUMNS = ["method", "label", "seen_by", "n", "peak_to_peak_ns", "stddev_ns"]


@dataclass(frozen=True, slots=True)
class PaperEdge:
    """One line of the paper's Table II; `label` is the paper's own, `seen_by` how it was measured."""

    method: str
    label: str
    seen_by: str
    n: int
    peak_to_peak_ns: float
    stddev_ns: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times larger one method's standard deviation is than that of the best.

    Attributes:
        lower: The least that U of both allows.
        upper: The most; None: there is none.
        paper: The paper's ratio.
    """

    method: str
    value: float
    lower: float
    upper: float | None
    paper: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """One part of an uncertainty, and what it comes to in U: shares of all parts make 1."""

    name: str
    kind: str
    value_ns: Number
    share: float


def paper_edges(path: Path = TABLE) -> dict[str, PaperEdge]:
    """Return the paper's rows by method.

    Raises:
        RecordError: The file is wrong; the message says file, line and field.
    """
    return {row.method: row for row in (_row(*found) for found in table_rows(path, _COLUMNS))}


def _row(where: str, fields: list[str]) -> PaperEdge:
    try:
        row = PaperEdge(fields[0], fields[1], fields[2], int(fields[3]), float(fields[4]), float(fields[5]))
    except ValueError as error:
        raise RecordError(f"{where}: {error}; need a whole n, peak_to_peak_ns and stddev_ns in ns") from error
    if row.method not in METHODS:
        raise RecordError(f"{where}: method: {row.method!r} is not one of {', '.join(METHODS)}")
    if not (row.n >= 1 and 0 < row.stddev_ns <= row.peak_to_peak_ns < math.inf):
        raise RecordError(f"{where}: need n >= 1 and 0 < stddev_ns <= peak_to_peak_ns")
    return row


def shares_of(parts: Sequence[BudgetPart] | None) -> tuple[Share, ...]:
    """Return what each part comes to in U, the largest first: of a standard part its share of 2 * root."""
    found = parts or ()
    expanded = float(uncertainty_of(found).expanded)
    root = math.sqrt(math.fsum(part.value_ns**2 for part in found if part.kind == "standard"))
    shares = [
        Share(
            part.name,
            part.kind,
            part.value_ns,
            (part.value_ns if part.kind == "bound" else 2 * part.value_ns**2 / root if root else 0.0)
            / expanded
            if expanded
            else 0.0,
        )
        for part in found
    ]
    return tuple(sorted(shares, key=lambda share: -share.share))


def common_count(trials: Sequence[EdgeTrial]) -> int:
    """Return the largest number of edges of which every trial kept the peak to peak; 0: none.

    Trials of fewer than COUNT_MIN edges are left out: they ended early.
    """
    counted = [trial.delays for trial in trials if trial.delays is not None]
    kept = [set(delays.peak_to_peak_ns) for delays in counted if delays.count >= COUNT_MIN]
    common = [text for text in kept[0] if all(text in others for others in kept)] if kept else []
    return max((int(text) for text in common), default=0)


def best_of(trials: Sequence[EdgeTrial]) -> EdgeTrial | None:
    """Return that whose edges scatter least, of those that an oscilloscope saw; None: there is none."""
    seen = [trial for trial in trials if trial.delays is not None and trial.seen_by == OSCILLOSCOPE]
    return min(seen, key=_deviation_ns, default=None)


def _deviation_ns(trial: EdgeTrial) -> float:
    return math.inf if trial.delays is None else float(trial.delays.deviation_ns)


def ratios_to(best: EdgeTrial, trials: Sequence[EdgeTrial]) -> tuple[Ratio, ...]:
    """Return how many times more the other methods' edges scatter, as an oscilloscope saw them."""
    paper = paper_edges()
    own_ns, own_u_ns = _deviation_ns(best), _expanded_ns(best)
    found: list[Ratio] = []
    for trial in trials:
        if trial.delays is None or trial.seen_by != OSCILLOSCOPE or trial.method == best.method or not own_ns:
            continue
        other_ns, u_ns = _deviation_ns(trial), _expanded_ns(trial)
        known = best.method in paper and trial.method in paper
        found.append(
            Ratio(
                method=trial.method,
                value=other_ns / own_ns,
                lower=max(0.0, other_ns - u_ns) / (own_ns + own_u_ns),
                upper=(other_ns + u_ns) / (own_ns - own_u_ns) if own_u_ns < own_ns else None,
                paper=paper[trial.method].stddev_ns / paper[best.method].stddev_ns if known else None,
            )
        )
    return tuple(sorted(found, key=lambda ratio: ratio.value))


def _expanded_ns(trial: EdgeTrial) -> float:
    return float(uncertainty_of(trial.budgets.deviation).expanded)
