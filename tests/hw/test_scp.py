# SPDX-License-Identifier: Apache-2.0
"""How long a copy may take."""

from __future__ import annotations

from pathlib import Path

from hw.drivers.scp import BEGIN_S, SLOWEST_BYTES_S, Deadline, bytes_in

SHARE = int(BEGIN_S * SLOWEST_BYTES_S)


def test_bytes_that_are_known_have_one_deadline() -> None:
    deadline = Deadline(SHARE, 100.0)
    assert deadline.overdue(100.0 + 2 * BEGIN_S) == ""
    assert deadline.overdue(100.1 + 2 * BEGIN_S) == f"{SHARE} bytes not there after {2 * BEGIN_S:g} s"


def test_bytes_that_arrive_renew_it_however_many_there_were_before(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = tmp_path / "folder/data"
    deadline = Deadline(tmp_path / "folder", 0.0)
    for number in range(1, 4):
        file.write_bytes(bytes(number * SHARE))
        assert deadline.overdue(number * BEGIN_S) == ""
    file.write_bytes(bytes(3 * SHARE + 5))
    assert deadline.overdue(4 * BEGIN_S) == ""
    words = f"{3 * SHARE + 5} bytes, and not its end, {BEGIN_S:g} s after {3 * SHARE} bytes"
    assert deadline.overdue(4 * BEGIN_S + 0.1) == words


def test_a_file_that_is_replaced_counts_from_its_new_beginning(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(2 * SHARE))
    deadline = Deadline(file, 0.0)
    assert deadline.overdue(1.0) == ""
    file.write_bytes(b"new")
    assert deadline.overdue(2.0) == ""
    file.write_bytes(bytes(SHARE + 3))
    assert deadline.overdue(1.9 + BEGIN_S) == ""
    assert deadline.overdue(1.8 + 2 * BEGIN_S) == ""


def test_of_what_is_not_there_no_byte_has_arrived(tmp_path: Path) -> None:
    assert bytes_in(tmp_path / "none") == 0
