# SPDX-License-Identifier: Apache-2.0
"""Is the verdict between network stacks right? Runs drawn from a known truth, compared as those of a bench.

Of each run the truth is written (results/bench/stack_comparison/truth.json) before any is compared. Equal
runs are one stack under two names, or three; the others are two stacks, a third of them equal: skewed
latencies, drift over the run, levels of turns, lost messages, turns of which the machine took a good part.

claimed_share         of equal runs those in which any comparison claims a difference
inside_share          of comparisons with an interval, those whose interval holds the truth
half_inside_share     the same of the interval's inner half: near 1 would be too wide
runs_inside_share     of runs those all of whose intervals hold it: they hold together
wrong_side            claims of the stack that is the slower, or of equal ones
missed_share          of comparisons without a claim those whose truth is above their detection limit
inconclusive_share    of comparisons
inside_STATISTIC, half_inside_STATISTIC   the same by statistic
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import RESULTS, Bar, publish, say
from bench.verdicts.drawn_turns import Scene, Truth, draw_scene, draw_turns, truth_of
from reports.stacks.compare import Compared, compare
from reports.stacks.turn_values import STATISTICS

BARS = {
    "claimed_share": Bar(0.05),
    "inside_share": Bar(0.95, at_least=True),
    "half_inside_share": Bar(0.9),
    "half_inside_least": Bar(0.5, at_least=True),
    "runs_inside_share": Bar(0.95, at_least=True),
    "missed_share": Bar(0.05),
}
HELD_OUT = 500_000
"""Seeds from it on are for figures; work on the method looks at lower ones."""


@dataclass(frozen=True)
class Drawn:
    """A run to be: its scene, what is true of it, and the seed of its turns."""

    seed: int
    is_equal: bool
    scene: Scene
    truth: Truth


@dataclass(frozen=True)
class Judged:
    """One comparison and its truth, in the comparison's unit."""

    compared: Compared
    truth: float

    @property
    def off(self) -> float:
        """Return by how much the difference is off, of U."""
        assert self.compared.difference is not None
        return abs(self.compared.difference - self.truth) / self.compared.expanded

    @property
    def is_wrong(self) -> bool:
        """Say whether a stack is claimed that is not the faster."""
        difference = self.compared.difference
        return self.compared.is_claimed and difference is not None and difference * self.truth <= 0

    @property
    def is_missed(self) -> bool:
        """Say whether the truth is above what no such run is said to miss."""
        return abs(self.truth) > self.compared.smallest_seen


def drawn_runs(count: int, first_seed: int, *, equal: bool) -> list[Drawn]:
    """Draw scenes and their truth; of equal ones every second has three names."""
    made: list[Drawn] = []
    for place in range(count):
        names = ("one", "other", "third")[: 3 if equal and place % 2 else 2]
        scene = draw_scene(np.random.default_rng([first_seed + place, 1]), names, equal=equal)
        made.append(Drawn(first_seed + place, equal, scene, truth_of(scene)))
    return made


def judged(run: Drawn) -> list[Judged]:
    """Draw the turns of a run and compare its stacks."""
    turns = draw_turns(run.scene, np.random.default_rng([run.seed, 2]))
    found = compare(list(run.scene.stacks), turns, run.scene.budgets_ns)
    return [
        Judged(each, run.truth[each.first, each.second, each.stream_type, each.statistic])
        for each in found.compared
    ]


def share(of: Sequence[bool]) -> float:
    """Return the share that is true; NaN of nothing."""
    return sum(of) / len(of) if of else math.nan


def figures_of(equal: Sequence[Sequence[Judged]], mixed: Sequence[Sequence[Judged]]) -> dict[str, float]:
    """Return the figures of equal runs and of the others."""
    every = [each for run in mixed for each in run]
    told = [each for each in every if not each.compared.doubt]
    half = share([each.off <= 0.5 for each in told])
    figures = {
        "claimed_share": share([any(each.compared.is_claimed for each in run) for run in equal]),
        "inside_share": share([each.off <= 1 for each in told]),
        "half_inside_share": half,
        "half_inside_least": half,
        "runs_inside_share": share(
            [all(each.off <= 1 for each in run if not each.compared.doubt) for run in mixed]
        ),
        "wrong_side": float(sum(each.is_wrong for run in (*equal, *mixed) for each in run)),
        "missed_share": share([each.is_missed for each in told if not each.compared.is_claimed]),
        "claimed_of_mixed_share": share([each.compared.is_claimed for each in told]),
        "inconclusive_share": share([bool(each.compared.doubt) for each in every]),
    }
    for statistic in STATISTICS:
        own = [each for each in told if each.compared.statistic == statistic]
        figures[f"inside_{statistic}"] = share([each.off <= 1 for each in own])
        figures[f"half_inside_{statistic}"] = share([each.off <= 0.5 for each in own])
    return figures


@takes(runs=(200, "equal ones, and as many others"), first_seed=(HELD_OUT, "of their random numbers"))
def main(options: Options) -> int:
    """Run the benchmark."""
    equal = drawn_runs(options.runs, options.first_seed, equal=True)
    mixed = drawn_runs(options.runs, options.first_seed + options.runs, equal=False)
    place = RESULTS / "stack_comparison" / "truth.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    truths = [
        {"seed": run.seed, "is_equal": run.is_equal, "scene": asdict(run.scene)}
        | {"truth": {" / ".join(key): value for key, value in run.truth.items()}}
        for run in (*equal, *mixed)
    ]
    place.write_text(json.dumps(truths, indent=1) + "\n")
    found = [[judged(run) for run in runs] for runs in (equal, mixed)]
    figures = figures_of(*found)
    for name, value in figures.items():
        say(f"{name:24} {value:.4f}")
    return publish("stack_comparison", figures, BARS, {**vars(options), "truth": place.name})
