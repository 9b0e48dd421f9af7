# SPDX-License-Identifier: Apache-2.0
"""What makes messages of a ring late on purpose; each ends by itself, and keeps to itself what it did.

Names are drawn: nothing in the code that looks for causes may know them.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.bench import TargetSpec
from hw.open_bench import OpenBench
from hw.protocols import Job
from resources.control_loops.ring_trial import NODES, ring_nodes

PRIORITY = 60
"""Above the ring's programs, below the threads that serve the card's interrupts under PREEMPT_RT."""
HOG = """
period_us=$1 busy_us=$2 rounds=$3
at=$((${EPOCHREALTIME/./} + period_us))
for ((round = 0; round < rounds; round++)); do
    left=$((at - ${EPOCHREALTIME/./}))
    ((left > 0)) && sleep "$((left / 1000000)).$(printf %06d $((left % 1000000)))"
    end=$((${EPOCHREALTIME/./} + busy_us))
    while ((${EPOCHREALTIME/./} < end)); do :; done
    at=$((at + period_us))
done
"""
FLOOD = """
import socket, sys, time
address, port, period_s, busy_s, rounds = sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:6])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at = time.monotonic() + period_s
for _ in range(int(rounds)):
    time.sleep(max(0.0, at - time.monotonic()))
    end = time.monotonic() + busy_s
    while time.monotonic() < end:
        out.sendto(b"x" * 32, (address, port))
    at += period_s
"""
DISCARD_PORT = 9


@dataclass(frozen=True)
class Injected:
    """What was done.

    Attributes:
        kind: Which injector.
        guilty: Beginnings of the names of activities one of which has to be named; empty: nothing was done.
    """

    kind: str
    guilty: tuple[str, ...]


Injector = Callable[[OpenBench, TargetSpec, random.Random, Path, float], tuple[Job | None, Injected]]


def hog(
    bench: OpenBench, target: TargetSpec, rng: random.Random, folder: Path, lasts_s: float
) -> tuple[Job, Injected]:
    """Have a thread of random name take the target's processor again and again, under SCHED_FIFO."""
    name = "".join(rng.choices(string.ascii_lowercase, k=8))
    period_us, busy_us = rng.randrange(300_000, 900_000), rng.randrange(8_000, 30_000)
    node = bench.node(target.node)
    script = folder / f"{name}.sh"
    script.write_text(HOG)
    place = node.bring(script)
    shell = f"{Path(place).parent}/{name}"
    node.run(["cp", "/bin/bash", shell])
    words = [place, str(period_us), str(busy_us), str(int(lasts_s * 1e6 / period_us))]
    job = node.start(["chrt", "--fifo", str(PRIORITY), shell, *words], folder / "injected")
    return job, Injected("hog", (f"thread {name}",))


def flood(
    bench: OpenBench, target: TargetSpec, rng: random.Random, folder: Path, lasts_s: float
) -> tuple[Job, Injected]:
    """Have another node send as many small datagrams as it can, again and again: nobody reads them."""
    period_s, busy_s = rng.uniform(0.4, 1.0), rng.uniform(0.02, 0.06)
    # Not one of the ring's own.
    of_ring = {node for node, _ in ring_nodes(bench.spec, target, NODES)}
    sender = next(each for each in bench.spec.producers.values() if each.node not in of_ring)
    node = bench.node(sender.node)
    rounds = int(lasts_s / period_s)
    words = [target.test_address, str(DISCARD_PORT), f"{period_s:.4f}", f"{busy_s:.4f}", str(rounds)]
    job = node.start(["python3", "-c", FLOOD, *words], folder / "injected")
    return job, Injected("flood", ("thread irq/", "softirq NET_RX", "thread ksoftirqd/", "interrupt "))


def nothing(
    bench: OpenBench, target: TargetSpec, rng: random.Random, folder: Path, lasts_s: float
) -> tuple[None, Injected]:
    """Do nothing."""
    del bench, target, rng, folder, lasts_s
    return None, Injected("nothing", ())


INJECTORS: dict[str, Injector] = {"hog": hog, "flood": flood, "nothing": nothing}


@contextmanager
def injected(
    kind: str, bench: OpenBench, target: TargetSpec, rng: random.Random, folder: Path, lasts_s: float
) -> Generator[Injected]:
    """Have something make messages late while the context lasts, for some seconds at most."""
    folder.mkdir(parents=True, exist_ok=True)
    job, done = INJECTORS[kind](bench, target, rng, folder, lasts_s)
    try:
        yield done
    finally:
        if job is not None:
            job.stop()
