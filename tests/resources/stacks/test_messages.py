# SPDX-License-Identifier: Apache-2.0
"""What of a replay becomes a turn: each message's own latency, what the machine took, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hw.errors import MeasurementError
from reports.stacks.turns import TypeMessages
from resources.stacks.messages import type_messages, types_of
from tests.resources.stacks.sample import (
    COUNT,
    MS,
    STREAMS,
    change_recv,
    sent_ns,
    way_ns,
    witness,
    write_replay,
)

THRESHOLD_NS = 100_000


def read(folder: Path) -> dict[str, TypeMessages]:
    return type_messages(folder, STREAMS, "host", THRESHOLD_NS)


def test_a_type_has_the_smallest_budget_of_its_streams() -> None:
    assert [(each.name, each.budget_ns) for each in types_of(STREAMS)] == [
        ("type 0", 40 * MS),
        ("type 3", 10 * MS),
    ]


def test_each_message_has_its_own_time_from_sent_to_received(tmp_path: Path) -> None:
    found = read(write_replay(tmp_path, lost={20: 2, 13: 1}))
    assert list(found) == ["type 0", "type 3"]
    expected = [way_ns(10, n) for n in range(COUNT)] + [way_ns(20, n) for n in range(2, COUNT)]
    assert found["type 0"].latency_ns.tolist() == expected
    assert (found["type 0"].lost, found["type 3"].lost) == (2, 1)
    assert not found["type 0"].taken_ns.any()


def test_what_the_machine_took_falls_on_the_messages_under_way(tmp_path: Path) -> None:
    """A pause over two messages of the fourth slot; one of interrupts alone, and one too short, are none."""
    begin = sent_ns(4) + 20_000
    folder = write_replay(tmp_path, witness=witness([(begin, begin + 150_000)]))
    found = read(folder)
    taken = {name: each.taken_ns.nonzero()[0].tolist() for name, each in found.items()}
    assert taken == {"type 0": [4, COUNT + 4], "type 3": [4]}
    assert found["type 0"].taken_ns[4] == way_ns(10, 4) - 20_000 + 4000  # until it came, and U beyond
    (tmp_path / "witness.ndjson").write_text(json.dumps(witness([(begin, begin + 150_000)], 400_000)) + "\n")
    assert not any(each.taken_ns.any() for each in read(folder).values())
    (tmp_path / "witness.ndjson").write_text(json.dumps(witness([(begin, begin + 150_000)], 310_000)) + "\n")
    assert not any(each.taken_ns.any() for each in read(folder).values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"complete": False}, "incomplete: the consumer ended early"),
        (
            {"recorder": {"miss_log_dropped": 0, "message_log_dropped": 3}},
            "3 messages are not in the log of messages",
        ),
        ({"clocks": []}, "clock error unknown: no line for clock host"),
        ({"streams": []}, "recv: stream 10 is not in the result"),
    ],
)
def test_a_replay_with_something_against_it_is_no_turn(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    folder = write_replay(tmp_path)
    read(folder)
    change_recv(folder, **changed)
    with pytest.raises(MeasurementError, match=said):
        read(folder)


def test_what_was_not_carried_by_the_stack_is_no_turn_of_it(tmp_path: Path) -> None:
    folder = write_replay(tmp_path)
    end = {"delivered_bytes": 5, "kernel_in_bytes": 0, "kernel_out_bytes": 0}
    proof = {"stack": "user", "receiver": "linux", "ends": {"linux": end}}
    (folder / "stack_proof.json").write_text(json.dumps(proof))
    with pytest.raises(MeasurementError, match="not carried by the stack user"):
        read(folder)


def test_a_log_that_lacks_a_message_or_is_damaged_is_no_turn(tmp_path: Path) -> None:
    folder = write_replay(tmp_path)
    log = folder / "messages.csv"
    whole = log.read_text()
    log.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
    with pytest.raises(
        MeasurementError, match=r"stream 13: 19 messages are in messages\.csv, 20 were counted"
    ):
        read(folder)
    log.write_text(whole + "13,x\n")
    with pytest.raises(MeasurementError, match=r"messages\.csv: "):
        read(folder)
    log.unlink()
    with pytest.raises(MeasurementError, match=r"messages\.csv: "):
        read(folder)
