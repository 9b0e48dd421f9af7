# SPDX-License-Identifier: Apache-2.0
"""A guest that says nothing, or whose emulator crashes, is started once more; any other failure stands."""

from __future__ import annotations

import subprocess
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
from hw.virtual.qemu import QemuGuest
from tests.patience import HANG_S
from tests.targets import scratch_guest
from tests.targets.scratch_guest import ScratchGuest

_binding: Any = import_module("labgrid.binding")  # no types of its own


class _Guest:
    """What the driver sees of QEMU."""

    running = True
    words = ""

    def crash(self) -> str:
        return self.words

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
                started[-1].words = str(end) if str(end).startswith("Assertion") else ""
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


def test_a_crash_of_the_emulator_is_started_again(
    power_on: Callable[..., list[_Guest]], capsys: pytest.CaptureFixture[str]
) -> None:
    started = power_on([BenchError("Assertion failed"), None])
    assert [guest.running for guest in started] == [False, True]
    said = "noticed: guest guest: QEMU crashed: Assertion failed; starting it once more\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("end", "is_crash"), [("kill -ABRT $$", True), ("kill -SEGV $$", True), ("exit 1", False)]
)
def test_only_what_ends_by_its_own_fault_has_crashed(tmp_path: Path, end: str, is_crash: bool) -> None:
    process = subprocess.Popen(["sh", "-c", f"echo an assertion >{tmp_path}/qemu.err; {end}"])
    process.wait()
    machine: Any = None
    assert QemuGuest(machine, tmp_path, process).crash() == ("an assertion" if is_crash else "")


@pytest.mark.parametrize("end", ["kill -ABRT $$", 'echo "kthread timer wakeup didn\'t happen" >$0; sleep 60'])
@pytest.mark.parametrize("failures", [1, 2])
def test_the_emulator_of_a_scratch_guest_may_fail_once(
    tmp_path: Path, failures: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    console, count = tmp_path / "console.log", iter(range(9))

    def start() -> subprocess.Popen[bytes]:
        script = end if next(count) < failures else "echo ready >$0; sleep 60"
        return subprocess.Popen(["sh", "-c", script, str(console)])

    monkeypatch.setattr(scratch_guest, "_BOOT_DEADLINE_S", HANG_S if failures == 1 else 2.0)
    image: Any = None
    guest = ScratchGuest(tmp_path, "none", image, start, start())
    try:
        if failures == 1:
            assert guest.wait_console("ready") == "ready"
        else:
            with pytest.raises(AssertionError, match="console says none"):
                guest.wait_console("ready")
    finally:
        guest.process.kill()
        guest.process.wait()


@pytest.mark.parametrize(
    ("ends", "fault", "starts"),
    [
        ([BenchError("Assertion")] * STARTS_MAX, "", STARTS_MAX),
        ([BenchError("Assertion")], Fault.NEVER_BOOTS, 1),
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
