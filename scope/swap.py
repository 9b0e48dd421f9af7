# SPDX-License-Identifier: Apache-2.0
"""Channels swapped: two measurements of one delay, whose mean is free of the skew between the channels.

Measured straight, a delay comes out as delay + skew, with both signals on each other's channel (and cable) as
delay - skew; skew is how much later the channel sees an edge on which the other signal was when straight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scope.budget import Budget, Part


@dataclass(frozen=True)
class SwapResult:
    """What both ways tell: the delay of the signals and the skew of the channels, in s, with one budget."""

    delay_s: float
    skew_s: float
    budget: Budget


def combine_swapped(straight_s: float, swapped_s: float, straight: Budget, swapped: Budget) -> SwapResult:
    """Average both ways; delays are other signal less reference signal, whichever channel they were on.

    Half the sum and half the difference are equally uncertain: standard deviations of both ways are
    independent, bounds are not. Parts that stand for the skew itself are left out, for it cancels.
    """
    names = list(dict.fromkeys(part.name for part in (*straight.parts, *swapped.parts)))
    parts: list[Part] = []
    for name in names:
        if name == "skew" or name.startswith("channel_skew"):
            continue
        found = [part for part in (*straight.parts, *swapped.parts) if part.name == name]
        values = [part.value_s / 2 for part in found]
        bound = found[0].kind == "bound"
        parts.append(Part(name, found[0].kind, math.fsum(values) if bound else math.hypot(*values)))
    return SwapResult((straight_s + swapped_s) / 2, (straight_s - swapped_s) / 2, Budget(tuple(parts)))
