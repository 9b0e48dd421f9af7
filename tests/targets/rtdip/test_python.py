# SPDX-License-Identifier: Apache-2.0
"""The Python binding of librtdip, at both ends of a link between namespaces."""

from __future__ import annotations

import gc
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from targets.embedded.rtdip.python.rtdip import (
    Address,
    Handle,
    Message,
    Priority,
    RtdipError,
    TimedOutError,
    resolve,
)
from tests.patience import HANG_S, STALL_S, wait_until
from tests.targets.rtdip.lab import RtdipLab, bw_rtdip, ports

PORT = 7000
FOLDER = Path("targets", "embedded", "rtdip", "python")


@pytest.fixture
def library(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = repository / ".build" / "linux" / "traffic-gen" / "librtdip.so"
    if not file.exists():
        pytest.skip(f"{file.relative_to(repository)} is not built: make setup")
    monkeypatch.setenv("RTDIP_LIBRARY", str(file))
    return file


@pytest.fixture
def lab(library: Path, repository: Path, tmp_path: Path) -> Iterator[RtdipLab]:
    with RtdipLab(bw_rtdip(repository), tmp_path) as made:
        yield made


def open_at(lab: RtdipLab, end: str) -> Handle:
    return Handle(lab.folder / end)


def at_once(handle: Handle) -> Message:
    return handle.receive(timeout_s=0)  # what has come; nothing is waited for


def refused(call: Callable[[], object], name: str) -> RtdipError:
    with pytest.raises(RtdipError) as caught:
        call()
    assert caught.value.name == name
    assert name in str(caught.value)
    return caught.value


def test_priorities_are_kept_from_python_to_python(lab: RtdipLab) -> None:
    with open_at(lab, lab.near) as near, open_at(lab, lab.far) as far:
        own, port = near.bind(), far.bind(PORT)
        assert (own >= 49152, port) == (True, PORT)
        to = Address(lab.mac(lab.far), PORT)
        sent = [(Priority(number * 7 % 3), number) for number in range(60)]
        for priority, number in sent:
            near.send(to, b"message %d" % number, from_port=own, priority=priority)
        wait_until(lambda: lab.show(lab.far)["frames"]["delivered"] == 60, "all frames")
        came = [far.receive(timeout_s=HANG_S) for _ in sent]
        assert [(each.priority, each.sequence) for each in came] == sorted(sent)
        assert all(each.data == b"message %d" % each.sequence for each in came)
        assert {(each.source, each.to_port) for each in came} == {(Address(lab.mac(lab.near), own), PORT)}
        assert 0 <= time.monotonic_ns() - came[0].received_monotonic_ns < HANG_S * 1e9
        far.send(came[0].source, b"")
        answer: Message = near.receive(timeout_s=HANG_S)
        assert (answer.data, answer.source, answer.priority) == (b"", Address(to.mac, 0), Priority.HIGH)
        assert (near.counts().sent, near.counts().received) == (60, 1)
        assert (far.counts().received, far.counts().unheard, far.counts().missing) == (60, 0, 0)


def test_a_wait_ends_in_time(lab: RtdipLab) -> None:
    with open_at(lab, lab.far) as far:
        far.bind(PORT)
        begin_s = time.monotonic()
        error = refused(lambda: far.receive(timeout_s=STALL_S), "ETIMEDOUT")
        assert time.monotonic() - begin_s >= STALL_S
        assert isinstance(error, TimedOutError)
        assert isinstance(error, TimeoutError)
        begin_s = time.monotonic()
        refused(lambda: at_once(far), "ETIMEDOUT")
        assert time.monotonic() - begin_s < STALL_S


def test_a_signal_does_not_shorten_a_wait(lab: RtdipLab) -> None:
    taken: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: taken.append(number))
    try:
        with open_at(lab, lab.far) as far:
            far.bind(PORT)
            begin_s = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, STALL_S / 10, STALL_S / 10)
            refused(lambda: far.receive(timeout_s=STALL_S), "ETIMEDOUT")
            assert time.monotonic() - begin_s >= STALL_S
            assert taken
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_poll_by_its_descriptor(lab: RtdipLab) -> None:
    with open_at(lab, lab.near) as near, open_at(lab, lab.far) as far:
        far.bind(PORT)
        assert select.select([far], [], [], 0)[0] == []
        for number in range(3):
            near.send(Address(lab.mac(lab.far), PORT), bytes([number]))
        assert select.select([far], [], [], HANG_S)[0] == [far]
        wait_until(lambda: lab.show(lab.far)["frames"]["delivered"] == 3, "all frames")
        assert [at_once(far).data for _ in range(3)] == [b"\0", b"\1", b"\2"]
        refused(lambda: at_once(far), "ETIMEDOUT")
        assert select.select([far], [], [], 0)[0] == []


def test_who_polls_hears_of_the_service_s_end(lab: RtdipLab) -> None:
    """After what had come before it, and though nobody waits in the library."""
    with open_at(lab, lab.near) as near, open_at(lab, lab.far) as far:
        far.bind(PORT)
        near.send(Address(lab.mac(lab.far), PORT), b"last")
        wait_until(lambda: lab.show(lab.far)["frames"]["delivered"] == 1, "the frame")
        lab.services[lab.far].process.kill()
        lab.services[lab.far].process.wait()
        assert select.select([far], [], [], HANG_S)[0] == [far]
        assert at_once(far).data == b"last"

        def said() -> str:
            with pytest.raises(RtdipError) as refusal:
                at_once(far)
            return refusal.value.name

        wait_until(lambda: said() == "EPIPE", "the end")


def test_refusals_have_names(lab: RtdipLab) -> None:
    to = Address(lab.mac(lab.far), PORT)
    refused(lambda: Handle(lab.folder / "nothing"), "ENOENT")
    with open_at(lab, lab.near) as near, open_at(lab, lab.near) as other:
        near.bind(PORT)
        refused(lambda: other.bind(PORT), "EADDRINUSE")
        refused(lambda: other.bind(PORT + 1, ring_bytes=5000), "EINVAL")
        refused(lambda: other.unbind(PORT), "EINVAL")
        refused(lambda: other.send(to, b"x", from_port=PORT), "EINVAL")
        refused(lambda: other.send(Address(to.mac, 0), b"x"), "EINVAL")
        refused(lambda: near.send(to, bytes(1489)), "EMSGSIZE")
        near.send(to, bytes(1488))
        for wrong in (Address("02:00:00:00:00", 1), Address("02:00:00:00:00:0g", 1), Address(to.mac, 65536)):
            with pytest.raises(ValueError, match=r"mac: |to\.port: 65536; allowed: 0\.\.65535"):
                near.send(wrong, b"x")
        near.unbind(PORT)
        other.bind(PORT)
        near.close()
        near.close()
        with pytest.raises(ValueError, match="closed"):
            at_once(near)
        assert ports(lab.show(lab.near)) == [PORT]
        lab.services[lab.near].process.kill()
        refused(other.receive, "EPIPE")
        refused(lambda: other.bind(PORT + 1), "EPIPE")
    refused(lambda: Handle(lab.folder / lab.near), "ECONNREFUSED")
    refused(lambda: resolve("127.0.0.2"), "EAGAIN")


def test_handles_that_are_dropped_keep_no_port(lab: RtdipLab) -> None:
    for _ in range(50):
        open_at(lab, lab.near).bind()
    gc.collect()
    assert not lab.show(lab.near)["ports"]
    code = "import sys; from rtdip import Handle; handle = Handle(sys.argv[1]); handle.bind()"
    argv = [sys.executable, "-c", code, str(lab.folder / lab.near)]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.absolute())}
    done = subprocess.run(argv, check=True, capture_output=True, env=environment, timeout=HANG_S)
    assert (done.stdout, done.stderr) == (b"", b"")


ECHO = """
import sys
from rtdip import Address, Handle, resolve
with Handle(sys.argv[1]) as handle:
    handle.bind(7000)
    print(resolve("10.99.0.1"), flush=True)
    while True:
        message = handle.receive()
        handle.send(message.source, message.data[::-1], from_port=7000, priority=message.priority)
"""


def test_a_process_of_its_own_waits_without_end_and_is_interrupted(
    lab: RtdipLab, library: Path, repository: Path
) -> None:
    ping = ["ip", "netns", "exec", lab.far, "ping", "-c", "1", "10.99.0.1"]
    subprocess.run(ping, check=True, stdout=subprocess.DEVNULL)  # so the kernel knows the neighbour
    environment = ["env", f"PYTHONPATH={repository / FOLDER}", f"RTDIP_LIBRARY={library}"]
    argv = [
        "ip",
        "netns",
        "exec",
        lab.far,
        *environment,
        sys.executable,
        "-c",
        ECHO,
        str(lab.folder / lab.far),
    ]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline().strip() == lab.mac(lab.near)
        with open_at(lab, lab.near) as near:
            own = near.bind()
            for number, priority in enumerate(Priority):
                near.send(Address(lab.mac(lab.far), PORT), b"abc", from_port=own, priority=priority)
                answer = near.receive(timeout_s=HANG_S)
                assert (answer.data, answer.priority, answer.sequence) == (b"cba", priority, number)
                assert answer.source == Address(lab.mac(lab.far), PORT)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
        assert process.returncode != 0
        assert "KeyboardInterrupt" in said
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not ports(lab.show(lab.far)), "the port to be free")


def test_the_library_shows_its_interface_alone(library: Path, repository: Path) -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listing.stdout.splitlines()}
    folder = repository / "targets" / "embedded" / "rtdip"
    declared: set[str] = set()
    for header in ("rtdip.h", "frame.h"):
        declared |= set(re.findall(r"^[a-z].*?(rtdip_\w+)\(", (folder / header).read_text(), re.MULTILINE))
    assert declared <= names
    assert {name for name in names if not name.startswith("rtdip_")} == set()
