# SPDX-License-Identifier: Apache-2.0
"""Plans for `bw-traffic`, and a run of it across a pair of namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.lab.namespaces import Json, Program, receiver_cpu, sender_cpu
from bench.lab.pair import CONSUMER, PRIORITY, Pair, producer_address
from bench.lab.processes import last_object
from bench.lab.report import REPOSITORY
from resources.daq_replay.plan_file import PlanClock, PlanFile, PlanProducer
from tests.traffic_gen.lab import CLOCK_PORT, Stream, pattern_text, tai_ns

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
        numbers = range(1, self.producers * self.scale + 1)
        plan = PlanFile(
            nonce="0123456789abcdef",
            phase=self.phase,
            scale=self.scale,
            warmup_ms=self.warmup_ms,
            duration_ms=self.duration_ms,
            grace_ms=self.grace_ms,
            spin_us=self.spin_us,
            capture_stamps=self.capture_stamps,
            consumer=CONSUMER,
            clocks=[PlanClock("host", producer_address(1), CLOCK_PORT)],
            producers=[PlanProducer(n, producer_address(n), "host", start_tai_ns) for n in numbers],
        )
        return plan.text(self.pattern)

    @property
    def length_s(self) -> float:
        """From slot 0 to the end of the grace time."""
        return (self.warmup_ms + self.duration_ms + self.grace_ms) / 1000


def udp_pattern(producers: int, streams: int, size_bytes: int, period_us: int) -> str:
    """Return a pattern of equal UDP streams, so many a producer."""
    return pattern_text(
        *(
            Stream(producer * 10 + kind, size_bytes=size_bytes, period_us=period_us)
            for producer in range(1, producers + 1)
            for kind in range(streams)
        )
    )


def daq_pattern() -> str:
    """Return the 12-producer pattern."""
    return (REPOSITORY / "traffic-gen" / "patterns" / "daq12.toml").read_text()


def write_plan(pair: Pair, run: Run, lead_s: float = LEAD_S) -> Path:
    """Write a plan that starts soon."""
    path = pair.folder / "plan.toml"
    path.write_text(run.plan(tai_ns() + round(lead_s * NS_PER_S)))
    return path


def start_send(pair: Pair, plan: Path, *more: str) -> Program:
    """Start all producers of a plan on the sender's CPU."""
    options = ["--producer", "all", "--cpu", str(sender_cpu()), "--priority", str(PRIORITY), *more]
    return pair.start(pair.sender, [str(pair.program), "send", str(plan), *options])


def start_recv(pair: Pair, plan: Path) -> Program:
    """Start the consumer of a plan on the receiver's CPU and wait until it is ready."""
    options = ["--cpu", str(receiver_cpu()), "--priority", str(PRIORITY)]
    program = pair.start(pair.receiver, [str(pair.program), "recv", str(plan), *options])
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
