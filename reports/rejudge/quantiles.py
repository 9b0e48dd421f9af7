# SPDX-License-Identifier: Apache-2.0
"""A quantile of times on a way, and its parts of U: docs/timeline.md."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from reports.rejudge.again import Record

SHARES = {"median": (1, 2), "p99": (99, 100)}
SLACK_NS = 1000
"""Of a line between readings a second apart."""
PPM = 300
"""By which a counter's rate may be off between readings of a clock."""


def quantile(times: Sequence[int], share: tuple[int, int]) -> int:
    """Return the first time that so large a share of all is not above."""
    return sorted(times)[max(1, -(-len(times) * share[0] // share[1])) - 1]


def quantile_problems(
    record: Record, times_ns: Sequence[int], u_ns: float, *, is_own: bool
) -> Generator[str, None, bool]:
    """Hold a record's quantile and its parts of U against the times; return whether it has these parts.

    Args:
        record: Of a quantile in ns.
        times_ns: In the messages' order, one at least.
        u_ns: What the exchanges of both ends leave.
        is_own: One counter has measured both ends.
    """
    share = SHARES[record["statistic"]]
    value = quantile(times_ns, share)
    parts = {part["name"]: part for part in record["uncertainty"]["parts"]}
    wanted = (
        {"counter": "bound", "quarters": "bound"} if is_own else {"timeline": "standard", "quarters": "bound"}
    )
    if {name: part["kind"] for name, part in parts.items()} != wanted:
        told = " and ".join(f"{name}, a {kind}" for name, kind in wanted.items())
        yield f"parts of U are {sorted(parts)}, must be {told}"
        return False
    slack = SLACK_NS + (abs(value) * PPM // 10**6 if is_own else 2 * parts["timeline"]["value"])
    if abs(record["value"] - value) > slack:
        yield f"value is {record['value']}, the streams say {value} within {slack}"
    if is_own and parts["counter"]["value"] < abs(record["value"]) * PPM / 10**6:
        yield f"part counter of U is {parts['counter']['value']}, {PPM} ppm of the value are more"
    if not is_own and u_ns > 4 * parts["timeline"]["value"] + SLACK_NS:
        yield f"part timeline of U is {parts['timeline']['value']}, exchanges alone leave {u_ns:.0f}"
    # Of two quantiles by simple lines, each of which may lie otherwise by half of the exchanges' round trips.
    off = max(abs(quantile(each, share) - value) for each in _quarters(times_ns))
    if abs(parts["quarters"]["value"] - off) > slack + 2 * u_ns:
        yield f"part quarters of U is {parts['quarters']['value']}, the streams say {off}"
    return True


def _quarters(times: Sequence[int]) -> Iterator[Sequence[int]]:
    size, low = len(times), 0
    for number in range(4):
        high = low + size // 4 + (number < size % 4)
        if high > low:
            yield times[low:high]
        low = high
