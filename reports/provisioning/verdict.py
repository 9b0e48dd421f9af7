# SPDX-License-Identifier: Apache-2.0
"""The verdict on what provisioning leaves different: a count of facts and settings, without uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

from reports.provisioning.capability import QUANTITY, STATISTIC, UNIT
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty
from reports.record.verdict import Verdict, judge

_NAMED = 5
"""Differences that a reason names."""


def difference_measurement(
    differences: Sequence[Sequence[str]], requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Judge the largest number of differences of some repetitions and return the record.

    Args:
        differences: Of each repetition the names of what differs.
        requirement: Its id.
        limit: How many may differ.
        n_required: Repetitions that are asked for.
        context: Of which run, test and subject.
    """
    counts = [len(names) for names in differences]
    value = max(counts, default=None)
    sample = Sample(QUANTITY, STATISTIC, value, len(counts), n_required)
    nothing = Uncertainty.from_parts([])
    verdict = judge(
        value, limit, nothing, n=len(counts), n_required=n_required, statistic=STATISTIC, unit=UNIT
    )
    if verdict.outcome == "fail":
        most = differences[counts.index(max(counts))]
        more = f" and {len(most) - _NAMED} more" if len(most) > _NAMED else ""
        verdict = Verdict("fail", verdict.margin, f"{verdict.reason}: {', '.join(most[:_NAMED])}{more}")
    return build_record(requirement, sample, limit, nothing, verdict, context)
