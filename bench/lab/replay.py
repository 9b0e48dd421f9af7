# SPDX-License-Identifier: Apache-2.0
"""Plans for `bw-traffic`, and a run of it across a pair of namespaces."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from bench.lab.namespaces import Json, Program, receiver_cpu, sender_cpu
from bench.lab.pair import CONSUMER, PRIORITY, PROGRAM, Pair, producer_address
from bench.lab.processes import last_object
from bench.lab.report import REPOSITORY

TAI_UTC_S = 37
BASE_PORT = 20000
LEAD_S = 1.5
"""From writing a plan to its slot 0."""
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Run:
    """What a plan says besides its pattern; `pattern` is the text of a pattern file."""

    pattern: str
    producers: int
    warmup_ms: int
    duration_ms: int
    phase: str = "staggered"
    scale: int = 1
    grace_ms: int = 500
    spin_us: int = 0
    capture_stamps: bool = True

    def plan(self, start_tai_ns: int) -> str:
        """Return the plan file."""
        text = (
            f'[run]\nschema = "benchwright.plan/1"\nnonce = "0123456789abcdef"\nphase = "{self.phase}"\n'
            f"scale = {self.scale}\nbase_port = {BASE_PORT}\nwarmup_ms = {self.warmup_ms}\n"
            f"duration_ms = {self.duration_ms}\ngrace_ms = {self.grace_ms}\nspin_us = {self.spin_us}\n"
            f'correction = "none"\ntai_utc_s = {TAI_UTC_S}\n'
            f"capture_stamps = {str(self.capture_stamps).lower()}\n\n"
            f'[consumer]\naddress = "{CONSUMER}"\n\n'
            f'[[clock]]\nname = "host"\naddress = "{producer_address(1)}"\nport = 19999\n'
        )
        for number in range(1, self.producers * self.scale + 1):
            text += (
                f'\n[[producer]]\nnumber = {number}\naddress = "{producer_address(number)}"\n'
                f'clock = "host"\nstart_tai_ns = {start_tai_ns}\nrate_ppb = 0\n'
            )
        return f"{text}\n{self.pattern}"

    @property
    def length_s(self) -> float:
        """From slot 0 to the end of the grace time."""
        return (self.warmup_ms + self.duration_ms + self.grace_ms) / 1000


def udp_pattern(producers: int, streams: int, size_bytes: int, period_us: int) -> str:
    """Return a pattern of equal UDP streams, so many a producer."""
    text = '[pattern]\nschema = "benchwright.pattern/1"\nname = "bench"\nsource = "benchmark"\n'
    for producer in range(1, producers + 1):
        for kind in range(streams):
            text += (
                f'\n[[stream]]\nid = {producer * 10 + kind}\ntransport = "udp"\nsize_bytes = {size_bytes}\n'
                f"period_us = {period_us}\nbudget_us = 1_000_000\n"
            )
    return text


def daq_pattern() -> str:
    """Return the 12-producer pattern."""
    return (REPOSITORY / "traffic-gen" / "patterns" / "daq12.toml").read_text()


def write_plan(pair: Pair, run: Run, lead_s: float = LEAD_S) -> Path:
    """Write a plan that starts soon."""
    path = pair.folder / "plan.toml"
    path.write_text(run.plan(tai_now_ns() + round(lead_s * NS_PER_S)))
    return path


def tai_now_ns() -> int:
    """Return TAI as bw-traffic reads it: where the kernel's TAI - UTC is 0, UTC + 37 s."""
    realtime_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    kernel_ns = time.clock_gettime_ns(time.CLOCK_TAI)
    return kernel_ns if kernel_ns - realtime_ns > NS_PER_S else realtime_ns + TAI_UTC_S * NS_PER_S


def start_send(pair: Pair, plan: Path, *more: str) -> Program:
    """Start all producers of a plan on the sender's CPU."""
    options = ["--producer", "all", "--cpu", str(sender_cpu()), "--priority", str(PRIORITY), *more]
    return pair.start(pair.sender, [str(PROGRAM), "send", str(plan), *options])


def start_recv(pair: Pair, plan: Path) -> Program:
    """Start the consumer of a plan on the receiver's CPU and wait until it is ready."""
    options = ["--cpu", str(receiver_cpu()), "--priority", str(PRIORITY)]
    program = pair.start(pair.receiver, [str(PROGRAM), "recv", str(plan), *options])
    program.wait_text('"ready"')
    return program


def answer(output: str) -> Json:
    """Return the result in the output of a tool: its last line."""
    result: Json = last_object(output)
    if result["type"] != "result" or not result["valid"]:
        raise RuntimeError(f"no valid result: {result.get('invalid_reasons')}")
    return result


def replay(pair: Pair, run: Run) -> tuple[Json, Json]:
    """Run a plan and return the results of recv and send."""
    plan = write_plan(pair, run)
    recv = start_recv(pair, plan)
    send = start_send(pair, plan)
    timeout_s = LEAD_S + run.length_s + 30
    return answer(recv.wait(timeout_s)), answer(send.wait(timeout_s))
