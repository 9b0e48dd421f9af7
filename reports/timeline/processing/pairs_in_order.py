# SPDX-License-Identifier: Apache-2.0
"""Causes and effects matched one to one, in their order, each effect within a time of its cause."""

from __future__ import annotations

import numpy as np

from reports.timeline.clock_record import Times

CHUNK = 4096
"""Causes that are matched at once; what is left over by those before is one number."""


def match_in_order(
    cause_key: Times, cause_ns: Times, effect_key: Times, effect_ns: Times, least_ns: int, most_ns: int
) -> tuple[Times, Times]:
    """Return matched causes and effects, shape (m,) each, by key and time of the causes.

    Cause by cause in the order of their times, each has the first effect of its key that is behind those of
    the causes before it, from `least_ns` to `most_ns` after it; where there is none, it stays unmatched.

    Args:
        cause_key: Shape (n,): what it has in common with its effect.
        cause_ns: Shape (n,), in any order.
        effect_key: Shape (k,).
        effect_ns: Shape (k,).
        least_ns: An effect comes no earlier; below 0: it may seem to come before its cause.
        most_ns: Nor later.
    """
    causes = np.lexsort((cause_ns, cause_key))
    effects = np.lexsort((effect_ns, effect_key))
    # Times as ranks, so that key and time fit into one number, by which effects ascend.
    ranks = np.unique(effect_ns)
    keys, number = np.unique(np.concatenate([cause_key, effect_key]), return_inverse=True)
    size = ranks.size + 1
    at = number[cause_ns.size :][effects] * size + np.searchsorted(ranks, effect_ns[effects])
    of_key = number[: cause_ns.size][causes] * size
    own_ns = cause_ns[causes]
    first = np.searchsorted(at, of_key + np.searchsorted(ranks, own_ns + least_ns))
    behind = np.searchsorted(at, of_key + np.searchsorted(ranks, own_ns + most_ns, side="right"))
    assert keys.size * size < 1 << 62
    possible = np.flatnonzero(first < behind)
    taken = _taken(first[possible], behind[possible] - 1)
    matched = taken >= 0
    return causes[possible[matched]], effects[taken[matched]]


def _taken(first: Times, last: Times) -> Times:
    """Return the effect that each cause gets, -1: none, shape (n,).

    Args:
        first: The earliest effect in the cause's time, ascending.
        last: The latest one, ascending, no less.
    """
    taken = np.full(first.size, -1, np.int64)
    free = 0
    for begin in range(0, first.size, CHUNK):
        left = np.arange(begin, min(begin + CHUNK, first.size))
        while left.size:
            rank = np.arange(left.size)
            wanted = np.maximum.accumulate(np.maximum(first[left] - rank, free)) + rank
            late = wanted > last[left]
            if not late.any():
                taken[left] = wanted
                free = int(wanted[-1]) + 1
                break
            # A cause that gets its own earliest effect gets it whatever those before get. From one of these
            # to the next the first that is late stays unmatched, with those behind it that could not have it.
            group = np.cumsum(wanted == first[left])
            places = np.flatnonzero(late)
            groups, which = np.unique(group[places], return_index=True)
            at = np.searchsorted(groups, group)
            has = (at < groups.size) & (groups[np.minimum(at, groups.size - 1)] == group)
            late_from = places[which][np.minimum(at, groups.size - 1)]
            lost = has & (rank >= late_from) & (last[left] < wanted[late_from])
            left = left[~lost]
    return taken
