# SPDX-License-Identifier: Apache-2.0
"""How a run came out, worked out again from its records, its problems and how it ended."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record, checks
from reports.rejudge.facts import read_back

WORST_FIRST = ("fail", "error", "inconclusive", "unset", "pass")


def outcome_discrepancies(
    run: Path, manifest: Mapping[str, Any], counting: Sequence[Record]
) -> Iterator[str]:
    """Hold the outcome in the manifest, and in the xUnit file, against what the run has of reasons.

    What a failed test says is not weighed here: with one the outcome is at least as bad as everything else
    makes it, and no pass. The manifest of the version before has none.

    Args:
        run: The run folder.
        manifest: Its manifest.
        counting: The records that count.
    """
    said = manifest.get("outcome")
    if said is None:
        return
    worst = min({*_reasons(manifest, counting)}, key=WORST_FIRST.index)
    if manifest.get("failed_tests"):
        allowed = [each for each in WORST_FIRST[: WORST_FIRST.index(worst) + 1] if each != "pass"]
    else:
        allowed = [worst]
    if said not in allowed:
        yield f"run.json: outcome is {said}, and everything else in the run says {' or '.join(allowed)}"
    told = _told(run / "xunit.xml")
    # One that was finished after its process had died may have had its xUnit file before.
    if told not in (None, said) and manifest.get("finished_utc") is None:
        yield f"run.json: outcome is {said}, xunit.xml has {told}"


def _reasons(manifest: Mapping[str, Any], counting: Sequence[Record]) -> Iterator[str]:
    yield "pass"
    yield from (each["outcome"] for each in counting if each["quantity"] not in checks())
    asked = {each["target"] for each in manifest.get("asked") or ()} - {""}
    measured = {record["subject"]["target"] for record in counting if record["quantity"] not in checks()}
    if not measured or (asked | read_back(manifest)) - measured:
        yield "unset"
    if measured and any(each["outcome"] != "pass" for each in counting if each["quantity"] in checks()):
        yield "inconclusive"
    if manifest.get("problems"):
        yield "error"
    if manifest.get("finished_utc") is not None:
        yield "inconclusive"


def _told(xunit: Path) -> str | None:
    """Return the outcome that the run has added to its xUnit file; None: there is none."""
    if not xunit.exists():
        return None
    for case in ElementTree.parse(xunit).iter("testcase"):  # noqa: S314 - written by our own Robot Framework
        if (case.get("classname"), case.get("name")) == ("Run", "Outcome of the run"):
            failure = case.find("failure")
            return "pass" if failure is None else failure.get("message", "").partition(";")[0].lower()
    return None
