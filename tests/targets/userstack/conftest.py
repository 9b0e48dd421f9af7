# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the user-mode stack's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.targets.userstack.stack import Stack

StackMaker = Callable[..., Stack]


@pytest.fixture
def stack_of(repository: Path, tmp_path: Path) -> StackMaker:
    """Return what makes a stack with the addresses that it is given."""
    library = repository / ".build" / "linux" / "targets/linux/userstack/core/libbw-stack.so"

    def make(*addresses: str, seed: int = 1, start_us: int = 0) -> Stack:
        return Stack(library, tmp_path, *addresses, seed=seed, start_us=start_us)

    return make
