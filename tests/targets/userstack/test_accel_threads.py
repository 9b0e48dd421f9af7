# SPDX-License-Identifier: Apache-2.0
"""Threads that are cancelled, and descriptors that are closed, while a call waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, AccelLab

FAR_END = """
listener = socket.create_server(("10.98.0.2", 5001))
print("ready", flush=True)
peer, _ = listener.accept()
while data := peer.recv(10):
    time.sleep(0.2)
    peer.sendall(data)
"""


@pytest.mark.parametrize("case", ["cancel", "close-epoll"])
def test_what_waits_beside_it_goes_on(lab: AccelLab, repository: Path, case: str) -> None:
    program = repository / ".build/linux/tests/targets/userstack/userstack-threads"
    for environment in (dict(os.environ), lab.near_environment()):
        far = lab.python(lab.far, FAR_END).ready()
        process = lab.start(lab.near, str(program), case, FAR[4], environment=environment)
        output, errors = process.communicate(timeout=HANG_S)
        assert (output, errors) == (f"{case}: done\n", "")
        far.result()
