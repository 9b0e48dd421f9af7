# SPDX-License-Identifier: Apache-2.0
"""What a bench that is closed has left on this machine; it should be nothing."""

from __future__ import annotations

from pathlib import Path

from hw.bench import SWITCH, BenchSpec
from hw.journal import JOURNAL_FOLDER, Journal
from hw.session import RUN_FOLDER
from hw.virtual.bench_network import namespace_of

NAMESPACES = Path("/run/netns")


def leftovers(spec: BenchSpec) -> list[str]:
    """Return the traces of a bench: namespaces, with what runs in them, files of its run, changes not undone.

    Args:
        spec: The bench; nobody has it open.
    """
    own = sorted({namespace_of(spec.name, node) for node in (*spec.nodes, SWITCH)})
    found = [f"namespace {name}" for name in own if (NAMESPACES / name).exists()]
    folder = RUN_FOLDER / spec.name
    found += [str(folder)] if folder.exists() else []
    if JOURNAL_FOLDER.exists():
        found += [
            f"a change not undone: {change}" for change in Journal(spec.name, {}, JOURNAL_FOLDER).pending()
        ]
    return found
