# SPDX-License-Identifier: Apache-2.0
"""What makes messages of a ring late on purpose; each ends by itself, and keeps to itself what it did.

Names are drawn: nothing in the code that looks for causes may know them.
"""

from __future__ import annotations

import os
import string
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from bench.patterns import path_injectors
from bench.patterns.injected import Injected, Injector, Scene
from hw.bench import SWITCH
from hw.errors import CapabilityError
from hw.protocols import Node
from resources.control_loops.ring_trial import NODES, ring_nodes

PRIORITY = 60
"""Above the ring's programs, below the threads that serve the card's interrupts under PREEMPT_RT."""
ABOVE_EMULATORS = 70
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
SLEWED = """
tool=$1 quiet_s=$2 slow_s=$3 rounds=$4
for ((round = 0; round < rounds; round++)); do
    sleep "$quiet_s"
    "$tool" --tick-us 9990 >/dev/null
    sleep "$slow_s"
    "$tool" --tick-us 10010 >/dev/null
    sleep "$slow_s"
    "$tool" --tick-us 10000 >/dev/null
done
"""
CLOCK_S = 90
DISCARD_PORT = 9


@contextmanager
def hog(scene: Scene) -> Generator[Injected]:
    """Have a thread of random name take the target's processor again and again, under SCHED_FIFO."""
    node = scene.bench.node(scene.target.node)
    with _hogging(scene, node, ["chrt", "--fifo", str(PRIORITY)]) as name:
        yield Injected("hog", (f"thread {name}",))


@contextmanager
def held(scene: Scene) -> Generator[Injected]:
    """Have a thread of random name take the processor on which the target is emulated, and outrank it.

    Raises:
        CapabilityError: The target is no guest.
    """
    threads = scene.bench.virtual.emulating_threads(scene.target.node)
    if not threads:
        raise CapabilityError(f"{scene.target.node} is no guest: nothing of this machine emulates it")
    cpu = min(os.sched_getaffinity(next(tid for name, tid in threads.items() if name.startswith("vcpu"))))
    words = ["taskset", "--cpu-list", str(cpu), "chrt", "--fifo", str(ABOVE_EMULATORS)]
    with _hogging(scene, scene.bench.node(SWITCH), words) as name:
        yield Injected("held", (f"thread {name}, of the machine below",))


@contextmanager
def _hogging(scene: Scene, node: Node, how: Sequence[str]) -> Generator[str]:
    """Have a shell of random name compute again and again; return the name."""
    name = "".join(scene.rng.choices(string.ascii_lowercase, k=8))
    period_us, busy_us = scene.rng.randrange(300_000, 900_000), scene.rng.randrange(8_000, 30_000)
    script = scene.folder / f"{name}.sh"
    script.write_text(HOG)
    place = node.bring(script)
    shell = f"{node.fresh_folder(name)}/{name}"
    node.run(["cp", "/bin/bash", shell])
    words = [place, str(period_us), str(busy_us), str(int(scene.lasts_s * 1e6 / period_us))]
    job = node.start([*how, shell, *words], scene.folder / "injected")
    try:
        yield name
    finally:
        job.stop()


@contextmanager
def flood(scene: Scene) -> Generator[Injected]:
    """Have another node send as many small datagrams as it can, again and again: nobody reads them."""
    period_s, busy_s = scene.rng.uniform(0.4, 1.0), scene.rng.uniform(0.02, 0.06)
    # Not one of the ring's own.
    spec = scene.bench.spec
    of_ring = {node for node, _ in ring_nodes(spec, scene.target, NODES)}
    sender = next(each for each in spec.producers.values() if each.node not in of_ring)
    rounds = int(scene.lasts_s / period_s)
    words = [scene.target.test_address, str(DISCARD_PORT), f"{period_s:.4f}", f"{busy_s:.4f}", str(rounds)]
    job = scene.bench.node(sender.node).start(["python3", "-c", FLOOD, *words], scene.folder / "injected")
    try:
        yield Injected("flood", ("thread irq/", "softirq NET_RX", "thread ksoftirqd/", "interrupt "))
    finally:
        job.stop()


@contextmanager
def clock(scene: Scene) -> Generator[Injected]:
    """Have the target's clock slowed down again and again, and brought back: by 1000 ppm, as a daemon may.

    Raises:
        CapabilityError: The target has no clock of its own.
    """
    node = scene.bench.node(scene.target.node)
    if not scene.bench.virtual.emulating_threads(node.name):
        raise CapabilityError(f"{node.name} is no guest: its clock is that of the bench")
    tool = scene.bench.tool(node.name, "bw-setclock")
    quiet_s, slow_s = scene.rng.uniform(12, 16), scene.rng.uniform(6, 9)
    rounds = int(CLOCK_S / (quiet_s + 2 * slow_s)) + 1
    words = [tool, f"{quiet_s:.2f}", f"{slow_s:.2f}", str(rounds)]
    job = node.start(["bash", "-c", SLEWED, "bash", *words], scene.folder / "injected")
    try:
        messages = {"count": CLOCK_S * 200, "interval_us": 5000, "clock": "adjtimex"}
        yield Injected("clock", (f"the clock of {node.name}, corrected",), messages)
    finally:
        job.stop()
        node.run([tool, "--tick-us", "10000"])


@contextmanager
def nothing(scene: Scene) -> Generator[Injected]:
    """Do nothing."""
    del scene
    yield Injected("nothing", ())


INJECTORS: dict[str, Injector] = {
    "hog": hog,
    "flood": flood,
    "held": held,
    "delay": path_injectors.delay,
    "loss": path_injectors.loss,
    "nagle": path_injectors.nagle,
    "slow_start": path_injectors.slow_start,
    "bbr": path_injectors.bbr,
    "clock": clock,
    "nothing": nothing,
}
