# SPDX-License-Identifier: Apache-2.0
"""The verdict on wake-ups: maximum and p99.99 of the worst CPU.

A value over limit + U is a fail where the machine's pauses leave more wake-ups over it than the statistic may
have there: none of a maximum, of the p99.99 one of ten thousand. Where they leave no more, nobody knows what
the target itself would have done: inconclusive. A pause never makes a pass. Where nobody watched whether the
emulator of a guest ran it, late wake-ups leave it without a verdict. So do cycles so few that the p99.99 has
no upper bound: of a thousand the largest stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Measurement, Uncertainty, UncertaintyPart
from reports.record.sampling import quantile_ranks
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.rt_baseline.capability import MAX, QUANTILE, WAKEUP_LATENCY
from reports.rt_baseline.cyclictest import CpuWakeups
from reports.rt_baseline.evidence import Wakeups
from reports.rt_baseline.excuse import LateWakeups, late_wakeups

RESOLUTION_NS = 1000
BOUNDED_FROM = 36_887
"""Cycles from which on the p99.99 has an upper bound with 95 %: 0.9999^n is 2.5 % there."""


@dataclass(frozen=True, slots=True)
class WakeupValue:
    """A statistic of one CPU, in ns.

    Attributes:
        rests_on: How many wake-ups are above it.
        upper_ns: Upper end of its 95 % interval; of a maximum the value itself; None: there is none.
    """

    cpu: int
    value_ns: int
    rests_on: int
    upper_ns: int | None


def value_of(cpu: CpuWakeups, statistic: str) -> WakeupValue:
    """Return a statistic of a CPU."""
    if statistic == MAX:
        return WakeupValue(cpu.cpu, cpu.max_us * 1000, 0, cpu.max_us * 1000)
    ranks = quantile_ranks(QUANTILE, cpu.cycles)
    upper_ns = None if ranks.upper is None else cpu.at_rank_us(ranks.upper) * 1000
    return WakeupValue(cpu.cpu, cpu.at_rank_us(ranks.rank) * 1000, cpu.cycles - ranks.rank, upper_ns)


def worst_value(found: Wakeups, statistic: str) -> WakeupValue:
    """Return a statistic of the CPU where it is the largest; of several the first."""
    return max((value_of(each, statistic) for each in found.run.cpus), key=lambda each: each.value_ns)


def value_uncertainty(found: Wakeups, statistic: str) -> Uncertainty:
    """Return U of a statistic, in ns: of a quantile with the largest upper bound of any CPU."""
    parts = [UncertaintyPart("whole_us", "bound", RESOLUTION_NS)]
    if statistic != MAX:
        values = [value_of(each, statistic) for each in found.run.cpus]
        value_ns = max(each.value_ns for each in values)
        known = [each.upper_ns for each in values if each.upper_ns is not None]
        parts.append(UncertaintyPart("order_statistic", "bound", max([value_ns, *known]) - value_ns))
    return Uncertainty.from_parts(parts)


def wakeup_measurement(found: Wakeups, requirement: Requirement, context: Context) -> Measurement:
    """Judge wake-ups by a requirement on WAKEUP_LATENCY, and return the record, in ns."""
    statistic, limit = requirement.statistic, requirement.limit
    worst, uncertainty = worst_value(found, statistic), value_uncertainty(found, statistic)
    n = min(each.cycles for each in found.run.cpus)
    sample = Sample(WAKEUP_LATENCY, statistic, worst.value_ns, n, requirement.samples)
    judged = judge(
        worst.value_ns,
        limit,
        uncertainty,
        n=n,
        n_required=requirement.samples,
        statistic=statistic,
        unit=sample.unit,
    )
    if judged.outcome in ("pass", "fail") and statistic != MAX and n < BOUNDED_FROM:
        why = f"{n} cycles a CPU give the quantile no upper bound with 95 %, {BOUNDED_FROM} are needed"
        judged = Verdict("inconclusive", judged.margin, why)
    elif judged.outcome == "fail":
        judged = _with_pauses(found, statistic, int(limit.upper or 0) + int(uncertainty.expanded), judged)
    return build_record(requirement.id, sample, limit, uncertainty, judged, context)


def _with_pauses(found: Wakeups, statistic: str, above_ns: int, judged: Verdict) -> Verdict:
    """Return a fail as it is, or what is left of it where pauses explain the wake-ups over limit + U."""
    if found.witness is not None and found.facts.machine != "own" and found.witness.windows_dropped:
        why = f"{judged.reason}; the witness had no room for {found.witness.windows_dropped} pauses"
        return Verdict("inconclusive", judged.margin, why)
    late = [(each, late_wakeups(found, each, above_ns)) for each in found.run.cpus]
    own = [(each.cpu, one) for each, one in late if one.unexplained > value_of(each, statistic).rests_on]
    if own:
        cpu, one = max(own, key=lambda each: each[1].unexplained)
        if found.facts.machine == "guest" and (found.emulator is None or found.witness is None):
            why = f"{judged.reason}; whether its emulator ran it when it was late nobody watched"
            return Verdict("inconclusive", judged.margin, why)
        why = f"{judged.reason}; {_counted(one)} of CPU {cpu} have no pause of the machine as long"
        return Verdict("fail", judged.margin, why if one.over > one.unexplained else judged.reason)
    over = sum(one.over for _, one in late)
    is_known = all(one.unknown <= value_of(each, statistic).rests_on for each, one in late)
    who = (
        "pauses of the machine"
        if is_known
        else "pauses, of which nobody knows whether they are the machine's,"
    )
    why = f"{judged.reason}; {who} may explain it, each one of {over} late wake-ups"
    return Verdict("inconclusive", judged.margin, why)


def _counted(late: LateWakeups) -> str:
    return f"{late.unexplained} of {late.over} wake-ups over it"
