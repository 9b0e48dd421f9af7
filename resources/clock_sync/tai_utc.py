# SPDX-License-Identifier: Apache-2.0
"""Read TAI - UTC from the kernel of every node that measures, and refuse nodes that differ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from hw.errors import BenchError
from hw.open_bench import Nodes
from reports.clock_sync.tai_utc import NodeTaiUtc, TaiUtc, write_tai_utc

TOOL = "bw-setclock"
"""Without options it changes nothing, and prints what adjtimex says."""


def common_tai_utc_s(bench: Nodes, nodes: Iterable[str], folder: Path) -> int:
    """Read TAI - UTC on nodes, write it to the evidence, and return the value that all of them use.

    Args:
        bench: An open bench.
        nodes: Nodes that are on; the node of the reference clock and that of the witness come besides.
        folder: `tai-utc.json` goes here.

    Raises:
        BenchError: Two nodes differ, or one does not say; the text names each with its value.
    """
    spec = bench.spec
    wanted = [*nodes, spec.clocks[spec.reference_clock].node]
    if spec.witness is not None:
        wanted.append(spec.witness.node)
    return agreed_s(write_tai_utc(folder, [read_tai_utc(bench, name) for name in dict.fromkeys(wanted)]))


def agreed_s(found: TaiUtc) -> int:
    """Return the value that all nodes use; raises BenchError, which names each with its own."""
    if found.agreed_s is None:
        raise BenchError(
            f"TAI - UTC is not the same on every node: {found.text()}; set it, as with `{TOOL} --tai-utc-s N`"
        )
    return found.agreed_s


def read_tai_utc(bench: Nodes, name: str) -> NodeTaiUtc:
    """Return TAI - UTC as the kernel of a node has it.

    Raises:
        BenchError: It does not say.
    """
    said = bench.node(name).run([bench.tool(name, TOOL)]).stdout
    try:
        kernel_s = json.loads(said)["tai_utc_s"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BenchError(f"{name}: {TOOL} does not say TAI - UTC: {said.strip()[:200]!r}") from error
    if type(kernel_s) is not int:
        raise BenchError(f"{name}: {TOOL}: tai_utc_s: must be an integer, found {kernel_s!r}")
    return NodeTaiUtc(name, kernel_s)
