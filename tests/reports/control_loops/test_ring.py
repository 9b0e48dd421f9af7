# SPDX-License-Identifier: Apache-2.0
"""Rings whose truth is known: where each event lies, what stands against it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reports.control_loops.capability import LOOP_DELAY, LOOP_WIRE_DELAY
from reports.control_loops.ring import RUN_UP, load_ring
from reports.control_loops.ring_evidence import RING_FILE, KnownHold, load_ring_facts
from reports.errors import RecordError
from tests.reports.control_loops.ring_sample import (
    IN_NODE_NS,
    NODES,
    WIRE_NS,
    hop_ns,
    write_sample_ring,
    wrong_clock,
)

HOPS = range(1, len(NODES))


def truth_ns(number: np.ndarray, place: int) -> np.ndarray:
    return np.array([hop_ns(place, int(each)) for each in number])


def test_every_hop_lies_where_it_was(tmp_path: Path) -> None:
    write_sample_ring(tmp_path)
    found = load_ring(tmp_path)
    assert [each.name for each in found.stretches] == [
        "whole", "hop 1", "node 1", "hop 2", "node 2", "hop 3", "node 3", "hop 4",
    ]  # fmt: skip
    for place, hop in zip(HOPS, found.hops, strict=True):
        assert len(hop) == 220 - RUN_UP
        off_ns = np.abs(hop.time_ns - truth_ns(hop.number, place))
        assert (off_ns <= hop.u_ns).all()
        assert off_ns.max() <= 500
    for node in found.nodes:
        assert np.abs(node.time_ns - IN_NODE_NS).max() <= 2
    whole = sum(truth_ns(found.whole.number, place) for place in HOPS) + 3 * IN_NODE_NS
    assert np.abs(found.whole_own_ns - whole).max() <= 30  # the counter runs 25 ppm off
    assert found.unaccounted == 0
    assert not found.causality.contradictions


def test_wire_lies_between_the_kernels(tmp_path: Path) -> None:
    write_sample_ring(tmp_path)
    found = load_ring(tmp_path)
    for hop in found.wire_hops:
        assert np.abs(hop.time_ns - WIRE_NS).max() <= 500
    assert found.stretch(LOOP_WIRE_DELAY, "whole").u_ns is not None


def test_without_stamps_there_is_no_wire(tmp_path: Path) -> None:
    write_sample_ring(tmp_path, kernel_stamps=False)
    found = load_ring(tmp_path)
    assert (found.wire_hops, found.wire_whole) == ((), None)
    with pytest.raises(RecordError, match="there are: none: no kernel has stamped"):
        found.stretch(LOOP_WIRE_DELAY, "hop 1")


def test_stretch_that_is_none_is_named_with_those_that_are(tmp_path: Path) -> None:
    write_sample_ring(tmp_path)
    with pytest.raises(RecordError, match="loop_delay: no stretch 'hop 5'; there are: whole, hop 1, node 1"):
        load_ring(tmp_path).stretch(LOOP_DELAY, "hop 5")


def test_shifted_clocks_move_the_hops_and_not_the_whole(tmp_path: Path) -> None:
    write_sample_ring(tmp_path / "true")
    write_sample_ring(tmp_path / "shifted", shifted_ns={"producer-12": 1_000_000})
    true, shifted = load_ring(tmp_path / "true"), load_ring(tmp_path / "shifted")
    assert (true.whole_own_ns == shifted.whole_own_ns).all()
    assert (true.whole.time_ns == shifted.whole.time_ns).all()
    moved = [
        int(np.median(other.time_ns - one.time_ns))
        for one, other in zip(true.hops, shifted.hops, strict=True)
    ]
    assert moved == [pytest.approx(-1_000_000, rel=1e-4), pytest.approx(1_000_000, rel=1e-4), 0, 0]
    assert shifted.causality.is_certain
    assert "producer-12" in shifted.causality.suspects


def test_clock_of_which_no_exchange_tells_is_found(tmp_path: Path) -> None:
    write_sample_ring(tmp_path, machines=wrong_clock("p01", -500_000))
    found = load_ring(tmp_path)
    assert found.causality.suspects == ("p01",)


def test_counter_of_a_machine_that_is_up_for_long(tmp_path: Path) -> None:
    """Programs that tell the counter's frequency otherwise must not tell the whole otherwise."""
    write_sample_ring(tmp_path)
    for name in ("0.bwevents", "4.bwevents"):
        raw = bytearray((tmp_path / name).read_bytes())
        at = raw.index((2_500_000_000).to_bytes(8, "little"))
        raw[at : at + 8] = bytes(8)  # the architecture does not say
        (tmp_path / name).write_bytes(raw)
    found = load_ring(tmp_path)
    whole = sum(truth_ns(found.whole.number, place) for place in HOPS) + 3 * IN_NODE_NS
    assert np.abs(found.whole_own_ns - whole).max() <= 30


@pytest.mark.parametrize(
    ("answers", "unaccounted"),
    [
        ({2: {"missing": 1}}, 2),  # for the hop to it, and for that behind it
        ({2: {"read": 219}}, 1),
        ({4: {"double": 1}}, 1),
        ({0: {"written": 221}}, 1),
    ],
)
def test_answer_that_events_contradict_is_counted(
    tmp_path: Path, answers: dict[int, dict[str, int]], unaccounted: int
) -> None:
    write_sample_ring(tmp_path, answers=answers)
    assert load_ring(tmp_path).unaccounted == unaccounted


def test_message_without_an_event_is_missing_and_not_accounted_for(tmp_path: Path) -> None:
    write_sample_ring(tmp_path, leave_out=(4, 100))
    found = load_ring(tmp_path)
    assert found.missing(found.stretches[0]) == 1
    assert found.unaccounted == 2  # an event less than its answer says, and a message that nobody misses


SOURCE = "linux-rt"


def _kernel(**changes: list[dict[str, object]]) -> dict[str, object]:
    """Return a change of `ring.json`: one kernel that was recorded."""
    kernel: dict[str, object] = {
        "file": "k.gz",
        "nodes": [{"node": SOURCE, "cpus": [0], "congestion": ""}],
        "emulators": [],
    }
    for name, rows in changes.items():
        whole: dict[str, object] = {"cpus": [0], "congestion": ""} if name == "nodes" else {}
        kernel[name] = [whole | row for row in rows]
    return {"kernels": [kernel]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ends": []}, "ends: need source and sink"),
        ({"least_ns": [0, 0, 0]}, "least_ns: need one for each of 4 hops"),
        ({"count": 0}, "need size_bytes, count, interval_us >= 1"),
        ({"hold": {"node": 4, "hold_us": 1, "turn": 1}}, "hold: needs a node between source and sink"),
        ({"poll": {"node": 0, "poll_us": 1}}, "poll: needs a node behind the source"),
        ({"poll": {"node": 5, "poll_us": 1}}, "poll: needs a node behind the source"),
        ({"poll": {"node": 1, "poll_us": 0}}, "poll: .*poll_us >= 1"),
        ({"hold": {"node": 0, "hold_us": 1, "turn": 1}}, "hold: needs a node between source and sink"),
        (_kernel(nodes=[]), "kernels.nodes: k.gz is of none"),
        (_kernel(nodes=[{"node": "mars"}]), r"kernels.nodes: \['mars'\]; each of"),
        (_kernel(nodes=[{"node": SOURCE}, {"node": SOURCE}]), "may stand once"),
        (_kernel(nodes=[{"node": SOURCE, "cpus": [-1]}]), r"kernels.nodes.cpus: \[-1\]; each 0 and more"),
        (_kernel(nodes=[{"node": SOURCE, "cpus": [1, 1]}]), r"kernels.nodes.cpus: \[1, 1\]"),
        (_kernel(emulators=[{"node": "mars", "name": "vcpu0", "tid": 7}]), "kernels.emulators: .*mars"),
        (_kernel(emulators=[{"node": SOURCE, "name": "vcpu0", "tid": 0}]), "kernels.emulators: .*tid >= 1"),
        (_kernel(emulators=[{"node": SOURCE, "name": "", "tid": 7}]), "kernels.emulators"),
        ({"transport": "pigeon"}, "transport"),
        ({"schema": "benchwright.control_ring/2"}, "schema"),
    ],
)
def test_damaged_document_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    write_sample_ring(tmp_path)
    document = json.loads((tmp_path / RING_FILE).read_text())
    (tmp_path / RING_FILE).write_text(json.dumps({**document, **change}))
    with pytest.raises(RecordError, match=said):
        load_ring_facts(tmp_path)


@pytest.mark.parametrize(("key", "value"), [("events", "../1.bwevents"), ("events", "1.bwevents")])
def test_file_of_another_is_refused(tmp_path: Path, key: str, value: str) -> None:
    write_sample_ring(tmp_path)
    document = json.loads((tmp_path / RING_FILE).read_text())
    document["ends"][2][key] = value
    (tmp_path / RING_FILE).write_text(json.dumps(document))
    with pytest.raises(RecordError, match=RING_FILE):
        load_ring_facts(tmp_path)


def test_known_hold_is_kept(tmp_path: Path) -> None:
    facts = write_sample_ring(tmp_path, hold=KnownHold(2, 2000, 10))
    assert load_ring_facts(tmp_path) == facts
