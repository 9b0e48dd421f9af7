# SPDX-License-Identifier: Apache-2.0
"""The kernels of a ring's machines, recorded meanwhile: who has their processors, and what TCP waits for.

Nodes that are namespaces of one machine have one kernel; the machine's own also tells when it did not run
what emulates another node of the ring.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from hw.errors import BenchError, CapabilityError
from hw.open_bench import OpenBench
from reports.control_loops.ring_activities import KERNEL_RING
from reports.control_loops.ring_evidence import Emulator, KernelNode, RecordedKernel
from resources.tools.kernel_recorder import SCHEDULING, KernelEvents, KernelRecorder, kernel_recorded

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Two nodes with the same one have one kernel."""
TELL = f"""
cat {BOOT_ID}
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
cat /proc/sys/net/ipv4/tcp_congestion_control
"""
TCP = "?tcp/tcp_probe", "?tcp/tcp_retransmit_skb"
WAKING = "sched/sched_waking", "sched/sched_wakeup_new"
BUFFER_KB, OWN_BUFFER_KB = 32_768, 131_072
"""Of a CPU: of a node, and of the bench's own machine, on which others may run, too."""


class KernelsOfRing:
    """Recorders of kernels, which have begun."""

    def __init__(self) -> None:
        """Begin with none."""
        self._recorded: list[tuple[KernelRecorder, RecordedKernel]] = []

    def add(self, recorder: KernelRecorder, kernel: RecordedKernel) -> None:
        """Take one more."""
        self._recorded.append((recorder, kernel))

    def end(self, folder: Path) -> tuple[RecordedKernel, ...] | None:
        """End all, fetch what they have, and return that; None: there is none; raises BenchError."""
        for recorder, kernel in self._recorded:
            recorder.end(folder / kernel.file)
        return tuple(kernel for _, kernel in self._recorded) or None


def record_kernels(stack: ExitStack, bench: OpenBench, nodes: Iterable[str]) -> KernelsOfRing:
    """Record the kernels of nodes until the stack unwinds; one that does not permit it is left out.

    Args:
        stack: All is as it was when it has unwound.
        bench: An open bench; the nodes are on.
        nodes: Of the ring, the target first.

    Raises:
        BenchError: A node does not work.
    """
    nodes = list(dict.fromkeys(nodes))
    found = KernelsOfRing()
    for boot, own in _nodes_by_boot(bench, nodes).items():
        of_bench = boot == BOOT_ID.read_text().strip()
        emulators = [
            Emulator(node, name, tid)
            for node in nodes
            if of_bench
            for name, tid in bench.virtual.emulating_threads(node).items()
        ]
        name = own[0].node
        file = KERNEL_RING if name == nodes[0] else f"kernel-ring-{name}.gz"
        events = (*SCHEDULING, *TCP, *(WAKING if emulators else ()))
        what = KernelEvents(events, OWN_BUFFER_KB if of_bench else BUFFER_KB, clock="tai")
        try:
            recorder = stack.enter_context(kernel_recorded(bench.node(name), what))
        except CapabilityError:
            continue
        found.add(recorder, RecordedKernel(file, tuple(own), tuple(emulators)))
    return found


def _nodes_by_boot(bench: OpenBench, nodes: Iterable[str]) -> dict[str, list[KernelNode]]:
    """Return the nodes of each kernel by its boot, in their order; those that tell nothing are left out."""
    by_boot: dict[str, list[KernelNode]] = {}
    for node in nodes:
        done = bench.node(node).run(["sh", "-c", TELL], check=False)
        lines = done.stdout.split()
        if done.exit_code == 0 and len(lines) == 3:
            # Programs of a ring are bound to the first one that the bench file names.
            cpus = bench.spec.nodes[node].cpus[:1] or cpus_of(lines[1])
            by_boot.setdefault(lines[0], []).append(KernelNode(node, cpus, lines[2]))
    return by_boot


def cpus_of(said: str) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel writes it, such as `0,2-3`.

    Raises:
        BenchError: It is none.
    """
    try:
        spans = [[int(end) for end in each.split("-")] for each in said.split(",")]
    except ValueError as error:
        raise BenchError(f"no list of CPUs: {said[:100]!r}") from error
    return tuple(cpu for span in spans for cpu in range(span[0], span[-1] + 1))
