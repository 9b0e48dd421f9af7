# SPDX-License-Identifier: Apache-2.0
"""The record of one comparison: by how much the second stack of a pair may be worse than the first.

A requirement limits the difference under one condition, and is asked of every pair and type of streams: in
`STACKS="kernel user"` by how much `user` may be slower than `kernel`. U is that of all comparisons together.
An inconclusive comparison has no value.
"""

from __future__ import annotations

import math
from pathlib import Path

from reports.record.context import Context, Sample, build_record
from reports.record.measurement import AxisValue, Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.stacks.capability import (
    LATENCY_DIFFERENCE,
    MESSAGE_TYPE,
    OVER_BUDGET_DIFFERENCE,
    PAIR,
    SHARE,
    UNDER,
)
from reports.stacks.compare import Compared, Comparison, compare
from reports.stacks.evidence import load_stack_turns
from reports.stacks.turn_values import OVER


def load_comparison(folder: Path) -> Comparison:
    """Read a folder of evidence and compare its stacks; raises RecordError: names file and field."""
    kept, turns = load_stack_turns(folder)
    return compare(kept.names, turns, kept.budgets_ns)


def asked(found: Comparison, quantity: str, statistic: str, condition: str) -> list[Compared]:
    """Return the comparisons that a requirement is asked of: every pair and type of streams."""
    own = OVER if quantity == OVER_BUDGET_DIFFERENCE else statistic
    return [each for each in found.compared if (each.statistic, each.condition) == (own, condition)]


def axes_of(compared: Compared) -> tuple[AxisValue, ...]:
    """Return what the subject of a comparison's record is of."""
    return (
        AxisValue(UNDER, compared.condition),
        AxisValue(PAIR, compared.pair),
        AxisValue(MESSAGE_TYPE, compared.stream_type),
    )


def difference_measurement(
    compared: Compared, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Judge a difference and return its record, in ns or percent.

    Lost messages are in the value, as the latest; the record counts none besides.

    Args:
        compared: What was found.
        requirement: Its id.
        limit: Of the second less the first, in the unit of the quantity.
        n_required: Messages of both stacks in rounds that count.
        context: Whose subject has the axes of `axes_of`.
    """
    is_share = compared.statistic == OVER
    quantity, statistic = (
        (OVER_BUDGET_DIFFERENCE, SHARE) if is_share else (LATENCY_DIFFERENCE, compared.statistic)
    )
    if compared.difference is None:
        sample = Sample(quantity, statistic, None, compared.messages, n_required)
        verdict = Verdict("inconclusive", None, compared.doubt)
        return build_record(requirement, sample, limit, Uncertainty.from_parts([]), verdict, context)
    half = compared.expanded / 2
    part = UncertaintyPart("rounds_together", "standard", half if is_share else math.ceil(half))
    uncertainty = Uncertainty.from_parts([part])
    value = compared.difference if is_share else round(compared.difference)
    n = compared.messages
    judged = judge(
        value, limit, uncertainty, n=n, n_required=n_required, statistic=statistic, unit=compared.unit
    )
    sample = Sample(quantity, statistic, value, n, n_required)
    return build_record(requirement, sample, limit, uncertainty, judged, context)
