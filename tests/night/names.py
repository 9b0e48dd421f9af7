# SPDX-License-Identifier: Apache-2.0
"""What has failed in a part, by name: from what the part itself has written."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

Names = Callable[[Path], "list[str]"]
"""Returns the names of what failed; its argument is the part's own file name without an ending."""

LOG = ".log"
FAILED = ".failed.txt"
RUN = ".run.txt"


def none(_own: Path) -> list[str]:
    """Return nothing: the part names none."""
    return []


def from_list(own: Path) -> list[str]:
    """Return the lines of the file that ends in FAILED."""
    return _lines(own.with_name(own.name + FAILED))


def from_file(file: Path) -> Names:
    """Read them from a file that the part writes anew, one a line."""
    return lambda _own: _lines(file)


def from_log(pattern: str, separator: str) -> Names:
    """Find them in the log: the first group of a pattern, in pieces between separators."""
    found = re.compile(pattern, re.MULTILINE)

    def names(own: Path) -> list[str]:
        text = "\n".join(_lines(own.with_name(own.name + LOG)))
        return [name.strip() for match in found.finditer(text) for name in match[1].split(separator)]

    return names


def run_folder(own: Path) -> str:
    """Return the run folder of a qualification; empty where there is none."""
    return first_line(own.with_name(own.name + RUN))


def first_line(file: Path) -> str:
    """Return the first line of a file; empty where there is none."""
    return "".join(_lines(file)[:1])


def from_run(own: Path) -> list[str]:
    """Return the tests of a qualification that did not pass."""
    file = Path(run_folder(own) or "/dev/null", "xunit.xml")
    if not file.is_file():
        return []
    try:
        cases = list(ET.parse(file).iter("testcase"))  # noqa: S314 - written by our own Robot Framework
    except ET.ParseError:
        return []
    return [
        f"{case.get('classname', '')} {case.get('name', '')}".strip()
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def _lines(file: Path) -> list[str]:
    """Return the lines of a file that says something; none where it is not there."""
    if not file.is_file():
        return []
    return [line for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
