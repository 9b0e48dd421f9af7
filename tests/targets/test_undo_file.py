# SPDX-License-Identifier: Apache-2.0
"""The undo file of a target without the target: order, records that a crash cut off, other boots."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
RECORDS = (("daemon", "chronyd", "ended"), ("clock", "tick_us", "10000"), ("clock", "status", "64"))


def _shell(repository: Path, undo: Path, script: str) -> list[str]:
    """Run a script with the undo file's functions; return its lines."""
    folder = repository / "targets" / "linux-rt" / "provision"
    text = f'set -eu; UNDO={undo}; . "{folder}/undo.sh"; said() {{ echo "$1 $2 $3"; }}; {script}'
    done = subprocess.run(["dash", "-c", text], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.fixture
def undo(repository: Path, tmp_path: Path) -> Path:
    """Return an undo file with three records, in their order."""
    file = tmp_path / "undo"
    for kind, place, old in RECORDS:
        _shell(repository, file, f"undo_record {kind} {place} {old}")
    return file


def test_what_was_changed_last_is_given_back_first(repository: Path, undo: Path) -> None:
    assert _shell(repository, undo, "undo_replay said") == [" ".join(each) for each in reversed(RECORDS)]
    assert not undo.exists()


def test_what_is_not_given_back_stays_in_its_order(repository: Path, undo: Path) -> None:
    refuse = 'refuse() { [ "$1" != clock ]; }; undo_replay refuse || echo left'
    assert _shell(repository, undo, refuse) == ["left"]
    assert _shell(repository, undo, "undo_replay said") == ["clock status 64", "clock tick_us 10000"]


def test_the_first_value_of_a_place_is_kept(repository: Path, undo: Path) -> None:
    _shell(repository, undo, "undo_record clock tick_us 9999")
    assert "clock tick_us 10000" in _shell(repository, undo, "undo_replay said")
    assert not undo.exists()


@pytest.mark.parametrize("old", ["", " ", "4096\t131072\t6291456", "end"])
def test_every_value_is_given_back_as_it_was(repository: Path, tmp_path: Path, old: str) -> None:
    """Tabs are what separates the fields: a place may hold them, or nothing at all."""
    undo = tmp_path / "undo"
    whole = 'whole() { printf \'%s|%s|%s\\n\' "$1" "$2" "$3"; }'
    _shell(repository, undo, f"undo_record sysctl net/x '{old}'; undo_record sysctl net/x changed")
    assert _shell(repository, undo, f"{whole}; undo_replay whole") == [f"sysctl|net/x|{old}"]
    assert not undo.exists()


@pytest.mark.parametrize(
    "torn",
    ["sysctl\tvm/swappin", "sysctl\tvm/swappiness\t6", "sysctl\tvm/swappiness\t60\ten", "sysctl\tx\tend"],
)
def test_a_record_that_a_crash_cut_off_is_of_no_change(repository: Path, undo: Path, torn: str) -> None:
    with undo.open("a") as file:
        file.write(torn)
    _shell(repository, undo, "undo_record governor cpu0 powersave")
    wanted = ["governor cpu0 powersave", *(" ".join(each) for each in reversed(RECORDS))]
    assert _shell(repository, undo, "undo_replay said") == wanted


def test_records_of_an_earlier_boot_are_dropped(repository: Path, undo: Path) -> None:
    undo.write_text(undo.read_text().replace(BOOT_ID.read_text().strip(), "an-earlier-boot"))
    assert _shell(repository, undo, "undo_replay said") == []
    assert not undo.exists()
