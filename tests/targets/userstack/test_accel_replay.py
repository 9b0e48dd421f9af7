# SPDX-License-Identifier: Apache-2.0
"""The 12-producer pattern by the user-mode stack at either end, over IPv4 and IPv6."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.link import kernel_counts
from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab
from tests.targets.userstack.test_accel import COUNTED
from tests.traffic_gen.lab import CLOCK_PORT, Plan, tai_ns

Json = dict[str, Any]
PRODUCERS = tuple(range(1, 13))
LEADS_S = (2, 6, 20, 60)
"""From the plan to its slot 0: who takes 48 ports is not ready at once, on a busy machine less so."""
TOO_LATE = 4


def _replay(lab: AccelLab, program: str, plan: Path, receiving: str, sending: str) -> Json | None:
    """Return the consumer's result; None: slot 0 was past before a tool was ready."""
    recv = lab.start(receiving, program, "recv", str(plan), "--check-fill")
    assert recv.stdout is not None
    ready = recv.stdout.readline()
    send = lab.start(sending, program, "send", str(plan), "--producer", "all")
    sent, send_errors = send.communicate(timeout=HANG_S)
    output, errors = recv.communicate(timeout=HANG_S)
    if TOO_LATE in (send.returncode, recv.returncode):
        return None
    assert send.returncode == 0, sent + send_errors
    assert recv.returncode == 0, ready + output + errors
    result: Json = json.loads(output.splitlines()[-1])
    return result


@pytest.mark.parametrize("by_stack", ["recv", "send"])
def test_every_message_comes_over_either_family(
    lab: AccelLab, repository: Path, tmp_path: Path, family: int, by_stack: str
) -> None:
    """Each of TCP; and the kernel carries nothing at the near end."""
    receiving, sending = (lab.near, lab.far) if by_stack == "recv" else (lab.far, lab.near)
    here, there = (NEAR[family], FAR[family]) if by_stack == "recv" else (FAR[family], NEAR[family])
    pattern = (repository / "traffic-gen/patterns/daq12.toml").read_text()
    program = str(repository / ".build/linux/traffic-gen/bw-traffic")
    clock = f"{there}:{CLOCK_PORT}" if family == 4 else f"[{there}]:{CLOCK_PORT}"
    before = kernel_counts(lab.near)
    responder = lab.start(sending, program, "offset", "--serve", clock)
    assert responder.stdout is not None
    assert json.loads(responder.stdout.readline())["address"] == clock
    result: Json | None = None
    for lead_s in LEADS_S:
        plan = Plan(
            pattern,
            PRODUCERS,
            duration_ms=1000,
            phase="aligned-12",
            consumer=here,
            producer=there,
            capture_stamps=False,
            start_tai_ns=tai_ns() + lead_s * 10**9,
        )
        result = _replay(lab, program, plan.write(tmp_path / "plan.toml"), receiving, sending)
        if result:
            break
    responder.terminate()
    responder.communicate(timeout=HANG_S)
    after = kernel_counts(lab.near)
    assert {name: after[name] - before[name] for name in COUNTED if after[name] != before[name]} == {}
    assert result
    assert set(result["hostile"].values()) == {0}
    assert result["clocks"][0]["kept"] > 0
    streams = [each for each in result["streams"] if each["transport"] == "tcp"]
    assert len(streams) > len(PRODUCERS)
    for stream in streams:
        assert (stream["received"], stream["lost"]) == (stream["expected"], 0), stream["id"]
    datagrams = [each for each in result["streams"] if each["transport"] == "udp"]
    assert sum(each["received"] for each in datagrams) > 0
