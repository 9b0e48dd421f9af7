# SPDX-License-Identifier: Apache-2.0
"""Whether a stack carried a replay: by counters of stack and kernel, for both judges alike."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.stack_proof import STACK_PROOF, StackEnd, StackProof, why_not_carried
from reports.errors import RecordError
from reports.rejudge.carried import is_carried
from reports.rejudge.each import DAMAGE
from reports.tools.answers import RecvResult, last_result, recv_result
from tests.reports.sample_run import Disturbance, write_evidence

FRAME_BYTES = 1480


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the evidence of a replay."""
    folder = tmp_path_factory.mktemp("replay")
    write_evidence(folder, Disturbance(), seed=4)
    return folder


@pytest.fixture(scope="module")
def recv(folder: Path) -> RecvResult:
    return recv_result(last_result(folder / "recv.ndjson"))


def frames_of(recv: RecvResult) -> int:
    counted = sum(stream.received * -(-stream.size_bytes // FRAME_BYTES) for stream in recv.streams)
    return round(counted * (1 + recv.warmup_ms / recv.duration_ms))


def bytes_of(recv: RecvResult) -> int:
    counted = sum(stream.received * stream.size_bytes for stream in recv.streams)
    return round(counted * (1 + recv.warmup_ms / recv.duration_ms))


def proof_of(recv: RecvResult, unit: str = "frames") -> StackProof:
    """Return that of a replay which went past the kernel."""
    if unit == "bytes":
        in_bytes = {
            "linux": StackEnd(None, 40_000, 50_000, bytes_of(recv)),
            "p01": StackEnd(None, 0, 3_000, 0),
        }
        return StackProof("rtdip", None, "linux", in_bytes)
    ends = {"linux": StackEnd(frames_of(recv), 40_000, 50_000), "p01": StackEnd(0, 0, 3_000)}
    return StackProof("rtdip", FRAME_BYTES, "linux", ends)


def with_end(proof: StackProof, node: str, **changed: int) -> StackProof:
    return replace(proof, ends={**proof.ends, node: replace(proof.ends[node], **changed)})


def with_delivered(proof: StackProof, node: str, share: float) -> StackProof:
    """Return one with a share of what the receiver has delivered, in its unit."""
    whole = proof.ends[proof.receiver].delivered
    unit = "delivered_bytes" if proof.frame_bytes is None else "delivered_frames"
    return with_end(proof, node, **{unit: int(whole * share)})


CHANGES: dict[str, tuple[Callable[[StackProof], StackProof], str]] = {
    "as it should be": (lambda proof: proof, ""),
    "nothing delivered": (
        lambda proof: with_delivered(proof, "linux", 0),
        "counters have 0 of",
    ),
    "a stream less": (
        lambda proof: with_delivered(proof, "linux", 0.9),
        "of at least",
    ),
    "received by the kernel": (
        lambda proof: with_end(proof, "linux", kernel_in_bytes=10**9),
        "the kernel of linux has itself received 1000000000 bytes of IP",
    ),
    "sent by the kernel": (
        lambda proof: with_end(proof, "p01", kernel_out_bytes=10**9),
        "the kernel of p01 has itself sent 1000000000 bytes of IP",
    ),
}


@pytest.mark.parametrize("unit", ["frames", "bytes"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_stack_did_not_carry_is_named(
    folder: Path, recv: RecvResult, name: str, unit: str, tmp_path: Path
) -> None:
    change, said = CHANGES[name]
    proof = change(proof_of(recv, unit))
    causes = why_not_carried(proof, recv)
    assert not causes or "its counters" not in causes[0] or causes[0].endswith(f" {unit}")
    assert all(cause.startswith("not carried by the stack rtdip: ") for cause in causes)
    assert (said in causes[0]) if said else not causes
    # Read back from a run's folder it takes the verdict of all its streams.
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    proof.write(tmp_path)
    assert StackProof.read(tmp_path / STACK_PROOF) == proof
    replay = load_replay(tmp_path).replay()
    assert [cause for cause in replay.causes() if "not carried" in cause] == causes
    assert is_carried(tmp_path, cast("Any", last_result(tmp_path / "recv.ndjson"))) == (not causes)


@pytest.mark.parametrize("unit", ["frames", "bytes"])
def test_both_judges_agree_on_any_counters(recv: RecvResult, folder: Path, unit: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    answer = cast("Any", last_result(folder / "recv.ndjson"))
    seen = set[bool]()
    for _ in range(300):
        proof = proof_of(recv, unit)
        for node in ("p01", "linux"):
            scale = rng.choice((0, 0.5, 0.97, 0.985, 1, 1.2))
            proof = with_end(
                with_delivered(proof, node, scale),
                node,
                kernel_in_bytes=int(10 ** rng.uniform(0, 9)),
                kernel_out_bytes=int(10 ** rng.uniform(0, 7)),
            )
        proof.write(tmp_path)
        carried = is_carried(tmp_path, answer)
        assert carried == (not why_not_carried(proof, recv))
        seen.add(carried)
    assert seen == {True, False}


def test_bytes_hold_the_messages_alone_their_headers_come_on_top(recv: RecvResult) -> None:
    """What is wanted is what the messages have; every packet has more."""
    counted = sum(stream.received * stream.size_bytes for stream in recv.streams)
    least = max(counted, int(0.98 * counted * (1 + recv.warmup_ms / recv.duration_ms)))
    proof = proof_of(recv, "bytes")
    assert why_not_carried(with_end(proof, "linux", delivered_bytes=least), recv) == []
    assert why_not_carried(with_end(proof, "linux", delivered_bytes=least - 1), recv) == [
        f"not carried by the stack rtdip: its counters have {least - 1} of at least {least} bytes"
    ]


def test_a_proof_of_the_version_before_is_read(recv: RecvResult, folder: Path, tmp_path: Path) -> None:
    frames = frames_of(recv)
    end = f'{{"delivered_frames": {frames}, "kernel_in_bytes": 7, "kernel_out_bytes": 8}}'
    text = f'{{"stack": "rtdip", "frame_bytes": 1480, "receiver": "t", "ends": {{"t": {end}}}}}'
    (tmp_path / STACK_PROOF).write_text(text)
    proof = StackProof.read(tmp_path / STACK_PROOF)
    assert proof == StackProof("rtdip", 1480, "t", {"t": StackEnd(frames, 7, 8)})
    assert is_carried(tmp_path, cast("Any", last_result(folder / "recv.ndjson")))
    proof.write(tmp_path)
    assert json.loads((tmp_path / STACK_PROOF).read_text()) == json.loads(text)


@pytest.mark.parametrize("unit", ["frames", "bytes"])
def test_what_ends_have_gained_is_in_their_unit(recv: RecvResult, unit: str) -> None:
    end = proof_of(recv, unit).ends["linux"]
    begun = replace(end, kernel_in_bytes=end.kernel_in_bytes - 5)
    nothing = {"frames": StackEnd(0, 5, 0), "bytes": StackEnd(None, 5, 0, 0)}
    assert end.since(begun) == nothing[unit]


KERNEL = {"kernel_in_bytes": 1, "kernel_out_bytes": 1}


@pytest.mark.parametrize(
    ("unit", "key", "value", "said"),
    [
        ("frames", "frame_bytes", 0, "frame_bytes must be 1 or more"),
        ("frames", "frame_bytes", -1, "frame_bytes must be 1 or more"),
        ("frames", "frame_bytes", None, "frame_bytes: expected int"),
        ("frames", "receiver", "p99", "receiver one of ends"),
        ("frames", "ends", {"linux": {}}, "delivered_frames: missing"),
        ("frames", "ends", {"linux": {"delivered_frames": "9"} | KERNEL}, "delivered_frames: expected int"),
        ("frames", "stack", 3, "stack: expected str"),
        (
            "frames",
            "ends",
            {"linux": {"delivered_bytes": 9**9} | KERNEL},
            "delivered_bytes: what was .* once",
        ),
        (
            "bytes",
            "frame_bytes",
            1480,
            r"ends\.linux\.delivered_bytes: what was delivered must be counted once",
        ),
        (
            "bytes",
            "ends",
            {"linux": {"delivered_frames": 9**9} | KERNEL},
            "delivered_frames: what was .* once",
        ),
        (
            "bytes",
            "ends",
            {"linux": {"delivered_bytes": 9**9, "delivered_frames": 9**9} | KERNEL},
            "delivered_frames: what was .* once",
        ),
        ("bytes", "ends", {"linux": KERNEL}, "delivered_bytes: missing"),
        ("bytes", "ends", {"linux": {"delivered_bytes": 1e12} | KERNEL}, "delivered_bytes: expected int"),
        ("bytes", "receiver", "p99", "receiver one of ends"),
    ],
)
def test_a_damaged_proof_lets_nothing_pass(
    recv: RecvResult, folder: Path, tmp_path: Path, unit: str, key: str, value: object, said: str
) -> None:
    proof_of(recv, unit).write(tmp_path)
    file = tmp_path / STACK_PROOF
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(RecordError, match=f"stack_proof.json.*{said}"):
        StackProof.read(file)
    if key != "stack":  # the other judge names no stack
        with pytest.raises(DAMAGE):
            is_carried(tmp_path, cast("Any", last_result(folder / "recv.ndjson")))
    file.write_text("{")
    with pytest.raises(RecordError, match="stack_proof"):
        StackProof.read(file)
