# SPDX-License-Identifier: Apache-2.0
"""Pictures on both sides of a router, by captures made by hand: joined, split and lost segments, a wrap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.control_loops.camera_evidence import CAMERA_FILE, load_camera_facts, read_truth
from reports.control_loops.camera_loop import load_camera_loop
from reports.control_loops.wire import PATH_FOLDER, PicturesOnTheWire, pictures_on_the_wire
from reports.errors import RecordError
from tests.reports.control_loops.camera_sample import write_sample_camera
from tests.reports.control_loops.picture_capture import Wire, picture, write_frames

ONE = len(picture(0))
INSIDE_NS = 5_000_000
ISN_OF_A_WRAP = (1 << 32) - 2 * ONE


def shifted(wire: Wire, by_ns: int) -> Wire:
    wire.frames = [(at_ns + by_ns, frame) for at_ns, frame in wire.frames]
    return wire


def found_in(
    folder: Path, before: Wire, behind: Wire, pictures: int = 3, kept_bytes: int = 128
) -> PicturesOnTheWire:
    """Return what two captures show, of whose frames the beginning was kept."""
    facts = write_sample_camera(folder, pictures=80)
    document = json.loads((folder / CAMERA_FILE).read_text())
    captures = {"before": "a.pcap", "behind": "b.pcap", "address": "10.0.0.1", "port": 5000}
    (folder / CAMERA_FILE).write_text(json.dumps({**document, "wire": captures}))
    (folder / PATH_FOLDER).mkdir()
    for name, wire in (("a.pcap", before), ("b.pcap", behind)):
        write_frames(folder / PATH_FOLDER / name, wire.frames, kept_bytes=kept_bytes)
    truth = read_truth(folder / facts.truth)
    small = {name: getattr(truth, name) for name in truth.__dataclass_fields__}
    small |= {"width_px": 40, "height_px": 32}
    found = pictures_on_the_wire(folder, load_camera_facts(folder), type(truth)(**small), np.arange(pictures))
    assert found is not None
    return found


@pytest.mark.parametrize("isn", [1000, ISN_OF_A_WRAP])
def test_segment_that_is_split_has_the_time_of_the_whole(tmp_path: Path, isn: int) -> None:
    """Before the router three segments a picture, of a card that splits them; behind it six."""
    before, behind = Wire(isn=isn).syn(), Wire(isn=isn).syn()
    for each in range(3):
        before.in_pieces(each * ONE, (each + 1) * ONE, 440)
    behind.frames += [
        (at_ns + INSIDE_NS, frame) for at_ns, frame in Wire(isn=isn).in_pieces(0, 3 * ONE, 220).frames
    ]
    found = found_in(tmp_path, before, behind)
    assert found.number.tolist() == [0, 1, 2]
    assert found.end_byte[-1] == 3 * ONE
    assert found.inside_ns.size == -(-3 * ONE // 220)
    # A frame a millisecond: of both sides the n-th byte's frame tells when it was there.
    first = found.inside_ns[0]
    assert first == INSIDE_NS - 1_000_000  # the other side has its SYN first
    assert found.first_to_last_ns.tolist() == [5_000_000] * 3


def test_segment_that_is_sent_again_counts_once(tmp_path: Path) -> None:
    before = Wire().syn().sent(0, 700).sent(700, ONE).sent(0, 700)
    behind = shifted(Wire().syn().sent(0, 700).sent(0, 700).sent(700, ONE), INSIDE_NS)
    found = found_in(tmp_path, before, behind, pictures=1)
    assert found.end_byte.tolist() == [700, ONE]
    assert found.inside_ns.tolist() == [INSIDE_NS, INSIDE_NS + 1_000_000]
    assert found.first_to_last_ns.tolist() == [2_000_000]


def test_picture_that_did_not_come_whole_is_none(tmp_path: Path) -> None:
    before = Wire().syn().sent(0, ONE).sent(ONE, 2 * ONE)
    behind = shifted(Wire().syn().sent(0, ONE).sent(ONE, 2 * ONE - 1), INSIDE_NS)
    assert found_in(tmp_path, before, behind, pictures=2).number.tolist() == [0]


def test_capture_without_the_beginning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"a\.pcap: has no beginning of the stream"):
        found_in(tmp_path, Wire().sent(0, ONE), Wire().syn().sent(0, ONE))


def test_loop_without_captures_has_none(tmp_path: Path) -> None:
    write_sample_camera(tmp_path)
    found = load_camera_loop(tmp_path)
    assert found.wire is None
    assert found.waiting_ns.size == 0


def test_capture_of_another_folder_is_refused(tmp_path: Path) -> None:
    write_sample_camera(tmp_path)
    document: dict[str, Any] = json.loads((tmp_path / CAMERA_FILE).read_text())
    document["wire"] = {"before": "../a.pcap", "behind": "b.pcap", "address": "10.0.0.1", "port": 1}
    (tmp_path / CAMERA_FILE).write_text(json.dumps(document))
    with pytest.raises(RecordError, match="is no file of this folder"):
        load_camera_facts(tmp_path)
