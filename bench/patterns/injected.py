# SPDX-License-Identifier: Apache-2.0
"""What an injector is told, and what it did."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hw.bench import TargetSpec
from hw.open_bench import OpenBench


@dataclass(frozen=True)
class Scene:
    """Where messages are made late.

    Attributes:
        bench: It is open, and the target is on.
        target: Where source and sink are.
        rng: Of all that is drawn.
        folder: Of the run.
        lasts_s: So long at most.
    """

    bench: OpenBench
    target: TargetSpec
    rng: random.Random
    folder: Path
    lasts_s: float


@dataclass(frozen=True)
class Injected:
    """What was done.

    Attributes:
        kind: Which injector.
        guilty: Beginnings of the names of activities one of which has to be named; empty: nothing was done.
        messages: What the ring needs besides, fields of `RingMessages`.
    """

    kind: str
    guilty: tuple[str, ...]
    messages: Mapping[str, Any] = field(default_factory=dict[str, Any])


Injector = Callable[[Scene], AbstractContextManager[Injected]]
