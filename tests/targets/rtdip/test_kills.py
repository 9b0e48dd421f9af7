# SPDX-License-Identifier: Apache-2.0
"""Receivers and services of RTDiP that are killed, at any moment: nothing of them stays in the kernel.

BENCHWRIGHT_RTDIP_KILLS: how many receivers (20).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.targets.bpf_objects import held_by, held_by_anybody, map_exists, maps_named, program_exists
from tests.targets.rtdip.lab import HIGH, RtdipLab, attached, bw_rtdip, header, ports

KILLS = int(os.environ.get("BENCHWRIGHT_RTDIP_KILLS", "20"))
RING = "rtdip_ring"
SURVIVOR, PORTS = 7100, (7000, 7001, 7002)
START_MAX_S = 0.03
"""More than a receiver takes to have its port: half of them are killed at any moment of that."""


def orphans(before: set[int]) -> set[int]:
    """Return the rings of no process. What other tests have is theirs."""
    return maps_named(RING) - held_by_anybody("map") - before


def descriptors(pid: int) -> int:
    return len(list(Path("/proc", str(pid), "fd").iterdir()))


@pytest.mark.timeout(300 + KILLS)
def test_receivers_that_are_killed_leave_nothing(repository: Path, tmp_path: Path) -> None:
    """Killed when they have their port, with frames in its ring, or before; another one is not disturbed."""
    chance = random.Random(1)
    with RtdipLab(bw_rtdip(repository), tmp_path) as lab:
        before = maps_named(RING) - held_by_anybody("map")
        lab.tool(lab.far, "echo", "--local", str(SURVIVOR)).wait_ready()
        service, raw = lab.services[lab.far].process.pid, lab.raw()
        at_first = (descriptors(service), held_by(service, "prog"), held_by(service, "map"))
        assert len(at_first[1]) == 1
        begin_s, with_port = time.monotonic(), 0
        for number in range(KILLS):
            port = chance.choice(PORTS)
            argv = [str(lab.program), chance.choice(("echo", "sink")), "--local", str(port)]
            receiver = subprocess.Popen([*argv, *lab.socket_of(lab.far)], stdout=subprocess.PIPE)
            assert receiver.stdout
            if number % 2:
                time.sleep(chance.uniform(0, START_MAX_S))
            else:
                assert b"ready" in receiver.stdout.readline()
                frame = lab.frame(header(port, HIGH, 4, 9) + b"data")
                for _ in range(chance.randrange(50)):
                    raw.send(frame)
            rings = held_by(receiver.pid, "map")
            receiver.kill()
            assert receiver.wait() == -signal.SIGKILL
            receiver.stdout.close()
            with_port += bool(rings)
            wait_until(lambda: ports(lab.show(lab.far)) == [SURVIVOR], "the port to be free")
            wait_until(lambda rings=rings: not any(map(map_exists, rings)), "its ring to be gone")
        print(f"{KILLS} kills in {time.monotonic() - begin_s:.1f} s, {with_port} of them had a port")
        assert with_port >= KILLS // 2
        wait_until(lambda: not orphans(before), "rings of nobody to be gone")
        wait_until(lambda: descriptors(service) == at_first[0], "descriptors of the service")
        assert (held_by(service, "prog"), held_by(service, "map")) == at_first[1:]
        asked = ["--peer", f"{lab.mac(lab.far)}/{SURVIVOR}", "--count", "20", "--interval-us", "100"]
        assert lab.tool(lab.near, "latency", *asked).result()["lost"] == 0


def test_services_that_are_killed_leave_nothing(repository: Path, tmp_path: Path) -> None:
    with RtdipLab(bw_rtdip(repository), tmp_path) as lab:
        for _ in range(max(1, KILLS // 10)):
            receiver = lab.tool(lab.far, "echo", "--local", str(PORTS[0]))
            receiver.wait_ready()
            service = lab.services[lab.far].process
            programs, maps = held_by(service.pid, "prog"), held_by(service.pid, "map")
            rings = held_by(receiver.process.pid, "map")
            assert (len(programs), len(maps), len(rings)) == (1, 4, 1)
            assert all(map(program_exists, programs))
            assert all(map(map_exists, maps | rings))
            assert rings <= maps_named(RING)
            service.kill()
            service.wait()
            assert receiver.process.wait() == 5
            wait_until(lambda p=programs: not any(map(program_exists, p)), "the program to be gone")
            wait_until(lambda m=maps | rings: not any(map(map_exists, m)), "maps to be gone")
            assert not attached(lab, lab.far)
            lab.serve(lab.far)
