# SPDX-License-Identifier: Apache-2.0
"""Which processes of a bench run on this machine; those of other benches are none of a test's business."""

from __future__ import annotations

from pathlib import Path

from hw.bench import BenchSpec
from hw.session import RUN_FOLDER
from hw.virtual import network
from hw.virtual.bench_network import namespace_of


def bench_processes(spec: BenchSpec) -> dict[int, list[str]]:
    """Return what runs in a bench's namespaces or names its run folder, with its command line."""
    inside = {
        pid for node in spec.nodes.values() for pid in network.processes(namespace_of(spec.name, node.name))
    }
    folder = f"{RUN_FOLDER / spec.name}/"
    found: dict[int, list[str]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace").strip("\0").split("\0")
        except OSError:
            continue
        if command != [""] and (int(process.name) in inside or any(folder in word for word in command)):
            found[int(process.name)] = command
    return found


def guests_of(spec: BenchSpec) -> dict[str, int]:
    """Return the processes that run a bench's guests, by the guest's name."""
    found: dict[str, int] = {}
    for pid, command in bench_processes(spec).items():
        if Path(command[0]).name.startswith("qemu-system"):
            guest = command[command.index("-name") + 1].split(",")[0]
            assert guest not in found, f"{guest} runs twice: {pid} and {found[guest]}"
            found[guest] = pid
    return found
