# SPDX-License-Identifier: Apache-2.0
"""Calls inside of a network namespace, in a thread of its own: the rest of the process stays where it is."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

_CLONE_NEWNET = 0x40000000


def in_namespace(namespace: str, function: Callable[[], Result]) -> Result:
    """Run a function in a namespace, with all its children; return what it returns, raise what it raises.

    Args:
        namespace: As `ip netns` names it.
        function: Called once; sockets that it makes are everybody's afterwards.
    """
    answers: list[Result] = []
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            with Path("/run/netns", namespace).open("rb") as file:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            answers.append(function())
        except BaseException as error:  # noqa: BLE001 - it is raised again below, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
