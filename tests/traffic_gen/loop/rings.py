# SPDX-License-Identifier: Apache-2.0
"""Rings of programs on this machine: source, nodes and sink, each a process of its own."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.traffic_gen.two_ends import Json, end, ended, free

PATIENT = ("--timeout-ms", "60000", "--priority", "0")


def free_udp(host: str = "127.0.0.1") -> str:
    """Return an address with a UDP port that was free a moment ago."""
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((host.strip("[]"), 0))
        return f"{host}:{probe.getsockname()[1]}"


def ring(
    program: Path,
    nodes: int,
    source: Sequence[str],
    common: Sequence[str] = (),
    *,
    writes: Sequence[str] = (),
    readers: Sequence[str] = (),
    record: tuple[Path, Path] | None = None,
    host: str = "127.0.0.1",
) -> list[tuple[int, Json, str]]:
    """Run a ring to its end; return exit code, result and what else was said, the source's first.

    Args:
        program: bw-loop.
        nodes: Between source and sink.
        source: Options of the source.
        common: Options of all.
        writes: Options of those that write.
        readers: Options of those that read.
        record: bw-events and a folder, where each leaves its points in a folder of its number.
        host: Where they listen.
    """
    at = [(free_udp if "--udp" in common else free)(host) for _ in range(nodes + 1)]
    with ExitStack() as stack:
        begun: list[subprocess.Popen[str]] = []
        for number in range(nodes + 1, -1, -1):
            words = [*common, *PATIENT]
            words += ["--from", at[number - 1], *readers] if number else list(source)
            words += ["--to", at[number], *writes] if number <= nodes else []
            before: list[str | Path] = []
            if record:
                before = [record[0], "record", "--output", record[1] / str(number), "--points", "ring", "--"]
            begun.insert(0, stack.enter_context(end(*before, program, "ring", *words))[0])
        return [ended(each) for each in begun]
