# SPDX-License-Identifier: Apache-2.0
"""Files that are fetched from a node: what a node says of their names is not trusted.

A name becomes a path on this machine, where the bench may work as root: `../../etc/passwd` from a target that
lies must reach nothing. What is fetched has names that the bench's own tools give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hw.protocols import Node

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def plain_names(names: Iterable[str], folders: int = 0) -> list[str]:
    """Return those of a node's names that lead nowhere else.

    Args:
        names: As the node says them.
        folders: How many folders may stand before a file's name.
    """
    return [
        name
        for name in names
        if name.count("/") <= folders and all(_PLAIN.fullmatch(part) for part in name.split("/"))
    ]


def fetch_known(node: Node, remote_folder: str, names: Iterable[str], folder: Path) -> None:
    """Copy those files of a node's folder that have the names given; other files stay where they are.

    Raises:
        BenchError: One that is there cannot be copied.
    """
    there = set(node.files(remote_folder))
    for name in names:
        if name in there:
            node.get(f"{remote_folder}/{name}", folder / name)
