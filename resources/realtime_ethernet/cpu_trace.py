# SPDX-License-Identifier: Apache-2.0
"""What a CPU of a node does, traced by the kernel for a while: `cpu_trace.sh` there."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hw.errors import BenchError, CapabilityError
from hw.protocols import Node

SCRIPT = Path(__file__).with_name("cpu_trace.sh")
EXIT_MISSING = 3
PACKED, PLAIN = "trace.gz", "trace"
"""Files of the script: the second one of a node that has no gzip."""
READING_S = 300.0
"""An emulated processor writes a trace as text, and compresses it, slowly."""


class CpuTrace:
    """A trace that has begun."""

    def __init__(self, node: Node, words: list[str], folder: str, cpu: int) -> None:
        """Take the node, the command line of its script, its folder there, and the CPU."""
        self._node = node
        self._words = words
        self._folder = folder
        self._cpu = cpu

    def end(self, local: Path) -> int:
        """End it and fetch it, text packed by gzip; return how many events the buffer had no room for.

        Raises:
            BenchError: It cannot be read.
        """
        said = self._node.run([*self._words, "end", str(self._cpu)], timeout_s=READING_S).stdout
        file, _, dropped = said.strip().partition(" ")
        if file not in (PACKED, PLAIN) or not re.fullmatch(r"[0-9]{1,18}", dropped):
            raise BenchError(f"{self._node.name}: cpu_trace.sh: does not say how many events were dropped")
        self._node.get(f"{self._folder}/{file}", local)
        if file == PLAIN:
            _pack(local)
        return int(dropped)


def _pack(file: Path) -> None:
    plain = file.with_suffix(".plain")
    file.rename(plain)
    with plain.open("rb") as text, gzip.open(file, "wb", compresslevel=1) as packed:
        shutil.copyfileobj(text, packed)
    plain.unlink()


@contextmanager
def cpu_traced(node: Node, cpu: int, buffer_kb: int) -> Generator[CpuTrace, None, None]:
    """Trace a CPU while the context lasts; at its end, however it comes, all is as it was.

    Args:
        node: It is on.
        cpu: Which one; of the others nothing is kept.
        buffer_kb: What the kernel holds of it at most.

    Raises:
        CapabilityError: The machine has no tracefs, or does not permit it; the text says why.
        BenchError: The node does not work.
    """
    folder = node.fresh_folder("cpu_trace")
    words = ["sh", node.bring(SCRIPT), folder]
    try:
        argv = [*words, "begin", str(cpu), str(buffer_kb)]
        done = node.run(argv, check=False)
        if done.exit_code == EXIT_MISSING:
            raise CapabilityError(f"{node.name}: {done.stderr.strip()}")
        if done.exit_code != 0:
            raise BenchError(f"{node.name}: cpu_trace.sh begin: {done.stderr.strip()[-300:]}")
        yield CpuTrace(node, words, folder, cpu)
    finally:
        if node.powered:
            node.run([*words, "restore"])
