# SPDX-License-Identifier: Apache-2.0
"""A library and a service of RTDiP of two builds: neither takes the other's words for its own."""

from __future__ import annotations

import array
import errno
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from targets.embedded.rtdip.python.rtdip import Handle, RtdipError
from tests.patience import HANG_S
from tests.targets.rtdip.lab import RtdipLab, bw_rtdip

HELLO, BIND = 0, 1
OWN, OTHER, NONE = 1, 77, 0
REQUEST, ANSWER = struct.Struct("=IIHH"), struct.Struct("=iI6sHI")
WITHOUT_VERSION = struct.Struct("=iI6sH")  # an answer of builds before there were versions


def _ask(lab: RtdipLab, request: bytes) -> tuple[tuple[int, ...], int, bytes]:
    """Return an answer, () for none, how many descriptors come with it, and what comes behind it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as program:
        program.settimeout(HANG_S)
        program.connect(str(lab.folder / lab.far))
        program.send(request)
        data, descriptors, _, _ = socket.recv_fds(program, 4096, 4)
        for each in descriptors:
            socket.close(each)
        behind = program.recv(4096) if not descriptors else b"?"
        if not data:
            return (), 0, behind
        result, _, _, _, version = ANSWER.unpack(data)
        return (result, version), len(descriptors), behind


def test_a_service_refuses_another_version_and_says_which(repository: Path, tmp_path: Path) -> None:
    with RtdipLab(bw_rtdip(repository), tmp_path) as lab:
        assert _ask(lab, REQUEST.pack(HELLO, 0, 0, OWN)) == ((0, OWN), 1, b"?")
        for version in (NONE, OTHER, OTHER):
            for request in (REQUEST.pack(HELLO, 0, 0, version), REQUEST.pack(BIND, 4096, 7000, version)):
                answer = (-errno.EPROTO, OWN) if version else ()  # which `show` of those builds would print
                assert _ask(lab, request) == (answer, 0, b"")
        longer = REQUEST.pack(HELLO, 0, 0, OTHER + 1) + bytes(4)
        assert _ask(lab, longer) == ((-errno.EPROTO, OWN), 0, b"")
        assert lab.show(lab.far)["ports"] == []
        errors = lab.services[lab.far].errors()
    for version in (NONE, OTHER, OTHER + 1):
        assert errors.count(f"speaks version {version} of the local protocol, this service version 1") == 1


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        pytest.param(ANSWER.pack(0, 4096, bytes(6), 1488, OTHER), OTHER, id="another"),
        pytest.param(WITHOUT_VERSION.pack(0, 4096, bytes(6), 1488), NONE, id="none"),
        pytest.param(
            WITHOUT_VERSION.pack(0, 4096, bytes(6), 1488) + b'{"interface"', NONE, id="none, a text"
        ),
    ],
)
def test_a_library_refuses_a_service_of_another_version(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, named: int
) -> None:
    """Though it says that all is well, with a descriptor; `show` and the tools say why."""
    program = bw_rtdip(repository)
    monkeypatch.setenv("RTDIP_LIBRARY", str(repository / ".build" / "linux" / "traffic-gen" / "librtdip.so"))
    path = tmp_path / "service"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(HANG_S)
        service = threading.Thread(target=_answer, args=(listener, answer, 3))
        service.start()
        with pytest.raises(RtdipError, match="EPROTO"):
            Handle(path)
        place = ["--socket", str(path)]
        shown, echo = (
            subprocess.run(
                [program, *verb, *place], check=False, capture_output=True, text=True, timeout=HANG_S
            )
            for verb in (["show"], ["echo", "--local", "7000"])
        )
        service.join()
    assert (shown.returncode, shown.stdout) == (3, "")
    assert f"the service speaks version {named} of the local protocol, this program version 1" in shown.stderr
    assert echo.returncode == 3
    assert "Protocol error" in echo.stderr


def _answer(listener: socket.socket, answer: bytes, times: int) -> None:
    """Give programs, one after the other, one answer each, with a descriptor."""
    for _ in range(times):
        program, _ = listener.accept()
        with program:
            program.settimeout(HANG_S)
            program.recv(4096)
            descriptor = array.array("i", [listener.fileno()])
            program.sendmsg([answer], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])
            program.recv(4096)
