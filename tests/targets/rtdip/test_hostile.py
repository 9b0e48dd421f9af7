# SPDX-License-Identifier: Apache-2.0
"""Hostile frames through the XDP program to receivers that run: none breaks anything, all are counted.

BENCHWRIGHT_RTDIP_FRAMES: how many (20,000); BENCHWRIGHT_RTDIP_SEED: which (1).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.link_counts import KernelShare, lost_on_link
from tests.targets.rtdip.hostile import SENDER, fate, hostile_frames
from tests.targets.rtdip.lab import INTERFACE, RtdipLab, bw_rtdip

FRAMES = int(os.environ.get("BENCHWRIGHT_RTDIP_FRAMES", "20000"))
SEED = int(os.environ.get("BENCHWRIGHT_RTDIP_SEED", "1"))
PORTS = (7000, 7001)
TIMEOUT_S = 300 + FRAMES // 1000


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("path", [[], ["--generic"]], ids=["driver", "generic"])
def test_hostile_frames_break_nothing_and_all_are_counted(
    repository: Path, tmp_path: Path, path: list[str]
) -> None:
    with RtdipLab(bw_rtdip(repository), tmp_path, *path, mtu_bytes=9000) as lab:
        echoes = [lab.tool(lab.far, "echo", "--local", str(port)) for port in PORTS]
        for echo in echoes:
            echo.wait_ready()
        raw, kernel = lab.raw(), KernelShare(lab.far, INTERFACE, SENDER)
        own = bytes.fromhex(lab.mac(lab.far).replace(":", ""))
        lost_before = lost_on_link(lab.near, INTERFACE)
        begin_s = time.monotonic()
        due: Counter[str] = Counter()
        for frame in islice(hostile_frames(SEED, own, PORTS), FRAMES):
            raw.send(frame)
            due[fate(frame, own, PORTS)] += 1
        took_s = time.monotonic() - begin_s
        due["taken"] += _wait_until_heard(lab)
        lost = lost_on_link(lab.near, INTERFACE) - lost_before
        passed, shown = kernel.frames(), lab.show(lab.far)
        kernel.close()
        frames = shown["frames"]
        print(f"{sum(due.values())} frames in {took_s:.1f} s; due {dict(due)}; {frames}; {passed=} {lost=}")

        assert sum(frames.values()) + passed + lost == sum(due.values())
        counted = {name: frames[name] for name in ("short", "malformed", "no_port")}
        counted |= {"passed": passed, "taken": frames["delivered"] + frames["full"]}
        for name, count in counted.items():
            assert due[name] - lost <= count <= due[name], name
            assert count > 0, name
        assert frames["delivered"] > FRAMES // 10
        by_port = {each["port"]: each for each in shown["ports"]}
        assert sum(each["frames"] for each in by_port.values()) == frames["delivered"]
        assert sum(each["full"] for each in by_port.values()) == frames["full"]
        for echo, port in zip(echoes, PORTS, strict=True):
            echo.stop()
            result = echo.result()
            heard = result["echoed"] + result["unsent"] + result["frames_unheard"]
            assert heard == by_port[port]["frames"]
            assert echo.errors() == ""
        assert lab.services[lab.far].process.poll() is None
        assert lab.services[lab.far].errors() == ""


def _wait_until_heard(lab: RtdipLab) -> int:
    """Send low frames until each receiver has answered the last, so has heard all before; return how many."""
    sent, deadline_s = 0, time.monotonic() + HANG_S
    for port in PORTS:
        asked = ["--peer", f"{lab.mac(lab.far)}/{port}", "--packets", "low", "--count", "1"]
        lost = 1
        while lost:  # its ring may have been full
            assert time.monotonic() < deadline_s, "no answer"
            lost = lab.tool(lab.near, "latency", *asked, "--timeout-ms", "10000").result()["lost"]
            sent += 1
    return sent
