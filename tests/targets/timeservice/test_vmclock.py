# SPDX-License-Identifier: Apache-2.0
"""bw-timed in a guest whose hypervisor tells of disruptions, by a file in the place of /dev/vmclock0."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer, check_true, timectl

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
MAGIC, VERSION, TSC = 0x4B4C4356, 1, 1
SEQUENCE_AT, MARKER_AT = 12, 16


class VmClock:
    """The page of a VMClock device (linux/vmclock-abi.h) as a file."""

    def __init__(self, path: Path, magic: int = MAGIC, version: int = VERSION) -> None:
        """Make it."""
        self.path = path
        head = struct.pack("<IIHBBIQQ", magic, mmap.PAGESIZE, version, TSC, 1, 0, 5, 0)
        path.write_bytes(head.ljust(mmap.PAGESIZE, b"\0"))
        self._file = path.open("r+b")
        self._page = mmap.mmap(self._file.fileno(), mmap.PAGESIZE)

    def _put(self, at: int, layout: str, value: int) -> None:
        struct.pack_into(layout, self._page, at, value)

    def begin(self, marker: int, sequence: int) -> None:
        """Begin a change: the sequence is odd, the marker is there."""
        self._put(SEQUENCE_AT, "<I", sequence)
        self._put(MARKER_AT, "<Q", marker)

    def disrupt(self, marker: int, sequence: int) -> None:
        """Change the marker as a hypervisor does."""
        self.begin(marker, sequence - 1)
        self._put(SEQUENCE_AT, "<I", sequence)

    @property
    def prefix(self) -> tuple[str, str]:
        """What a command that reads it begins with."""
        return ("env", f"BWTIME_VMCLOCK={self.path}")

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._page.close()
        self._file.close()


def test_disruption_withdraws_the_time_until_servers_tell_it_anew(page: Path, tmp_path: Path) -> None:
    with (
        VmClock(tmp_path / "vmclock") as vmclock,
        ToldServer() as server,
        TimedProcess(page, "--server", server.text, *QUICK, prefix=vmclock.prefix) as timed,
    ):
        ready = timed.until(lambda line: line["type"] == "ready")
        timed.syncs(4)
        vmclock.disrupt(6, 2)
        counter = timed.until(lambda line: line["type"] == "counter")
        state = timed.until_state("unsynchronised")
        timed.until_state("synchronised")
        check_true(page)
        vmclock.disrupt(7, 4)
        timed.until_state("unsynchronised", state["reason"])
        timed.syncs(3)
        assert sum(line["type"] == "counter" and "hypervisor" in line["reason"] for line in timed.seen) == 2
        assert timed.end() == 0
    assert ready["vmclock"] == "read"
    assert "the hypervisor says that the counter was disrupted" in counter["reason"]
    assert state["reason"] == "the processor's counter stopped or jumped"


def test_disruption_is_counted(page: Path, tmp_path: Path) -> None:
    with (
        VmClock(tmp_path / "vmclock") as vmclock,
        ToldServer() as server,
        TimedProcess(page, "--server", server.text, *QUICK, prefix=vmclock.prefix) as timed,
    ):
        timed.syncs(4)
        before = timed.ctl("tracking")["disruptions"]
        vmclock.disrupt(6, 2)
        timed.until_state("unsynchronised")
        assert timed.ctl("tracking")["disruptions"] == before + 1


def test_time_that_was_withdrawn_does_not_come_back_as_the_service_ends(page: Path, tmp_path: Path) -> None:
    with VmClock(tmp_path / "vmclock") as vmclock, ToldServer() as server:
        arguments = ("--server", server.text, *QUICK)
        with TimedProcess(page, *arguments, prefix=vmclock.prefix) as timed:
            timed.syncs(4)
            server.lie = "silent"
            vmclock.disrupt(6, 2)
            timed.until_state("unsynchronised")
            disruptions = timed.ctl("tracking")["disruptions"]
            assert timed.end() == 0
        said = timectl(page, "tracking")
        assert (said["synchronised"], said["state"]) == (False, "ended")
        with TimedProcess(page, *arguments, prefix=vmclock.prefix) as timed:
            assert timed.until(lambda line: line["type"] == "state")["page_state"] == "starting"
            assert timed.ctl("tracking")["disruptions"] == disruptions


def test_marker_is_believed_once_its_change_is_complete(page: Path, tmp_path: Path) -> None:
    with (
        VmClock(tmp_path / "vmclock") as vmclock,
        ToldServer() as server,
        TimedProcess(page, "--server", server.text, *QUICK, prefix=vmclock.prefix) as timed,
    ):
        timed.syncs(4)
        vmclock.begin(6, 1)
        timed.syncs(4)
        assert not any(line["type"] == "counter" and "hypervisor" in line["reason"] for line in timed.seen)
        vmclock.disrupt(6, 2)
        timed.until(lambda line: line["type"] == "counter" and "hypervisor" in line["reason"])


def _other_magic(path: Path) -> None:
    VmClock(path, magic=MAGIC + 1).__exit__(None, None, None)


def _other_version(path: Path) -> None:
    VmClock(path, version=2).__exit__(None, None, None)


def _short(path: Path) -> None:
    path.write_bytes(b"VCLK")


def _nothing(path: Path) -> None:
    path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "absent"),
        (_other_magic, "Protocol error"),
        (_other_version, "Protocol error"),
        (_short, "Message too long"),
    ],
)
def test_without_it_the_service_runs_and_says_so(
    page: Path, tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path / "vmclock")
    prefix = ("env", f"BWTIME_VMCLOCK={tmp_path / 'vmclock'}")
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK, prefix=prefix) as timed:
        ready = timed.until(lambda line: line["type"] == "ready")
        timed.syncs(1)
    assert ready["vmclock"] == said
