# SPDX-License-Identifier: Apache-2.0
"""A cause laid over messages at a node and what was active there: who had the time is known then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Times: TypeAlias = NDArray[np.int64]
Spans: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True)
class Scene:
    """What was recorded: messages that came and were read, and spans in which each name was active."""

    came_ns: Times
    read_ns: Times
    active: dict[str, Spans]

    @property
    def end_ns(self) -> int:
        """Return the end of the record."""
        return int(self.read_ns.max())


@dataclass(frozen=True)
class Overlaid:
    """The same with a cause: `due_ns` is what it took of each message, `hidden_ns` what nobody recorded."""

    scene: Scene
    due_ns: Times
    hidden_ns: Times

    @property
    def truth(self) -> float:
        """Return the share of all that was added which the cause took."""
        return float(self.due_ns.sum() / (self.due_ns.sum() + self.hidden_ns.sum()))


def quiet_scene(rng: np.random.Generator, messages: int, interval_ns: int) -> Scene:
    """Return messages that are read after some time, and two threads and interrupts that come and go."""
    came = np.arange(messages) * interval_ns + rng.integers(0, interval_ns // 10, messages)
    read = came + 50_000 + rng.gamma(2, 10_000, messages).astype(np.int64)
    end = int(read.max())
    active: dict[str, Spans] = {
        name: [] for name in ("thread idle-work", "interrupt timer", "softirq NET_RX")
    }
    at = 0
    while at < end:
        name = str(rng.choice(list(active)))
        took = int(rng.gamma(1, 30_000)) + 1
        active[name].append((at, at + took))
        at += took + int(rng.gamma(1, 300_000)) + 1
    return Scene(came, read, active)


def lay_over(scene: Scene, name: str, spans: Spans, hidden: Sequence[tuple[int, int]] = ()) -> Overlaid:
    """Return the scene in which a cause had the processor in those spans.

    Whatever else was active then was not; a message that came before the end of a span, and had not been read
    at its beginning, is read so much later. Likewise of what is hidden, which leaves no activity.
    """
    read = scene.read_ns.copy()
    due, lost = np.zeros_like(read), np.zeros_like(read)
    for begin, end in sorted(spans):
        held = (scene.came_ns < end) & (read > begin)
        took = np.where(held, end - np.maximum(scene.came_ns, begin), 0)
        read, due = read + took, due + took
    for begin, end in hidden:
        held = (scene.came_ns < end) & (scene.read_ns > begin)
        took = np.where(held, end - np.maximum(scene.came_ns, begin), 0)
        read, lost = read + took, lost + took
    active = {other: _without(there, spans) for other, there in scene.active.items()}
    active[name] = sorted(spans)
    return Overlaid(Scene(scene.came_ns, read, active), due, lost)


def _without(there: Spans, spans: Spans) -> Spans:
    """Return spans, sorted and apart, without what others cover."""
    if not spans:
        return there
    spans = sorted(spans)
    firsts = [first for first, _ in spans]
    left: Spans = []
    for begin, end in there:
        at = begin
        for first, last in spans[max(0, bisect_right(firsts, begin) - 1) :]:
            if first >= end:
                break
            if last > at:
                if first > at:
                    left.append((at, first))
                at = last
        if at < end:
            left.append((at, end))
    return left
