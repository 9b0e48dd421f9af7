# SPDX-License-Identifier: Apache-2.0
"""Signals: what becomes of a call that waits when a handler runs, by who set it and how."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab

FAR_END = """
listener = socket.create_server(("10.98.0.2", 5001))
kind = ARGUMENTS[0]
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.bind(("10.98.0.2", 5003))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("10.98.0.2", 5001))
print("ready", flush=True)
if kind == "datagram":
    whose = datagrams.recvfrom(10)[1]
elif kind != "accept":
    peer, _ = listener.accept()
if ARGUMENTS[1] == "goes on":
    asked.recv(10)
    if kind == "accept":
        socket.create_connection(("10.98.0.1", 5001))
    elif kind == "datagram":
        datagrams.sendto(b"answer", whose)
    else:
        peer.sendall(b"answer")
elif kind not in ("accept", "datagram"):
    peer.recv(1)
"""
GOES_ON = ("restart", "restart-info", "signal")
ENDS = ("sigaction", "info", "sigset", "siginterrupt")


@pytest.mark.parametrize("call", ["recv", "datagram", "accept", "poll", "timeout"])
@pytest.mark.parametrize("setter", GOES_ON + ENDS)
def test_a_wait_goes_on_or_ends_as_the_kernels(
    lab: AccelLab, repository: Path, setter: str, call: str
) -> None:
    program = repository / ".build/linux/tests/targets/userstack/userstack-interrupted"
    goes_on = setter in GOES_ON and call not in ("poll", "timeout")
    said: list[str] = []
    for environment in (dict(os.environ), lab.near_environment()):
        far = lab.python(lab.far, FAR_END, call, "goes on" if goes_on else "ends").ready()
        argv = [str(program), setter, call, NEAR[4], FAR[4]]
        output, errors = lab.start(lab.near, *argv, environment=environment).communicate(timeout=HANG_S)
        assert not errors
        far.result()
        said.append(output)
    assert said[0] == said[1]
    assert ("EINTR" in said[0]) == (not goes_on)
