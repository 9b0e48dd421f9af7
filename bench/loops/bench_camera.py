# SPDX-License-Identifier: Apache-2.0
"""Two witnesses of one loop's delay, and whether the loop is one: a camera, its tracker, the bench's router.

The loop is that of `robot/control_loops/camera.robot`, on the virtual bench, whose native target has the
camera.

en_within_percent   of all runs at all delays: E_n of events and pictures is at most 1
u_most_ms           largest U of either
shifted_en          least E_n where the numbers of pictures are wrong by one, by the same evidence
motor_en            E_n where 30 ms lie between a command's arrival and the motor; motor_events_ms: what of
                    that shows in events
lost                delays of all runs at which the target was lost before the warm-up was over
window_open_percent at the longest delay: runs whose warm-up, by the delays alone, ends no earlier than TCP's
                    congestion window has stopped limiting what is sent
sweeps_agree_percent  pairs of runs at all delays: E_n of the loop's mean, less the path's delay, is at most 1
slope_off           by how much the slope of the loop's median against the path's measured delay is off 2
out_percent         pictures without the target, closed, on a path that wanders
open_s, reversed_s  when the target is in the picture for the last time: the loop open, and reversed
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from hw.errors import MeasurementError
from hw.session import Bench, open_bench
from reports.control_loops.camera_loop import CameraLoop, found_warm_up, load_camera_loop
from reports.control_loops.camera_verdict import witnesses_en
from reports.control_loops.fits import Estimate, mean_of
from reports.normalised_error import normalised_error
from reports.timeline.leg import quantile_ns
from resources.control_loops.camera_path import CameraPath, camera_path
from resources.control_loops.camera_trial import TRUTH, CameraRun, measure_camera

BENCH_FILE = REPOSITORY / "hw" / "benches" / "virtual.yaml"
FOLDER = RESULTS / "camera"
TARGET = "linux"
PICTURES_PER_S, SECONDS, REST_S = 25, 10, 8
DELAYS_MS = (0, 50, 100, 200, 300)
LIMITS_FROM = 0.9
"""Of a window: where more of it is on its way, it limits what is sent."""
NS_PER_MS = 1_000_000
BARS = {
    "en_within_percent": Bar(90, at_least=True),
    "u_most_ms": Bar(10),
    "shifted_en": Bar(1.001, at_least=True),
    "motor_en": Bar(1.001, at_least=True),
    "lost": Bar(0),
    "sweeps_agree_percent": Bar(90, at_least=True),
    "window_open_percent": Bar(100, at_least=True),
    "slope_off": Bar(0.02),
    "out_percent": Bar(1),
}


PLAIN = CameraRun(PICTURES_PER_S * SECONDS, PICTURES_PER_S, speed_px_s=120, congestion="cubic")
"""BBR sends four segments a round trip each ten seconds, to see how short that is: 1.2 s more at 300 ms."""
RESTED = replace(PLAIN, pictures=PICTURES_PER_S * (REST_S + SECONDS), rest_ms=REST_S * 1000)
"""While a connection opens its window at 300 ms each way, what moves is out of the picture for good."""


def followed(
    bench: Bench, name: str, run: CameraRun = PLAIN, path: CameraPath | None = None, delay_ms: int = 0
) -> CameraLoop:
    """Let the tracker follow, and return what was found."""
    if path:
        path.set(delay_ms * 1000)
    measure_camera(bench, bench.spec.targets[TARGET], run, FOLDER / name, path)
    return load_camera_loop(FOLDER / name)


def shifted_en(found: CameraLoop) -> float:
    """Return E_n where each command is taken for the answer to the picture before."""
    assert found.pixels
    later_ns = found.whole.time_ns + found.facts.period_us * 1000
    u_ns = witnesses_en(found)[3]
    return normalised_error(
        quantile_ns(found.pixels.delay_ns, 0.5), quantile_ns(later_ns, 0.5), found.pixels.u_ns, u_ns
    )


@dataclass(frozen=True)
class Sweep:
    """Of one run, at each delay at which the target was not lost.

    Attributes:
        en, u_ms, shifted: E_n of both witnesses, the larger U, E_n with wrong numbers of pictures.
        slope: Of the loop's median against the measured delay.
        lost: Delays at which the target was lost for good before the warm-up was over.
        warm_up, window: At the longest delay the first picture behind the warm-up, by the delays alone, and
            the one that first found the window open; 0: it always was.
        means: At each delay the loop's mean in ms, less the path's measured delay there and back.
    """

    en: list[float]
    u_ms: list[float]
    shifted: list[float]
    slope: float
    lost: int
    warm_up: int
    window: int
    means: dict[int, Estimate]


def window_opens(truth: Path) -> int:
    """Return the first picture from which on, for a second, TCP's window did not limit what was sent."""
    lines = [json.loads(line) for line in truth.read_text().splitlines()]
    told = sorted((each for each in lines if each["type"] == "connection"), key=lambda each: each["number"])
    if not told:
        raise MeasurementError(f"{truth}: its kernel has said nothing of the connection")
    limits = [each["in_flight_bytes"] >= LIMITS_FROM * each["window_bytes"] for each in told]
    if limits[-1]:
        raise MeasurementError(f"{truth}: TCP's window limits what is sent to the end")
    at = next(at for at in range(len(told)) if not any(limits[at : at + PICTURES_PER_S]))
    return int(told[at]["number"]) if at else 0


def sweep(bench: Bench, path: CameraPath, number: int) -> Sweep:
    """Return what both witnesses say at each delay, and the slope."""
    loops = {
        delay_ms: followed(bench, f"run-{number}/{delay_ms}-ms", RESTED, path, delay_ms)
        for delay_ms in DELAYS_MS
    }
    found = {delay_ms: witnesses_en(each) for delay_ms, each in loops.items()}
    longest = FOLDER / f"run-{number}" / f"{max(DELAYS_MS)}-ms"
    for delay_ms, (en, difference_ns, pixels_u_ns, events_u_ns) in found.items():
        say(
            f"{delay_ms:4} ms: E_n {en:.2f}, pictures {difference_ns / NS_PER_MS:+.2f} ms,"
            f" U {pixels_u_ns / NS_PER_MS:.2f} and {events_u_ns / NS_PER_MS:.2f} ms,"
            f" warm-up of {loops[delay_ms].facts.warm_up} pictures"
        )
    kept = [delay_ms for delay_ms, each in loops.items() if each.pixels is not None and len(each.whole)]
    if len(kept) < len(("least", "most")):
        raise MeasurementError("the target was lost at all delays but one")
    delays = [loops[delay_ms].facts.delay for delay_ms in kept]
    measured = [(each.there_us + each.back_us) / 2 for each in delays if each]
    medians = [quantile_ns(loops[delay_ms].whole.time_ns, 0.5) / 1000 for delay_ms in kept]
    return Sweep(
        [found[delay_ms][0] for delay_ms in kept],
        [max(found[delay_ms][2:]) / NS_PER_MS for delay_ms in kept],
        [shifted_en(loops[delay_ms]) for delay_ms in kept],
        float(np.polyfit(measured, medians, 1)[0]),
        len(loops) - len(kept),
        found_warm_up(load_camera_loop(longest, 0))[0],
        window_opens(longest / TRUTH),
        {delay_ms: net_mean(loops[delay_ms]) for delay_ms in kept},
    )


def net_mean(found: CameraLoop) -> Estimate:
    """Return the loop's mean in ms, less the path's measured delay, with its standard uncertainty."""
    mean, delay = mean_of(found.whole.time_ns / NS_PER_MS), found.facts.delay
    assert delay
    path_ms = (delay.there_us + delay.back_us) / 1000
    return Estimate(mean.value - path_ms, math.hypot(mean.u, delay.u_us / 2000 * math.sqrt(2)))


def agreement_percent(runs: Sequence[dict[int, Estimate]]) -> float:
    """Return of how many pairs of runs, at each delay, the means agree by E_n; NaN: of one run no pair."""
    pairs = [
        (one[delay_ms], other[delay_ms])
        for one, other in combinations(runs, 2)
        for delay_ms in one.keys() & other.keys()
    ]
    agree = [normalised_error(one.value, other.value, 2 * one.u, 2 * other.u) <= 1 for one, other in pairs]
    return 100 * float(np.mean(agree)) if agree else float("nan")


def leaves_s(found: CameraLoop) -> float:
    """Return when the target is in the picture for the last time, in s from the start."""
    inside = np.flatnonzero(found.in_picture)
    return float(found.truth.captured_ns[inside[-1]]) / 1e9 if inside.size else 0.0


@takes(runs=(10, "of all delays"))
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    figures: dict[str, float] = {}
    runs: list[Sweep] = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_bench(BENCH_FILE) as bench:
        target = bench.spec.targets[TARGET]
        bench.power_on([target.node])
        with camera_path(bench, target) as path:
            for number in range(options.runs):
                say(f"run {number + 1} of {options.runs}")
                runs.append(sweep(bench, path, number))
        en = np.array([each for run in runs for each in run.en])
        figures |= {
            "en_within_percent": 100 * float((en <= 1).mean()),
            "en_median": float(np.median(en)),
            "u_most_ms": max(each for run in runs for each in run.u_ms),
            "shifted_en": min(each for run in runs for each in run.shifted),
            "lost": sum(run.lost for run in runs),
            "sweeps_agree_percent": agreement_percent([run.means for run in runs]),
            "window_open_percent": 100 * float(np.mean([run.warm_up >= run.window for run in runs])),
            "slope_off": float(np.median([abs(each.slope - 2) for each in runs])),
        }
        plain, motor = followed(bench, "plain"), followed(bench, "motor", replace(PLAIN, motor_delay_ms=30))
        events_ms = [quantile_ns(each.whole.time_ns, 0.5) / NS_PER_MS for each in (plain, motor)]
        figures |= {"motor_en": witnesses_en(motor)[0], "motor_events_ms": events_ms[1] - events_ms[0]}
        figures["out_percent"] = 100 * followed(bench, "wander", replace(PLAIN, path="wander")).out_of_picture
        figures["open_s"] = leaves_s(followed(bench, "open", replace(PLAIN, open_loop=True)))
        figures["reversed_s"] = leaves_s(followed(bench, "reversed", replace(PLAIN, reversed=True)))
    return publish(
        "camera",
        figures,
        BARS,
        {"stolen_ms": steal_ms() - stolen_ms, "runs": [asdict(each) for each in runs]},
    )
