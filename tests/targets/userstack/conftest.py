# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the user-mode stack's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.script import STACK_IPS, Peer
from tests.targets.userstack.stack import Family, Stack
from tests.targets.userstack.stackd_lab import StackdLab, bw_stackd

StackMaker = Callable[..., Stack]


@pytest.fixture
def stack_of(repository: Path, tmp_path: Path) -> StackMaker:
    """Return what makes a stack with the addresses that it is given."""
    library = repository / ".build" / "linux" / "targets/linux/userstack/core/libbw-stack.so"

    def make(*addresses: str, seed: int = 1, start_us: int = 0) -> Stack:
        return Stack(library, tmp_path, *addresses, seed=seed, start_us=start_us)

    return make


@pytest.fixture(params=[4, 6], ids=["ipv4", "ipv6"])
def family(request: pytest.FixtureRequest) -> Family:
    """Both families, where a script is about both."""
    return request.param


@pytest.fixture
def peer(stack_of: StackMaker, family: Family) -> Peer:
    """A scripted peer of a stack with one address."""
    return Peer(stack_of(STACK_IPS[family], start_us=1_000_000), family)


@pytest.fixture
def peer4(stack_of: StackMaker) -> Peer:
    """The same of IPv4 alone, for what does not depend on the family."""
    return Peer(stack_of(STACK_IPS[4], start_us=1_000_000), 4)


@pytest.fixture
def driver_lab(repository: Path, tmp_path: Path) -> Iterator[StackdLab]:
    """A service on an interface whose driver takes the packet path."""
    with StackdLab(bw_stackd(repository), tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def lab(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccelLab]:
    """Two ends of a link, the near one by the stack; a file of tests that needs another one has its own."""
    with AccelLab(repository / ".build/linux", tmp_path_factory.mktemp("accel")) as made:
        yield made
