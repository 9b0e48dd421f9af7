# SPDX-License-Identifier: Apache-2.0
"""The service of RTDiP: who hears of its end, and that neither it nor they stay awake for nothing."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.rtdip.lab import INTERFACE, RtdipLab, bw_rtdip, ports
from tests.traffic_gen.lab import Stream

SERVICE_ENDED = "the service of RTDiP ended during the run"


@pytest.fixture
def lab(repository: Path, tmp_path: Path) -> Iterator[RtdipLab]:
    with RtdipLab(bw_rtdip(repository), tmp_path) as made:
        yield made


def test_more_connections_than_there_are_clients_are_closed(lab: RtdipLab) -> None:
    """Those that are left over would else keep the service awake for good."""
    lab.services[lab.far].stop()
    lab.services[lab.far].process.wait()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))  # what a service is usually begun with
        service = lab.serve(lab.far).process.pid
        lab.tool(lab.far, "echo", "--local", "7000").wait_ready()
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        with contextlib.ExitStack() as held:
            for _ in range(1100):
                each = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                each.connect(str(lab.folder / lab.far))
            before_s, begin_s = cpu_s(service), time.monotonic()
            time.sleep(0.5)
            used_s, passed_s = cpu_s(service) - before_s, time.monotonic() - begin_s
            assert used_s < passed_s / 4
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: ports(lab.show(lab.far)) == [7000], "room for another client")


def test_a_service_without_descriptors_waits_for_some(lab: RtdipLab) -> None:
    """It does not spin meanwhile, says so once, and who has waited is served, and later ones at once."""
    service = lab.services[lab.far]
    pid = service.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(list(Path(f"/proc/{pid}/fd").iterdir())), limits[1]))
    echo = lab.tool(lab.far, "echo", "--local", "7000")
    wait_until(lambda: "Too many open files" in service.errors(), "what keeps it from letting anybody in")
    before_s, begin_s = cpu_s(pid), time.monotonic()
    time.sleep(0.5)
    used_s, passed_s = cpu_s(pid) - before_s, time.monotonic() - begin_s
    assert used_s < passed_s / 10
    assert echo.process.poll() is None
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    echo.wait_ready()
    assert ports(lab.show(lab.far)) == [7000]
    assert service.errors().count("no program can be let in for now: Too many open files") == 1


def test_who_polls_ends_with_its_service(lab: RtdipLab) -> None:
    echo = lab.tool(lab.far, "echo", "--local", "7000", "--busy")
    echo.wait_ready()
    lab.services[lab.far].process.kill()
    assert echo.process.wait(HANG_S) == 5
    assert "Broken pipe" in echo.errors()


def test_a_replay_s_receiver_sleeps_when_its_service_has_ended(lab: RtdipLab, repository: Path) -> None:
    """At its real-time priority it would take the processor from all others."""
    recv, _ = lab.begin_replay(repository, Stream(12, "tcp", 20_000, 20_000), duration_ms=2000)
    wait_until(lambda: lab.show(lab.far)["frames"]["delivered"] > 0, "a message")
    lab.services[lab.far].process.kill()
    lab.services[lab.far].process.wait()
    before_s, begin_s = cpu_s(recv.process.pid), time.monotonic()
    time.sleep(0.5)
    used_s, passed_s = cpu_s(recv.process.pid) - before_s, time.monotonic() - begin_s
    assert used_s < passed_s / 2
    result = recv.result(4)
    assert result["streams"][0]["lost"] > 0
    assert (result["complete"], result["valid"]) == (True, False)
    assert result["invalid_reasons"] == [SERVICE_ENDED]


def test_a_service_that_ends_when_all_has_come_makes_the_run_invalid_too(
    lab: RtdipLab, repository: Path
) -> None:
    """Nothing is lost, yet nobody knows what else would have come; a low-latency stream alone."""
    stream = Stream(13, "tcp", 10, 50_000, low_latency=True)
    recv, (send,) = lab.begin_replay(repository, stream, duration_ms=500)
    send.result()  # the receiver still waits for what is late
    lab.services[lab.far].process.kill()
    result = recv.result(4)
    assert (result["streams"][0]["lost"], result["invalid_reasons"]) == (0, [SERVICE_ENDED])


def test_a_replay_s_sender_whose_service_ends_is_invalid(lab: RtdipLab, repository: Path) -> None:
    """No grant reaches it any more; a low-latency stream waits for none."""
    stream = Stream(13, "tcp", 10, 50_000, low_latency=True)
    _, (send,) = lab.begin_replay(repository, stream, duration_ms=500)
    send.wait_ready()
    lab.services[lab.near].process.kill()
    assert send.result(4)["invalid_reasons"] == [SERVICE_ENDED]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("set", INTERFACE, "address", "02:00:00:00:12:34"), "the interface has another address now"),
        (("delete", INTERFACE), "the interface has gone"),
    ],
    ids=["address", "gone"],
)
def test_a_service_ends_with_the_interface_that_it_found(
    lab: RtdipLab, change: tuple[str, ...], said: str
) -> None:
    """Programs have its address: no frame would reach them any more. They hear of the end, as of any."""
    echo = lab.tool(lab.far, "echo", "--local", "7000")
    echo.wait_ready()
    for settled in (("set", INTERFACE, "down"), ("set", INTERFACE, "mtu", "1400", "up")):
        subprocess.run(["ip", "-n", lab.far, "link", *settled], check=True)
    assert ports(lab.show(lab.far)) == [7000]
    subprocess.run(["ip", "-n", lab.far, "link", *change], check=True)
    service = lab.services[lab.far]
    assert service.process.wait(HANG_S) == 5
    assert service.errors() == f"bw-rtdip serve: {INTERFACE}: {said}\n"
    assert echo.process.wait(HANG_S) == 5


def test_show_and_messages_follow_the_name_of_the_interface(lab: RtdipLab) -> None:
    renamed = "r0renamed"
    for settled in (("down",), ("name", renamed), ("up",)):
        now = renamed if settled == ("up",) else INTERFACE
        subprocess.run(["ip", "-n", lab.far, "link", "set", now, *settled], check=True)
    wait_until(lambda: lab.show(lab.far)["interface"] == renamed, "the new name")
    subprocess.run(["ip", "-n", lab.far, "link", "delete", renamed], check=True)
    service = lab.services[lab.far]
    assert service.process.wait(HANG_S) == 5
    assert service.errors() == f"bw-rtdip serve: {renamed}: the interface has gone\n"


def cpu_s(pid: int) -> float:
    """Return how long a process has had a processor."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
