# SPDX-License-Identifier: Apache-2.0
"""The service of the user-mode stack is shared: what one program does costs the others nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.targets.userstack.stackd_lab import BIND, HELLO, RESOLVE, SHOW, StackdLab

VERBS = (HELLO, BIND, RESOLVE, SHOW, 99)


def descriptors(lab: StackdLab) -> int:
    """Return how many the service has."""
    return len(list(Path("/proc", str(lab.service.process.pid), "fd").iterdir()))


@pytest.mark.parametrize("given", range(1, 6))
def test_a_first_message_leaves_no_descriptors(driver_lab: StackdLab, given: int) -> None:
    """However many come with it, whatever it asks for, once its program has ended."""
    before = descriptors(driver_lab)
    nothing = os.open("/dev/null", os.O_RDONLY)
    try:
        for verb in VERBS:
            program = driver_lab.connect(hello=False)
            program.ask(verb, given=[nothing] * given)
            program.close()
    finally:
        os.close(nothing)
    wait_until(lambda: descriptors(driver_lab) <= before, "what has come to be closed")
