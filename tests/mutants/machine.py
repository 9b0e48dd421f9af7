# SPDX-License-Identifier: Apache-2.0
"""This machine while faults are tried: what one leaves undone stays with it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

from hw.virtual import host, network

_NAMESPACES = 'mkdir -p /run/netns && mount -t tmpfs mutants /run/netns && exec "$@"'


@contextmanager
def kept() -> Generator[None]:
    """Hold the settings of this machine as an open bench does, and give them back at the end.

    Benches of tests find them as they want them then, and are not the last to close: a fault in writing down
    or undoing what they change has nothing to leave. Without root no test changes any.

    Raises:
        BenchError: One cannot be given back; the next bench that opens does it, as after any bench.
    """
    if os.geteuid() != 0:
        yield
        return
    with host.machine_settings(network.PRODUCER_SYSCTLS["net.ipv4.tcp_congestion_control"]):
        yield


def apart(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that has names of network namespaces to itself: those left are gone when it ends."""
    if os.geteuid() != 0:
        return command
    private = ("unshare", "--mount", "--propagation", "private")
    return (*private, "sh", "-euc", _NAMESPACES, "sh", *command)
