# SPDX-License-Identifier: Apache-2.0
"""The xUnit file of a run: Robot Framework's tests, and as one more how the run came out."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from reports.durable import replace_file
from reports.errors import ReportError
from reports.run.outcome import RunOutcome

CLASS_NAME = "Run"
NAME = "Outcome of the run"


def note_outcome(path: Path, came_out: RunOutcome) -> None:
    """Add how a run came out to its xUnit file: a test that fails where the run does not pass.

    So whoever reads only that file sees what no test of Robot Framework says: a check of the bench that did
    not pass, evidence that changed, nothing measured at all.

    Raises:
        ReportError: The file is none, or cannot be written.
    """
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314 - written by our own Robot Framework
    except (OSError, ElementTree.ParseError) as error:
        raise ReportError(f"{path.name}: {error}") from error
    case = ElementTree.SubElement(root, "testcase", classname=CLASS_NAME, name=NAME, time="0.000")
    counted = {"tests": 1}
    if came_out.outcome != "pass":
        said = "; ".join([came_out.outcome.upper(), *came_out.missed, *came_out.reasons])
        ElementTree.SubElement(case, "failure", message=said, type="Outcome")
        counted["failures"] = 1
    for name, count in counted.items():
        root.set(name, str(int(root.get(name, "0")) + count))
    replace_file(path, ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True))
