# SPDX-License-Identifier: Apache-2.0
"""Turns of network stacks drawn at random, with the true differences between the stacks.

A latency is a base, the level of its turn, the run's drift and a lognormal tail; neighbours among the
messages depend on each other. Messages are lost, and pauses of the bench's machine hold up those that are on
their way, in some turns a good part of them.

True values are of the turns' distributions: a quantile in closed form, a share by Gauss and Hermite's rule
over the levels of turns, with the drift of the middle of each round.

It has no code of the comparison: of `reports.stacks` the form of turns alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.stacks.turns import Turn, TypeMessages

signal: Any = import_module("scipy.signal")  # its types are incomplete

Floats = NDArray[np.float64]
PERIOD_NS = 1_000_000
TYPES = ("type 0", "type 1")
QUANTILES = {"median": 0.5, "p99": 0.99}
OVER = "over_budget"
NODES = 40
"""Of the integration over levels."""


@dataclass(frozen=True)
class Stack:
    """How one stack carries one type of streams.

    Attributes:
        base_ns: Of each latency.
        tail_ns: Median of the lognormal part.
        sigma: Of its logarithm.
        level_ns: Standard deviation of the turns' levels.
        loss: Share of messages that are lost.
    """

    base_ns: float
    tail_ns: float
    sigma: float
    level_ns: float
    loss: float

    def quantile_ns(self, share: float) -> float:
        """Return the quantile of a turn of mean level; lost messages are the latest."""
        return self.base_ns + self.tail_ns * math.exp(
            self.sigma * NormalDist().inv_cdf(share / (1 - self.loss))
        )

    def beyond(self, budget_ns: float, drift_ns: Floats) -> float:
        """Return the share beyond a budget over turns of any level, mean over drifts."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        left = budget_ns - self.base_ns - drift_ns[:, None] - self.level_ns * nodes
        scores = np.log(np.maximum(left, 1e-9) / self.tail_ns) / self.sigma
        later = 0.5 * np.vectorize(math.erfc)(scores / math.sqrt(2))
        share = (later * weights).sum(axis=1) / weights.sum()
        return float(self.loss + (1 - self.loss) * share.mean())


@dataclass(frozen=True)
class Scene:
    """What a run is drawn from.

    Attributes:
        stacks: Of each name, how it carries each of TYPES.
        rounds: Of turns.
        messages: Of each type in a turn.
        alike: Correlation of neighbours among the messages' scores.
        drift: Form: `none`, `ramp`, `waves` or `step`.
        drift_ns: Its size.
        stolen_turns: Share of turns in which pauses hold up a good part of the messages.
        budgets_ns: Of each of TYPES.
    """

    stacks: dict[str, tuple[Stack, Stack]]
    rounds: int
    messages: int
    alike: float
    drift: str
    drift_ns: float
    stolen_turns: float
    budgets_ns: dict[str, int]

    @property
    def turns(self) -> int:
        """Return how many turns the run has."""
        return self.rounds * len(self.stacks)

    def drift_at(self, place: Floats) -> Floats:
        """Return the drift at places in the run, in turns, in ns."""
        part = place / self.turns
        forms = {
            "none": np.zeros_like(part),
            "ramp": part,
            "waves": 0.5 * np.sin(2 * np.pi * 2.3 * part),
            "step": np.where(part > 0.4, 1.0, 0.0),
        }
        return self.drift_ns * forms[self.drift]


Truth = dict[tuple[str, str, str, str], float]
"""Second less first, by first stack, second, type and statistic; in ns, of a share in percent."""


def truth_of(scene: Scene) -> Truth:
    """Return the true difference of each pair."""
    middle = scene.drift_at(np.arange(0.5, scene.rounds, dtype=np.float64) * len(scene.stacks) - 0.5)
    truth: Truth = {}
    for (first, one), (second, other) in combinations(scene.stacks.items(), 2):
        for name, a, b in zip(TYPES, one, other, strict=True):
            for statistic, share in QUANTILES.items():
                truth[first, second, name, statistic] = b.quantile_ns(share) - a.quantile_ns(share)
            budget_ns = scene.budgets_ns[name]
            apart = b.beyond(budget_ns, middle) - a.beyond(budget_ns, middle)
            truth[first, second, name, OVER] = 100 * apart
    return truth


def draw_scene(rng: np.random.Generator, names: tuple[str, ...], *, equal: bool) -> Scene:
    """Draw what a run is of.

    Args:
        rng: Random numbers.
        names: Of the stacks.
        equal: All are one stack.
    """
    first = tuple(_stack(rng) for _ in TYPES)
    stacks = {name: first if equal or not place else _others(first, rng) for place, name in enumerate(names)}
    budgets = {
        name: round(own.quantile_ns(share))
        for name, own, share in zip(TYPES, first, rng.uniform(0.9, 0.998, len(TYPES)), strict=True)
    }
    return Scene(
        stacks={name: (each[0], each[1]) for name, each in stacks.items()},
        rounds=int(rng.integers(10, 25)),
        messages=int(rng.integers(200, 601)),
        alike=float(rng.choice([0.0, 0.3, 0.6])),
        drift=str(rng.choice(["none", "ramp", "waves", "step"])),
        drift_ns=float(rng.uniform(0, 100_000)),
        stolen_turns=float(rng.choice([0.0, 0.1])),
        budgets_ns=budgets,
    )


def _stack(rng: np.random.Generator) -> Stack:
    return Stack(
        base_ns=float(rng.uniform(50_000, 200_000)),
        tail_ns=float(rng.uniform(20_000, 80_000)),
        sigma=float(rng.uniform(0.3, 1.0)),
        level_ns=float(rng.uniform(0, 15_000)),
        loss=float(rng.choice([0.0, 0.0005])),
    )


def _others(first: tuple[Stack, ...], rng: np.random.Generator) -> tuple[Stack, ...]:
    """Return another stack near the first: of one case in three the same."""
    if rng.random() < 1 / 3:
        return first
    return tuple(
        Stack(
            base_ns=own.base_ns + float(rng.normal(0, 20_000)),
            tail_ns=own.tail_ns * float(rng.uniform(0.7, 1.4)),
            sigma=own.sigma * float(rng.uniform(0.8, 1.25)),
            level_ns=own.level_ns * float(rng.uniform(0.5, 2)),
            loss=own.loss,
        )
        for own in first
    )


def draw_turns(scene: Scene, rng: np.random.Generator) -> list[Turn]:
    """Draw the turns of a run: as a suite makes them, each second round has its stacks in reverse."""
    turns: list[Turn] = []
    names: list[str] = []
    for number in range(scene.rounds):
        names = names[::-1] if number % 2 else [str(name) for name in rng.permutation(list(scene.stacks))]
        for name in names:
            order = len(turns)
            drift_ns = float(scene.drift_at(np.array([float(order)]))[0])
            level = rng.normal()
            is_stolen = rng.random() < scene.stolen_turns
            messages = {
                kind: _messages(scene, own, drift_ns + own.level_ns * level, is_stolen, rng)
                for kind, own in zip(TYPES, scene.stacks[name], strict=True)
            }
            turns.append(Turn(order, number, "idle", name, messages))
    return turns


def _alike(fresh: Floats, alike: float) -> Floats:
    """Return normal scores of which neighbours have this correlation, from independent ones."""
    new = math.sqrt(1 - alike**2)
    scores: Floats = signal.lfilter([new], [1, -alike], fresh, zi=[fresh[0] * (1 - new)])[0]
    return scores


def _messages(
    scene: Scene, own: Stack, shift_ns: float, is_stolen: bool, rng: np.random.Generator
) -> TypeMessages:
    scores = _alike(rng.normal(size=scene.messages), scene.alike)
    latency = own.base_ns + shift_ns + own.tail_ns * np.exp(own.sigma * scores)
    sent = np.arange(scene.messages) * float(PERIOD_NS)
    taken = np.zeros(scene.messages)
    for begin in rng.uniform(0, sent[-1], rng.poisson(scene.messages * (0.1 if is_stolen else 0.002))):
        end = begin + rng.exponential(2 * PERIOD_NS)
        held = (begin < sent + latency) & (end > sent)
        taken[held] += end - np.maximum(begin, sent[held])
    came = rng.random(scene.messages) >= own.loss
    whole = np.rint(latency + taken)[came].astype(np.int64)
    return TypeMessages(whole, np.ceil(taken[came]).astype(np.int64), int(np.count_nonzero(~came)))
