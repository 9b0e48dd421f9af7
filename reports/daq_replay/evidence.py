# SPDX-License-Identifier: Apache-2.0
"""The evidence of one replay as it lies in a run folder, read back.

evidence/daq_replay/attempt-1/
    plan.toml           the plan
    recv.ndjson         answers of the consumer; the last line is its result
    send-NN.ndjson      answers of the producers, one file a sending process
    misses.ndjson       every miss, and what came close to one
    witness.ndjson      answers of the stall witness
    witness-target.ndjson  answers of the witness inside an emulated target
    emulation.ndjson    what the machine gave a target's emulator, and when that did not run the target
    machine_use.json    what ran on the bench's machine meanwhile that was not the bench
    known_delay.json    the known-delay check
    clock.json          the target's clock, where its stamps are taken as they are (plan-consumer.toml is
                        then the consumer's plan, and clock-error.ndjson what bw-clock saw)
    stack_proof.json    what a network stack past the kernel, and the kernel, counted meanwhile
    role.json           the target's part, where it produced (evidence/daq_producer/TARGET/attempt-1)
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from reports.daq_replay.emulation import EMULATION, Emulation, read_emulation
from reports.daq_replay.known_delay import KnownDelay
from reports.daq_replay.machine_use import MACHINE_USE, KnownUse
from reports.daq_replay.replay_clock import REPLAY_CLOCK, ReplayClock
from reports.daq_replay.role import REPLAY_ROLE, ReplayRole
from reports.daq_replay.stack_proof import STACK_PROOF, StackProof, why_not_carried
from reports.daq_replay.verdict import ReplayResults
from reports.errors import RecordError
from reports.tools.answers import (
    Miss,
    RecvResult,
    SendResult,
    WitnessResult,
    last_result,
    read_misses,
    recv_result,
    send_result,
    witness_result,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplayEvidence:
    """What could be read of a replay, and what could not and why."""

    recv: RecvResult | None
    sends: tuple[SendResult, ...]
    witness: WitnessResult | None
    misses: tuple[Miss, ...]
    known_delay: KnownDelay | None
    clock: ReplayClock | None
    emulation: Emulation
    machine_use: KnownUse | None
    role: ReplayRole | None
    clock_of_producer: dict[int, str]
    low_latency_types: frozenset[int]
    problems: tuple[str, ...]
    faults: tuple[str, ...]
    """Problems for which nothing may pass: not a producer without a result beside one with one."""

    def replay(self, witness_clock: str = "host") -> ReplayResults:
        """Return the replay for the verdict; whatever could not be read lets nothing pass.

        Raises:
            RecordError: There is no result of the consumer: nothing was measured.
        """
        if self.recv is None:
            raise RecordError("; ".join(self.problems) or "recv.ndjson: missing")
        return ReplayResults(
            recv=self.recv,
            clock_of_producer=self.clock_of_producer,
            sends=self.sends,
            witness=self.witness,
            witness_clock=witness_clock,
            misses=self.misses,
            faults=self.faults,
            clock=self.clock,
            emulator_pauses=self.emulation.pauses,
            machine_use=self.machine_use,
        )


def load_replay(folder: Path) -> ReplayEvidence:
    """Read the evidence of one attempt; files that are missing or damaged become problems."""
    problems: list[str] = []
    witness = folder / "witness.ndjson"
    misses = folder / "misses.ndjson"
    known = folder / "known_delay.json"
    clock = folder / REPLAY_CLOCK
    role = folder / REPLAY_ROLE
    emulation = folder / EMULATION
    use = folder / MACHINE_USE
    proof = folder / STACK_PROOF
    recv = _try(lambda: recv_result(last_result(folder / "recv.ndjson")), problems)
    senders = sorted(folder.glob("send-*.ndjson"))
    results = {path.name: _result_of(path) for path in senders}
    found = [each for each in results.values() if each is not None]
    sends = [_try(lambda each=each: send_result(each), problems) for each in found]
    silent = [
        f"{name}: no result: it did not come to its end" for name, each in results.items() if each is None
    ]
    if proof.exists() and recv is not None:
        carried = _try(lambda: StackProof.read(proof), problems)
        problems += why_not_carried(carried, recv) if carried is not None else []
    return ReplayEvidence(
        recv=recv,
        sends=tuple(send for send in sends if send is not None),
        witness=_try(lambda: witness_result(last_result(witness)), problems) if witness.exists() else None,
        misses=tuple((_try(lambda: _misses(misses), problems) or []) if misses.exists() else []),
        known_delay=_try(lambda: KnownDelay.read(known), problems) if known.exists() else None,
        clock=_try(lambda: ReplayClock.read(clock), problems) if clock.exists() else None,
        emulation=(_try(lambda: read_emulation(emulation), problems) if emulation.exists() else None)
        or Emulation(),
        machine_use=_try(lambda: KnownUse.read(use), problems) if use.exists() else None,
        role=_try(lambda: ReplayRole.read(role), problems) if role.exists() else None,
        clock_of_producer=_try(lambda: producer_clocks(folder / "plan.toml"), problems) or {},
        low_latency_types=_try(lambda: low_latency_types(folder / "plan.toml"), []) or frozenset(),
        problems=(*problems, *silent),
        faults=(*problems, *(() if any(sends) else silent)),
    )


def _result_of(path: Path) -> object:
    """Return the result of a producer; None: it left none."""
    try:
        return last_result(path)
    except RecordError:
        return None


def _try(read: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return read()
    except RecordError as error:
        problems.append(str(error))
    except OSError as error:
        problems.append(f"{Path(str(error.filename)).name}: {error.strerror}")
    return None


def _misses(path: Path) -> list[Miss]:
    with path.open(encoding="utf-8", errors="replace") as file:
        return read_misses(file)


def producer_clocks(plan: Path) -> dict[int, str]:
    """Return the name of the clock that each producer of a plan stamps with; raises RecordError."""
    try:
        return {int(producer["number"]): str(producer["clock"]) for producer in _tables(plan, "producer")}
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise RecordError(f"{plan.name}: {error!r}") from error


def low_latency_types(plan: Path) -> frozenset[int]:
    """Return the message types (last digit of the stream id) marked as low-latency; raises RecordError."""
    try:
        streams = [stream for stream in _tables(plan, "stream") if stream.get("low_latency") is True]
        return frozenset(int(stream.get("id", 0)) % 10 for stream in streams)
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise RecordError(f"{plan.name}: {error!r}") from error


def _tables(plan: Path, name: str) -> list[dict[str, Any]]:
    try:
        document: dict[str, Any] = tomllib.loads(plan.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{plan.name}: {error}") from error
    return cast("list[dict[str, Any]]", document.get(name, []))
