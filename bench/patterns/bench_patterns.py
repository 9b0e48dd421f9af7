# SPDX-License-Identifier: Apache-2.0
"""Are patterns of latency found that are known to be there, and none where there is noise alone?

Series are those of bench/patterns/drawn_series.py, each from its seed: nine kinds, two of them in two forms,
alone and in pairs, at the paper's sizes and at 3, 2 and 1 times the noise, in white, AR(1) and heavy-tailed
noise and random walks; a quarter of them is noise alone. The truth of all series is written
(results/bench/patterns/truth.json) before any is searched. `--noise live` draws them all in the noise of a
ring that was measured.

found_KIND               of series at the paper's sizes that have it, alone or in a pair, those where it was
found alone_KIND               the same of series that have nothing else
found_FORM               the same of series that have a kind in its second form
found_KIND_at_K          the same at K times the noise
also_KIND                of series at the paper's sizes without it, but with another, those where it was found
inside_KIND              true parameters that lie in their intervals, of those found at the paper's sizes
inside_off_KIND          by how much that differs from 0.94: intervals of 95 % may hold 90 to 98 %
period_off_KIND          largest relative error of a period at the paper's sizes that was found
clean_NOISE              of series of noise alone those with any finding
clean_all                the same of all noises
periodogram_KIND         of the same series at the paper's sizes those found by a periodogram's peak
ruptures_KIND            the same by ruptures
worse_kinds              kinds of which either of both finds more
better_kinds             kinds of which both find less
many_s                   time for 10^6 values, the median of the runs
steal_ms                 taken by the hypervisor meanwhile
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import RESULTS, Bar, publish, say, steal_ms
from bench.patterns.drawn_series import FORMS, KINDS, LIVE, NOISES, PAPER, Drawn, draw, pairs
from bench.patterns.peers import breaks, periodogram_found, periodogram_peak, ruptures_found
from reports.patterns.detect import detect
from reports.patterns.finding import Finding
from reports.patterns.series import series_of

SERIES = 3000
MANY = 1_000_000
MANY_RUNS = 3
SIZES = (PAPER, 3.0, 2.0, 1.0)
CLEAN_SHARE = 0.02
PERIODIC = ("ramp", "drifting_grid", "gap", "periodic_outlier")
INSIDE, INSIDE_OFF = 0.94, 0.04
"""Of intervals of 95 % those that hold the truth, and by how much that may differ: more is too wide."""
PERIOD_OFF = 0.02
HELD_OUT = 100_000
"""Seeds from it on are for figures; work on the detector looks at lower ones."""
BARS = {
    **{f"found_{kind}": Bar(0.95, at_least=True) for kind in KINDS},
    **{f"alone_{kind}": Bar(0.95, at_least=True) for kind in KINDS},
    **{f"inside_off_{kind}": Bar(INSIDE_OFF) for kind in KINDS},
    **{f"period_off_{kind}": Bar(PERIOD_OFF) for kind in PERIODIC},
    "worse_kinds": Bar(0),
    "better_kinds": Bar(6, at_least=True),
    "many_s": Bar(5),
}


def bars_of(noises: Sequence[str]) -> dict[str, Bar]:
    """Return the bars of series in these noises."""
    return BARS | {f"clean_{noise}": Bar(CLEAN_SHARE) for noise in noises}


class Scene(NamedTuple):
    """What is drawn: kinds, noise, size, seed."""

    kinds: tuple[str, ...]
    noise: str
    size: float
    seed: int


class Outcome(NamedTuple):
    """What came of a series: its truth, findings, and what the others say of it."""

    scene: Scene
    truth: dict[str, dict[str, float]]
    findings: tuple[Finding, ...]
    elapsed_s: float


def scenes(count: int, first: int = HELD_OUT, noises: Sequence[str] = NOISES) -> list[Scene]:
    """Return the series that are drawn: a quarter clean, a half of the paper's sizes, a quarter of others.

    Their seeds begin at the first one.
    """
    kinds: list[tuple[str, ...]] = [(kind,) for kind in (*KINDS, *FORMS)] + list(pairs())
    made: list[Scene] = []
    for place in range(count):
        seed = first + place
        turn, part = divmod(place, 4)
        noise = noises[turn % len(noises)]
        index = turn // len(noises)
        if part == 3:
            made.append(Scene((), noise, PAPER, seed))
        elif part < 2:
            # One half alone, the other in pairs.
            alone = part == 0
            singles = len(KINDS) + len(FORMS)
            of = kinds[index % singles] if alone else kinds[singles + index % (len(kinds) - singles)]
            made.append(Scene(of, noise, PAPER, seed))
        else:
            made.append(Scene(kinds[index % len(kinds)], noise, SIZES[1 + turn % 3], seed))
    return made


def search(scene: Scene) -> Outcome:
    """Draw a series and search it."""
    made = draw(*scene)
    begin = time.perf_counter()
    found = detect(series_of(made.times_s, made.values_ms)).findings
    return Outcome(scene, made.truth, found, time.perf_counter() - begin)


def share(of: Sequence[bool]) -> float:
    """Return the share that is true; NaN of nothing."""
    return sum(of) / len(of) if of else float("nan")


def hits(finding: Finding, truth: Mapping[str, float]) -> list[bool]:
    """Say of each parameter with a truth whether that lies in its interval; of an offset round the grid."""
    inside: list[bool] = []
    for name, parameter in finding.parameters.items():
        for key, value in truth.items():
            if key.startswith(f"{name}_"):
                turn = truth["width_ms"] if name == "offset" else 0.0
                inside.append(any(parameter.low <= value + k * turn <= parameter.high for k in (-1, 0, 1)))
    return inside


def period_error(finding: Finding, truth: Mapping[str, float]) -> float:
    """Return by how much the period is off, of the true one; 0 without."""
    if "period" not in finding.parameters:
        return 0.0
    return abs(finding.parameters["period"].value / truth["period_s"] - 1)


def figures_of(outcomes: Sequence[Outcome], noises: Sequence[str] = NOISES) -> dict[str, float]:
    """Return the figures of the searched series."""
    figures: dict[str, float] = {}
    paper = [each for each in outcomes if each.truth and each.scene.size == PAPER]
    for kind in KINDS:
        of = [each for each in paper if kind in each.truth]
        found = [next((f for f in each.findings if f.kind == kind), None) for each in of]
        figures[f"found_{kind}"] = share([f is not None for f in found])
        figures[f"alone_{kind}"] = share(
            [
                f is not None
                for f, each in zip(found, of, strict=True)
                if [FORMS.get(one, one) for one in each.scene.kinds] == [kind]
            ]
        )
        for size in SIZES[1:]:
            smaller = [each for each in outcomes if kind in each.truth and each.scene.size == size]
            figures[f"found_{kind}_at_{size:g}"] = share([_has(each, kind) for each in smaller])
        figures[f"also_{kind}"] = share([_has(each, kind) for each in paper if kind not in each.truth])
        pairs_of = [(f, each.truth[kind]) for f, each in zip(found, of, strict=True) if f is not None]
        figures[f"inside_{kind}"] = share([hit for pair in pairs_of for hit in hits(*pair)])
        figures[f"inside_off_{kind}"] = abs(figures[f"inside_{kind}"] - INSIDE)
        errors = [period_error(*pair) for pair in pairs_of]
        if kind in PERIODIC:
            figures[f"period_off_{kind}"] = max(errors, default=float("nan"))
            figures[f"period_off_2_percent_{kind}"] = share([error > 0.02 for error in errors])
    for form, kind in FORMS.items():
        figures[f"found_{form}"] = share([_has(each, kind) for each in paper if form in each.scene.kinds])
    for noise in noises:
        clean = [each for each in outcomes if not each.truth and each.scene.noise == noise]
        figures[f"clean_{noise}"] = share([bool(each.findings) for each in clean])
    figures["clean_all"] = share([bool(each.findings) for each in outcomes if not each.truth])
    return figures


def _has(each: Outcome, kind: str) -> bool:
    return any(f.kind == kind for f in each.findings)


def peer_figures(drawn: Sequence[tuple[Scene, Drawn]], noises: Sequence[str] = NOISES) -> dict[str, float]:
    """Return what a periodogram and ruptures find, at 2 % of clean series of each noise with a finding.

    Who uses them knows the noise of his series, so each noise has its own threshold.
    """
    clean = {
        noise: [made for scene, made in drawn if not scene.kinds and made.noise == noise] for noise in noises
    }
    thresholds = {
        noise: [
            float(np.quantile([statistic(made)[0] for made in of], 1 - CLEAN_SHARE))
            for statistic in (periodogram_peak, breaks)
        ]
        for noise, of in clean.items()
    }
    found: dict[str, dict[str, list[bool]]] = {peer: {kind: [] for kind in KINDS} for peer in _PEERS}
    for scene, made in drawn:
        if scene.kinds and scene.size == PAPER:
            for peer, answers in (
                ("periodogram", periodogram_found(made, thresholds[scene.noise][0])),
                ("ruptures", ruptures_found(made, thresholds[scene.noise][1])),
            ):
                for kind, answer in answers.items():
                    found[peer][kind].append(answer)
    return {f"{peer}_{kind}": share(of) for peer, kinds in found.items() for kind, of in kinds.items()}


_PEERS = ("periodogram", "ruptures")


def confusion(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Return how often each kind was found in series at the paper's sizes that have one kind, or none."""
    counts: dict[str, dict[str, int]] = {}
    for each in outcomes:
        if len(each.scene.kinds) < 2 and each.scene.size == PAPER:
            row = counts.setdefault(each.scene.kinds[0] if each.scene.kinds else "nothing", {"series": 0})
            row["series"] += 1
            for kind in {f.kind for f in each.findings}:
                row[kind] = row.get(kind, 0) + 1
    return counts


def time_many(count: int) -> float:
    """Return seconds for a long series: ramps in white noise."""
    rng = np.random.default_rng(7)
    times_s = np.arange(count, dtype=np.float64) * 1e-3
    values = np.mod(times_s / 30, 1) * 5 + rng.normal(0, 0.5, count)
    series = series_of(times_s, values)
    begin = time.perf_counter()
    detect(series)
    return time.perf_counter() - begin


@takes(
    series=(SERIES, "series that are drawn"),
    first=(HELD_OUT, "seed of the first one; those below 5000 are for work on the detector"),
    processes=(2, "that search at once"),
    many=(MANY, "values of the long series"),
    noise={"choices": (*NOISES, LIVE), "help": "of all series (default: each of the first four by turns)"},
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    noises = (options.noise,) if options.noise else NOISES
    todo = scenes(options.series, options.first, noises)
    drawn = [(scene, draw(*scene)) for scene in todo]
    truth_file = RESULTS / "patterns" / "truth.json"
    truth_file.parent.mkdir(parents=True, exist_ok=True)
    truth_file.write_text(json.dumps([[*scene[:3], scene.seed, made.truth] for scene, made in drawn]))
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        outcomes: list[Outcome] = []
        for done in pool.imap(search, todo, chunksize=4):
            outcomes.append(done)
            if len(outcomes) % 100 == 0:
                say(f"{len(outcomes)} of {len(todo)} series")
    figures = {**figures_of(outcomes, noises), **peer_figures(drawn, noises)}
    ours = [[figures[f"{who}_{kind}"] for who in ("found", *_PEERS)] for kind in KINDS]
    figures["worse_kinds"] = float(sum(mine < max(others) for mine, *others in ours))
    figures["better_kinds"] = float(sum(mine > max(others) for mine, *others in ours))
    runs_s = [time_many(options.many) for _ in range(MANY_RUNS)]
    figures["many_s"] = statistics.median(runs_s)
    figures["series_s"] = statistics.median(each.elapsed_s for each in outcomes)
    figures["steal_ms"] = float(steal_ms() - stolen_ms)
    matrix = confusion(outcomes)
    for kind, row in matrix.items():
        say(f"{kind:17} {' '.join(f'{name} {count}' for name, count in row.items())}")
    return publish(
        "patterns",
        figures,
        bars_of(noises),
        {"series": options.series, "first": options.first, "confusion": matrix, "many_s": runs_s},
    )
