# SPDX-License-Identifier: Apache-2.0
"""Both judges take the same streams where producers end early, and each as docs/latency.md says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from reports.daq_replay.ended_producers import ended_streams, load_cause
from reports.daq_replay.evidence import load_replay
from reports.rejudge.ended_producers import taken_by_ended
from reports.tools.answers import SendResult
from tests.campaign import Campaign
from tests.reports.sample_run import Disturbance, write_evidence

Json = dict[str, Any]


def recv_of(
    received: dict[int, int], version: str = "0.2.1", size_bytes: dict[int, int] | None = None
) -> Json:
    """Return a consumer's result: of each stream 100 messages are expected."""
    sizes = size_bytes or {}
    streams = [
        {"id": stream, "expected": 100, "received": count, "size_bytes": sizes.get(stream, 64)}
        for stream, count in received.items()
    ]
    return {"version": version, "streams": streams}


def send_of(*streams: int, complete: bool = True) -> Json:
    return {"complete": complete, "streams": [{"id": stream} for stream in streams]}


ALL = frozenset({1, 2, 3})


@pytest.mark.parametrize(
    ("recv", "sends", "taken"),
    [
        (recv_of({1: 100, 2: 100, 3: 100}), [send_of(1, 2), send_of(3)], frozenset[int]()),
        (recv_of({1: 100, 2: 100, 3: 71}), [send_of(1, 2), send_of(3, complete=False)], {3}),
        (recv_of({1: 100, 2: 100, 3: 69}), [send_of(1, 2), send_of(3, complete=False)], ALL),
        (recv_of({1: 100, 2: 100, 3: 71}), [send_of(1, 2), None], {3}),
        (recv_of({1: 100, 2: 100, 3: 71}, "0.2.0"), [send_of(1, 2), None], ALL),
        (recv_of({1: 100, 2: 100, 3: 71}, "0.2.0"), [send_of(1, 2, 3)], frozenset[int]()),
        (recv_of({1: 100, 2: 100, 3: 71}, size_bytes={3: 640}), [send_of(1, 2), None], ALL),
        (recv_of({1: 100, 2: 100, 3: 100}), [None, None], ALL),
        (recv_of({1: 100, 2: 100, 3: 50}), [send_of(1, 2, 3)], frozenset[int]()),
    ],
)
def test_who_is_taken(recv: Json, sends: list[Json | None], taken: frozenset[int]) -> None:
    """The last one: what is lost of a producer that came to its end is the stream's loss."""
    assert taken_by_ended(recv, sends) == taken


def test_both_judges_take_the_same_streams(tmp_path: Path, campaign: Campaign) -> None:
    write_evidence(tmp_path, Disturbance(), seed=3)
    whole = load_replay(tmp_path).replay()
    seen = {0: 0, 4: 0, 48: 0}
    for random in campaign.rounds(300):
        numbers = sorted({each.producer for each in whole.recv.streams})
        ended = random.sample(numbers, random.choice((0, 1, 1, 1, 2)))
        came = random.choice((1.0, random.random(), random.random()))
        streams = tuple(
            dataclasses.replace(each, received=round(each.expected * came))
            if each.producer in ended
            else each
            for each in whole.recv.streams
        )
        recv = dataclasses.replace(whole.recv, streams=streams, version="0.2.1")
        sends: list[SendResult | None] = []
        for number in numbers:
            own = tuple(each for send in whole.sends for each in send.streams if each.producer == number)
            is_silent = number in ended and random.random() < 0.5
            sends.append(None if is_silent else SendResult(number not in ended, own, (), {}))
        early = ended_streams(recv, [each for each in sends if each])
        taken = frozenset(each.id for each in streams) if load_cause(recv, early) else early
        again = taken_by_ended(
            {"version": "0.2.1", "streams": [dataclasses.asdict(each) for each in streams]},
            [None if each is None else dataclasses.asdict(each) for each in sends],
        )
        assert again == taken, (ended, came)
        seen[len(taken)] = seen.get(len(taken), 0) + 1
    assert all(seen[count] for count in (0, 4, 48)), seen
