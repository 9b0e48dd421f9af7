# SPDX-License-Identifier: Apache-2.0
"""A client that takes part in an experiment: it sends messages and says how long each answer took."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from bwphase import Phases

MESSAGE = bytes(range(48))
phases = Phases()


@phases.phase("send")
def send(parameters: dict[str, Any]) -> dict[str, float]:
    """Send `count` messages to `address`, `port`; keep each round trip in the file `round-trips`, in ns."""
    trips_ns: list[int] = []
    with socket.create_connection((parameters["address"], parameters["port"])) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(parameters["count"]):
            sent_ns = time.monotonic_ns()
            server.sendall(MESSAGE)
            if server.recv(len(MESSAGE), socket.MSG_WAITALL) != MESSAGE:
                raise ConnectionError("another message came back")
            trips_ns.append(time.monotonic_ns() - sent_ns)
    Path("round-trips").write_text("\n".join(map(str, trips_ns)) + "\n")
    return {"answered": len(trips_ns), "median_us": median(trips_ns) / 1000}


if __name__ == "__main__":
    sys.exit(phases.run())
