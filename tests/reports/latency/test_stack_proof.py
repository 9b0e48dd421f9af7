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

from reports.errors import RecordError
from reports.latency.evidence import load_replay
from reports.latency.stack_proof import STACK_PROOF, StackEnd, StackProof, why_not_carried
from reports.rejudge.carried import is_carried
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


def proof_of(recv: RecvResult) -> StackProof:
    """Return that of a replay which went past the kernel."""
    ends = {"linux": StackEnd(frames_of(recv), 40_000, 50_000), "p01": StackEnd(0, 0, 3_000)}
    return StackProof("rtdip", FRAME_BYTES, "linux", ends)


def with_end(proof: StackProof, node: str, **changed: int) -> StackProof:
    return replace(proof, ends={**proof.ends, node: replace(proof.ends[node], **changed)})


CHANGES: dict[str, tuple[Callable[[StackProof, RecvResult], StackProof], str]] = {
    "as it should be": (lambda proof, _: proof, ""),
    "nothing delivered": (
        lambda proof, _: with_end(proof, "linux", delivered_frames=0),
        "counters have 0 of",
    ),
    "a stream less": (
        lambda proof, recv: with_end(proof, "linux", delivered_frames=frames_of(recv) * 9 // 10),
        "of at least",
    ),
    "received by the kernel": (
        lambda proof, _: with_end(proof, "linux", kernel_in_bytes=10**9),
        "the kernel of linux has itself received 1000000000 bytes of IP",
    ),
    "sent by the kernel": (
        lambda proof, _: with_end(proof, "p01", kernel_out_bytes=10**9),
        "the kernel of p01 has itself sent 1000000000 bytes of IP",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_stack_did_not_carry_is_named(
    folder: Path, recv: RecvResult, name: str, tmp_path: Path
) -> None:
    change, said = CHANGES[name]
    proof = change(proof_of(recv), recv)
    causes = why_not_carried(proof, recv)
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


def test_both_judges_agree_on_any_counters(recv: RecvResult, folder: Path, tmp_path: Path) -> None:
    rng = random.Random(7)
    answer = cast("Any", last_result(folder / "recv.ndjson"))
    seen = set[bool]()
    for _ in range(300):
        proof = proof_of(recv)
        for node in proof.ends:
            scale = rng.choice((0, 0.5, 0.97, 0.985, 1, 1.2))
            proof = with_end(
                proof,
                node,
                delivered_frames=int(frames_of(recv) * scale),
                kernel_in_bytes=int(10 ** rng.uniform(0, 9)),
                kernel_out_bytes=int(10 ** rng.uniform(0, 7)),
            )
        proof.write(tmp_path)
        carried = is_carried(tmp_path, answer)
        assert carried == (not why_not_carried(proof, recv))
        seen.add(carried)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("frame_bytes", 0, "frame_bytes must be 1 or more"),
        ("receiver", "p99", "receiver one of ends"),
        ("ends", {"linux": {}}, "delivered_frames: missing"),
        ("stack", 3, "stack: expected str"),
    ],
)
def test_a_damaged_proof_lets_nothing_pass(
    recv: RecvResult, tmp_path: Path, key: str, value: object, said: str
) -> None:
    proof_of(recv).write(tmp_path)
    file = tmp_path / STACK_PROOF
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(RecordError, match=said):
        StackProof.read(file)
    file.write_text("{")
    with pytest.raises(RecordError, match="stack_proof"):
        StackProof.read(file)
