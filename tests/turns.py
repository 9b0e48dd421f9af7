# SPDX-License-Identifier: Apache-2.0
"""Files of tests run beside each other; those that need the one bench of a name take turns."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def in_turn(name: str) -> Generator[None, None, None]:
    """Wait until no other process of tests has this name, and have it while the context lasts."""
    path = Path(tempfile.gettempdir()) / f"benchwright-tests-{name}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
