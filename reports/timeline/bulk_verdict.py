# SPDX-License-Identifier: Apache-2.0
"""The verdicts on bulk data: by how much user and kernel differ, and segments that nobody has read."""

from __future__ import annotations

from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Measurement, Uncertainty
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.timeline.bulk import Bulk
from reports.timeline.capability import BULK_DIFFERENCE, BULK_UNMATCHED

LENGTH_FIELD_BYTES = 1 << 16
"""The payload of a segment is given modulo that: `data_len` of tcp_probe has 16 bits."""


def bulk_measurement(found: Bulk, requirement: Requirement, context: Context) -> Measurement:
    """Judge a requirement on bulk data and return the record. Whole numbers are counted: U is 0.

    Args:
        found: What points and kernels tell.
        requirement: On BULK_DIFFERENCE, in bytes to either side, or on BULK_UNMATCHED, in segments.
        context: Of which run, test and subject.
    """
    nothing = Uncertainty.from_parts([])
    n = 0 if found.segments is None else found.segments.time_ns.size
    value = None
    if n:
        value = (
            abs(found.difference_bytes or 0) if requirement.quantity == BULK_DIFFERENCE else found.unmatched
        )
    judged = judge(
        value, requirement.limit, nothing, n=n, n_required=requirement.samples,
        statistic=requirement.statistic, unit=requirement.unit,
    )  # fmt: skip
    if judged.outcome == "unset":
        judged = Verdict(
            "unset", judged.margin, found.facts.refused or "the kernel saw no segment with payload"
        )
    elif judged.outcome in ("pass", "fail") and (why := undecided(found, judged)):
        judged = Verdict("inconclusive", judged.margin, why)
    elif judged.outcome == "fail":
        judged = Verdict("fail", judged.margin, _words(found, requirement.quantity))
    sample = Sample(requirement.quantity, requirement.statistic, value, n, requirement.samples)
    return build_record(requirement.id, sample, requirement.limit, nothing, judged, context)


def undecided(found: Bulk, judged: Verdict) -> str:
    """Return why there is no verdict; empty: there is one.

    A segment that was sent again may have come twice: the kernel does not say where in the stream it lies.
    It explains that the kernel counts more than the user, and nothing else. That it counts less by whole
    multiples of 65536 is explained by segments that it has merged beyond what tcp_probe's field can hold.
    """
    if found.why:
        return found.why
    more = -(found.difference_bytes or 0)
    if judged.outcome == "fail" and more < 0 and more % LENGTH_FIELD_BYTES == 0:
        return (
            f"the kernel counts {-more} bytes less than the user, {-more // LENGTH_FIELD_BYTES} times 65536:"
            " it has merged segments to more than its field of 16 bits holds; send more slowly"
        )
    if judged.outcome == "fail" and found.retransmissions and more >= 0:
        return (
            f"{found.retransmissions} segments were sent again, and the kernel counts {more} bytes more than"
            " the user: what came twice is not told from what should not be there"
        )
    return ""


def _words(found: Bulk, quantity: str) -> str:
    if quantity == BULK_UNMATCHED:
        of = found.segments.time_ns.size if found.segments is not None else 0
        return f"{found.unmatched} of {of} segments were read by no call, or before they came"
    kernel = found.segments.bytes if found.segments is not None else 0
    return f"the user has read {found.read.bytes} bytes, the kernel counts {kernel} of payload"


BULK_QUANTITIES = (BULK_DIFFERENCE, BULK_UNMATCHED)
