# SPDX-License-Identifier: Apache-2.0
"""A guest that says nothing after power-on is started once more; any other failure stands."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.drivers import virtual_guest
from hw.drivers.virtual_guest import STARTS_MAX, VirtualGuestDriver
from hw.errors import BenchError
from hw.faults import Fault
from hw.virtual.console_log import SilentBootError

_binding: Any = import_module("labgrid.binding")  # no types of its own


class _Guest:
    """What the driver sees of QEMU."""

    running = True

    def power_off(self) -> None:
        self.running = False


@pytest.fixture
def power_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[_Guest]]:
    """Return a function that powers a guest on whose boots end as it is told; it returns the guests."""

    def power_on(ends: list[BenchError | None], fault: str = "") -> list[_Guest]:
        started: list[_Guest] = []

        def start(_machine: object, _folder: Path) -> _Guest:
            started.append(_Guest())
            return started[-1]

        def wait(_name: str, _log: Path, _is_running: object) -> None:
            if (end := ends[len(started) - 1]) is not None:
                raise end

        class Driver(VirtualGuestDriver):
            def __init__(self) -> None:
                self._running = None
                self.state = _binding.BindingState.active

            @property
            def _guest(self) -> Any:
                return SimpleNamespace(fault=fault, folder=str(tmp_path))

            def _machine(self, folder: Path) -> Any:  # noqa: ARG002 - of the driver
                return None

        def named(_driver: object) -> str:
            return "guest"

        monkeypatch.setattr(virtual_guest, "QemuGuest", SimpleNamespace(start=start))
        monkeypatch.setattr(virtual_guest, "wait_for_boot", wait)
        monkeypatch.setattr(virtual_guest, "target_name", named)
        Driver().on()
        return started

    return power_on


def test_silence_once_is_started_again(
    power_on: Callable[..., list[_Guest]], capsys: pytest.CaptureFixture[str]
) -> None:
    started = power_on([SilentBootError("guest x: never boots"), None])
    assert [guest.running for guest in started] == [False, True]
    assert capsys.readouterr().err == "noticed: guest x: never boots; starting it once more\n"


@pytest.mark.parametrize(
    ("ends", "fault", "starts"),
    [
        ([SilentBootError("silent")] * STARTS_MAX, "", STARTS_MAX),
        ([SilentBootError("silent")], Fault.NEVER_BOOTS, 1),
        ([BenchError("panic")], "", 1),
    ],
)
def test_any_other_failure_stands(
    power_on: Callable[..., list[_Guest]], ends: list[BenchError | None], fault: str, starts: int
) -> None:
    assert starts == len(ends)
    with pytest.raises(BenchError):
        power_on(ends, fault)
