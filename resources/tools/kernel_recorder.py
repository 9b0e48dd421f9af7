# SPDX-License-Identifier: Apache-2.0
"""Events of a node's kernel, recorded for a while: `kernel_recorder.sh` there, decoded here."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hw.errors import BenchError, CapabilityError
from hw.protocols import Node
from reports.errors import RecordError
from reports.timeline.kernel_formats import parse_formats
from reports.timeline.kernel_recording import write_recording

SCRIPT = Path(__file__).with_name("kernel_recorder.sh")
EXIT_MISSING = 3
SCHEDULING = (
    "sched/sched_switch", "irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry",
    "irq/softirq_exit", "?irq_vectors/*_entry", "?irq_vectors/*_exit", "?ipi/ipi_entry", "?ipi/ipi_exit",
)  # fmt: skip
"""Who has a processor. Hard interrupts without a handler, as timers and calls between processors: where the
machine has them."""
READING_S = 300.0
"""An emulated processor copies slowly."""


@dataclass(frozen=True)
class KernelEvents:
    """What is recorded.

    Attributes:
        events: Groups and names, `sched/sched_switch`; one with `?` before it may be a pattern, and is
            recorded where the machine has it. `tracer:timerlat`: what that tracer writes, `ftrace/timerlat`.
        buffer_kb: What the kernel holds of each CPU at most.
        cpus: Of which; None: all.
        overwrite: What a full buffer does: the oldest events go; else what comes is counted and dropped.
        clock: As the kernel calls it (`trace_clock`); its times are in ns.
        name: Of the folder on the node: recorders of several names go beside each other.
    """

    events: tuple[str, ...]
    buffer_kb: int
    cpus: tuple[int, ...] | None = None
    overwrite: bool = False
    clock: str = "mono"
    name: str = "kernel_recorder"

    @property
    def cpu_list(self) -> str:
        """Return the CPUs as the script takes them."""
        return "all" if self.cpus is None else ",".join(map(str, self.cpus))


class KernelRecorder:
    """A recording that has begun."""

    def __init__(self, node: Node, words: list[str], folder: str, cpu_list: str) -> None:
        """Take the node, the command line of its script, its folder there, and the CPUs."""
        self._node = node
        self._words = words
        self._folder = folder
        self._cpu_list = cpu_list

    def end(self, local: Path) -> Mapping[int, int]:
        """End it and fetch it; return by CPU how many events its buffer had no room for.

        Args:
            local: A file of the form of `reports.timeline.kernel_recording`.

        Raises:
            BenchError: It cannot be read.
        """
        cpus = self._node.run([*self._words, "end", self._cpu_list], timeout_s=READING_S).stdout.split()
        with TemporaryDirectory(dir=local.parent) as place:
            description = Path(place) / "description"
            self._node.get(f"{self._folder}/description", description)
            text = description.read_text(encoding="utf-8", errors="replace")
            pages = {int(cpu): Path(place) / f"cpu{cpu}" for cpu in cpus}
            for file in pages.values():
                self._node.get(f"{self._folder}/{file.name}", file)
            write_recording(local, text, pages)
        try:
            return parse_formats(text).dropped
        except RecordError as error:
            raise BenchError(f"{self._node.name}: kernel_recorder.sh: {error}") from error


@contextmanager
def kernel_recorded(node: Node, what: KernelEvents) -> Generator[KernelRecorder, None, None]:
    """Record events of a kernel while the context lasts; at its end, however it comes, all is as it was.

    Args:
        node: It is on.
        what: Which events, of which CPUs.

    Raises:
        CapabilityError: The machine has no tracefs, or does not permit it, or lacks an event or a tracer; the
            text says why.
        BenchError: The node does not work.
    """
    folder = node.fresh_folder(what.name)
    words = ["sh", node.bring(SCRIPT), folder]
    try:
        mode = "overwrite" if what.overwrite else "stop"
        argv = [*words, "begin", mode, what.clock, what.cpu_list, str(what.buffer_kb), *what.events]
        done = node.run(argv, check=False)
        if done.exit_code == EXIT_MISSING:
            raise CapabilityError(f"{node.name}: {done.stderr.strip()}")
        if done.exit_code != 0:
            raise BenchError(f"{node.name}: kernel_recorder.sh begin: {done.stderr.strip()[-300:]}")
        yield KernelRecorder(node, words, folder, what.cpu_list)
    finally:
        if node.powered:
            node.run([*words, "restore"])
