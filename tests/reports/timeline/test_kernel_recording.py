# SPDX-License-Identifier: Apache-2.0
"""A recording of kernel events is one file of a run; one that is damaged is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reports.errors import RecordError
from reports.timeline import kernel_recording
from reports.timeline.kernel_recording import load_recording, write_recording
from tests.campaign import Campaign
from tests.reports.hostile import damaged
from tests.reports.timeline.ring_pages import Machine, Page


def recorded(folder: Path) -> Path:
    """Write a recording of two CPUs with pages of two events, one with a text like the file's own."""
    it = Machine()
    files: dict[int, Path] = {}
    for cpu in (3, 11):
        page = (
            Page(it, 1_000).event(0, it.number(cpu)).event(1, it.named(b"\npages: cpu1 9\n", (0, 1), b"eth0"))
        )
        files[cpu] = folder / f"cpu{cpu}"
        files[cpu].write_bytes(cpu * page.packed())
    path = folder / "ring.gz"
    write_recording(path, it.description(5), files)
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = load_recording(recorded(tmp_path))
    assert {cpu: ring.events["test/number"]["value"].tolist() for cpu, ring in found.rings.items()} == {
        3: [3] * 3,
        11: [11] * 11,
    }
    assert found.dropped == {3: 5}


def test_a_recording_of_no_cpu_has_no_events(tmp_path: Path) -> None:
    write_recording(tmp_path / "ring.gz", Machine().description(), {})
    assert not load_recording(tmp_path / "ring.gz").rings


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"pages: cpu11 45056", b"pages: cpu11 45057", "ends within the pages of CPU 11"),
        (b"pages: cpu11 ", b"pages: cpu3 ", "has CPU 3 twice"),
        (b"pages: cpu11 45056", b"pages: cpu11 45055", "neither its end nor the pages of a CPU"),
        (b"pages: cpu3 ", b"pages: of 3 ", "neither its end nor the pages of a CPU"),
        (b"byte order", b"order", "begins with no byte order"),
        (b"byte order", b"y" * 200_000, "holds more than 200000 bytes"),
    ],
)
def test_a_file_that_is_wrong_is_named(
    tmp_path: Path, old: bytes, new: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recorded(tmp_path)
    whole = gzip.decompress(path.read_bytes())
    assert old in whole
    path.write_bytes(gzip.compress(whole.replace(old, new)))
    monkeypatch.setattr(kernel_recording, "RECORDING_MAX_BYTES", 200_000)
    with pytest.raises(RecordError, match=rf"^ring\.gz: .*{said}"):
        load_recording(path)


@pytest.mark.parametrize("packed", [True, False])
def test_whatever_the_bytes_it_is_read_or_refused(tmp_path: Path, packed: bool, campaign: Campaign) -> None:
    path = recorded(tmp_path)
    whole = path.read_bytes()
    for random in campaign.rounds(100):
        data = damaged(whole, random) if packed else gzip.compress(damaged(gzip.decompress(whole), random), 1)
        path.write_bytes(data)
        with campaign.trying(data):
            try:
                campaign.reached.add("damaged" if load_recording(path).rings[3].damages else "read")
            except RecordError:
                campaign.reached.add("refused")
            except KeyError:
                campaign.reached.add("without the CPU")
