# SPDX-License-Identifier: Apache-2.0
"""What a loop was measured under, in names of stretches, folders and checks."""

from __future__ import annotations

import pytest

from reports.control_loops.case import Case, case_of_folder, case_of_stretch


@pytest.mark.parametrize(
    ("case", "stretch", "folder", "check"),
    [
        (Case(), "hop 1", "", "BENCH-X"),
        (Case(50), "hop 1 at 50 ms", "50-ms", "BENCH-X-50"),
        (Case(None, "network"), "hop 1 under network load", "under-network", "BENCH-X-NETWORK"),
        (
            Case(0, "compile-like"),
            "hop 1 at 0 ms under compile-like load",
            "0-ms-under-compile-like",
            "BENCH-X-0-COMPILE-LIKE",
        ),
        (Case(clock="chrony"), "hop 1 with chrony", "with-chrony", "BENCH-X-CHRONY"),
        (
            Case(None, "network", "chrony-fifo"),
            "hop 1 under network load with chrony-fifo",
            "under-network-with-chrony-fifo",
            "BENCH-X-NETWORK-CHRONY-FIFO",
        ),
    ],
)
def test_names_tell_the_case(case: Case, stretch: str, folder: str, check: str) -> None:
    assert (case.stretch("hop 1"), case.folder, case.check("BENCH-X")) == (stretch, folder, check)
    assert case_of_stretch(stretch) == ("hop 1", case)
    assert case_of_folder(folder) == (case if folder else None)


@pytest.mark.parametrize(
    "name",
    ["hold", "nagle", "path", "050-ms", "50-ms-", "under-", "50-msunder-network", "with-", "under-x-with-"],
)
def test_other_folders_are_no_case(name: str) -> None:
    assert case_of_folder(name) is None
