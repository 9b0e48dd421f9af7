# SPDX-License-Identifier: Apache-2.0
"""The verdicts on a ring: on what it takes, and by which the bench checks itself.

Source and sink are on one machine, so that its counter alone says what the whole takes: what the timeline
says of the same messages is held against it. A message that was read before it was written, one whose way
nobody knows, or a message that a node held, which shows elsewhere, speaks against the bench.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.control_loops import stretch_verdict
from reports.control_loops.capability import HOLD_ERROR, UNACCOUNTED, WHOLE
from reports.control_loops.ring import Ring
from reports.control_loops.stretch_verdict import WholeCheck, count_measurement
from reports.errors import RecordError
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.timeline.turns import TURNS_MIN, Later, later_by_turns

ORDER_CHECK = "BENCH-RING-ORDER"
OUTSIDE_CHECK, U_CHECK = "BENCH-RING-BOUND", "BENCH-RING-U"
ACCOUNT_CHECK = "BENCH-RING-ACCOUNT"
HOLD_CHECK = "BENCH-RING-HOLD"
ORDER_LIMIT = Limit(0, None, "nothing is read before it was written")
OUTSIDE_LIMIT = Limit(0, None, "one counter has measured the same messages")
U_LIMIT = Limit(5, None, "U is made for 95 % of the messages")
ACCOUNT_LIMIT = Limit(0, None, "each message has a way that all programs say alike")
HOLD_SHARE = 2
"""How long a node held messages has to show within one part in so many: there it is told from none."""


def order_measurement(found: Ring, context: Context) -> Measurement:
    """Judge how many messages were read before they were written, for certain."""
    return stretch_verdict.order_measurement(
        ORDER_CHECK, ORDER_LIMIT, found.causality, sum(map(len, found.hops)), context
    )


def account_measurement(found: Ring, context: Context) -> Measurement:
    """Judge how many messages went a way that answers and events do not say alike."""
    n = sum(each.read for each in found.answers)
    return count_measurement(ACCOUNT_CHECK, UNACCOUNTED, ACCOUNT_LIMIT, found.unaccounted, n, "", context)


def whole_measurements(found: Ring, context: Context) -> tuple[Measurement, Measurement]:
    """Judge the whole by the timeline against the same by one counter: outside the bounds, and beyond U."""
    whole = found.whole
    bound_ns = whole.sent.bound_ns + whole.received.bound_ns
    check = WholeCheck(OUTSIDE_CHECK, OUTSIDE_LIMIT, U_CHECK, U_LIMIT)
    return check.measurements(whole.time_ns, found.whole_own_ns, bound_ns, whole.u_ns, context)


@dataclass(frozen=True, slots=True)
class FoundHold:
    """What a node's hold of messages came to on one stretch.

    Attributes:
        stretch: Its name.
        put_ns: What it has to come to: the hold in the node's own stretch and in the whole, else 0.
        later: By how much the turns with it took longer.
    """

    stretch: str
    put_ns: int
    later: Later

    @property
    def error_ns(self) -> int:
        """Return by how much it is off."""
        return self.later.found_ns - self.put_ns


def found_hold(found: Ring) -> list[FoundHold]:
    """Return what a node's hold came to on each stretch; raises RecordError: no node held, or too short."""
    hold = found.facts.hold
    if hold is None:
        raise RecordError("ring.json: no node has held")
    own = WHOLE, f"node {hold.node}"
    put_ns = found.answers[hold.node].held_ns
    if put_ns is None:
        raise RecordError(f"{found.facts.ends[hold.node].answer}: held no message")
    return [
        FoundHold(
            each.name,
            put_ns if each.name in own else 0,
            later_by_turns(each.name, each.number, each.time_ns, hold.turn, found.facts.count),
        )
        for each in found.stretches
    ]


def hold_measurement(found: Sequence[FoundHold], context: Context) -> Measurement:
    """Judge by how much a node's hold is off in its own stretch and the whole, and shows elsewhere.

    Args:
        found: Of one ring, on each stretch.
        context: Whose subject is the node's stretch.
    """
    worst = max(found, key=lambda each: abs(each.error_ns) + 2 * each.later.standard_ns)
    allowed_ns = max(each.put_ns for each in found) // HOLD_SHARE
    limit = Limit(allowed_ns, -allowed_ns, "half of the hold: it is told from none")
    uncertainty = Uncertainty.from_parts([UncertaintyPart("turns", "standard", worst.later.standard_ns)])
    n = worst.later.turns
    judged = judge(
        worst.error_ns, limit, uncertainty, n=n, n_required=TURNS_MIN, statistic="median", unit="ns"
    )
    if judged.outcome != "pass":
        judged = Verdict(judged.outcome, judged.margin, f"{worst.stretch}: {judged.reason}")
    sample = Sample(HOLD_ERROR, "median", worst.error_ns, n, TURNS_MIN)
    return build_record(HOLD_CHECK, sample, limit, uncertainty, judged, context)
