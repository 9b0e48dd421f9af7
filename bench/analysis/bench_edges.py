# SPDX-License-Identifier: Apache-2.0
"""How fast are edges found in samples, against copying them, and how much memory do 10^6 pairs take?

copy       numpy copies the int16 samples of all frames, one block, into memory that it has touched before
edges      scope.edges.find_edges: frames to times of edges, hysteresis, faults and fit included

Frames have 10,000 samples, as in examples of the Tektronix MSO guides, with one edge each; frames of 1000,
as a Keysight InfiniiVision sends after *RST, are timed besides: there the handling of a frame weighs more.
The memory is the peak of a process that does nothing else: interpreter and numpy included, 10^6 pairs of
edges from two channels, timed, paired and counted, acquisition by acquisition.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.lab.options import Options, takes
from bench.lab.processes import answer_of, peak_resident_bytes
from bench.lab.report import RUNS_MIN, Bar, alternate, median_ratio, publish, say
from scope.delay import DelayMeter
from scope.edges import EdgeSettings, find_edges, settle_fit
from scope.levels import estimate_levels
from scope.waveform import Acquisition, Frame, Scaling

SAMPLES_TOTAL = 16_000_000
LONG, SHORT = 10_000, 1000
PAIRS = 1_000_000
SEGMENTS = 1000
INTERVAL_S = 2e-10
RISE_SAMPLES = 3.0
NOISE_CODES = 200
AMPLITUDE_CODES = 20_000
BYTES_PER_MIB = 1 << 20
BARS = {"speed_of_copy": Bar(0.1, at_least=True), "memory_mib": Bar(64)}


def make_frames(channel: int, count: int, samples: int, seed: int) -> tuple[NDArray[np.int16], list[Frame]]:
    """Return frames with one rising edge near their middle, and the block that their samples lie in."""
    rng = np.random.default_rng(seed)
    block = np.empty((count, samples), np.int16)
    frames: list[Frame] = []
    places = np.arange(samples)
    for index in range(count):
        edge = samples / 2 + rng.uniform(-samples / 20, samples / 20)
        step = AMPLITUDE_CODES * (np.tanh((places - edge) * (1.2 / RISE_SAMPLES)) / 2)
        block[index] = np.rint(step + rng.standard_normal(samples) * NOISE_CODES)
        scaling = Scaling(1e-4, 0.0, 1.0, INTERVAL_S, -samples / 2 * INTERVAL_S, -32768, 32767)
        frames.append(Frame(channel, index, block[index], scaling, index * 1e-3))
    return block, frames


def time_copy(block: NDArray[np.int16], into: NDArray[np.int16]) -> float:
    """Return seconds of one copy."""
    start = time.perf_counter()
    np.copyto(into, block)
    return time.perf_counter() - start


def time_edges(frames: list[Frame], settings: EdgeSettings) -> float:
    """Return seconds of one extraction; every frame must yield its edge."""
    start = time.perf_counter()
    found = find_edges(frames, settings)
    elapsed = time.perf_counter() - start
    if len(found.time_s) != len(frames):
        raise RuntimeError(f"{len(found.time_s)} edges in {len(frames)} frames")
    return elapsed


def measure_speed(samples: int, runs: int) -> dict[str, list[float]]:
    """Return seconds of copies and extractions of frames of one length, by turns."""
    block, frames = make_frames(1, SAMPLES_TOTAL // samples, samples, 1)
    levels = estimate_levels(frames[:64])
    settings = EdgeSettings(levels, settle_fit(frames[:64], levels))
    into = np.zeros_like(block)
    time_edges(frames, settings)
    return alternate(
        {"copy": partial(time_copy, block, into), "edges": partial(time_edges, frames, settings)}, runs
    )


def count_pairs(pairs: int) -> dict[str, float]:
    """Take acquisitions until so many pairs are counted; return how many, their spread, and peak memory."""
    meter = DelayMeter(1, 2)
    # One acquisition comes again and again: drawing noise anew would take longer than the rest.
    frames = [make_frames(channel, SEGMENTS, SHORT, channel)[1] for channel in (1, 2)]
    taken = Acquisition("bench", (*frames[0], *frames[1]), SEGMENTS)
    start = time.perf_counter()
    for _ in range(-(-pairs // SEGMENTS)):
        meter.add(taken)
    result = meter.result()
    if result is None or result.delays.count < pairs:
        raise RuntimeError(f"{meter.counts.pairs} of {pairs} pairs")
    return {
        "pairs": result.delays.count,
        "deviation_s": result.delays.deviation_s,
        "elapsed_s": time.perf_counter() - start,
        "peak_bytes": peak_resident_bytes("self"),
    }


def measure_memory(pairs: int) -> dict[str, float]:
    """Count pairs in a process of its own."""
    return answer_of([sys.executable, "-m", "bench", "edges", "--count-pairs", str(pairs)])


@takes(
    runs=(2 * RUNS_MIN, "runs of each side"),
    pairs=(PAIRS, "of the memory's run"),
    count_pairs=(0, "only count so many pairs here and print the memory"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    if options.count_pairs:
        print(json.dumps(count_pairs(options.count_pairs)))
        return 0
    seconds = {samples: measure_speed(samples, options.runs) for samples in (LONG, SHORT)}
    memory = measure_memory(options.pairs)
    figures = {
        "speed_of_copy": median_ratio(seconds[LONG]["copy"], seconds[LONG]["edges"]),
        "speed_of_copy_short_frames": median_ratio(seconds[SHORT]["copy"], seconds[SHORT]["edges"]),
        "samples_per_s": SAMPLES_TOTAL / statistics.median(seconds[LONG]["edges"]),
        "memory_mib": memory["peak_bytes"] / BYTES_PER_MIB,
        "pairs_per_s": memory["pairs"] / memory["elapsed_s"],
    }
    for samples, sides in seconds.items():
        for side, runs in sides.items():
            say(f"{samples:6} {side:6} {' '.join(f'{1e3 * run:.1f} ms' for run in runs)}")
    return publish("edges", figures, BARS, {"samples": SAMPLES_TOTAL, "runs_s": seconds, "memory": memory})
