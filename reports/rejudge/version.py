# SPDX-License-Identifier: Apache-2.0
"""Which version wrote a run, and what a run of it always has.

A version is told in many places: by the manifest for each native tool, and by each answer of one. The highest
of them counts, so a run does not become one of an earlier version by leaving out what that one lacked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record

Version = tuple[int, ...]

WITH_STACK_USED: Version = (0, 2)
"""Since then a replay says by which stack its programs were started, and each program what carried it."""
WITH_ROUND_PAIRS: Version = (0, 2, 1)
"""Since then U of single messages is from neighbours among fourteen rounds or more."""
WITH_ENDED_PRODUCERS: Version = (0, 2, 1)
"""Since then a producer that ended early takes its own streams; before, all of the replay."""
WITH_UNCLAIMED: Version = (0, 2, 2)
"""Since then the witness of CPUs that it keeps awake says what nobody claims of each pause."""
WITH_NAMES: Version = (0, 2, 2)
"""Since then no document is without its schema, and no answer without its version."""
WITH_EVERY_CYCLE: Version = (0, 2, 2)
"""Since then U of software latency has what contradictions in cycles of every length come to."""
ALWAYS = ("outcome", "file_sizes_bytes", "asked", "problems", "failed_tests", "tests", "attempts")
"""Keys of the manifest of every run that came to its end, since then; `failed_tests` where a test failed."""
OF_LATENCY = "excluded_miss_probability"
"""The same, of a run with a latency under a pattern."""
_OF_A_TOOL = b'"bw-'
_NUMBER = r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})"
_IN_ANSWER = re.compile(rb'"version"\s*:\s*"' + _NUMBER.encode())


def version_of(run: Path, manifest: Mapping[str, Any]) -> Version:
    """Return the highest version of a native tool that a run names; () where it names none."""
    tools: Mapping[str, object] = manifest.get("tools") or {}
    named = [re.search(_NUMBER, str(text)) for name, text in tools.items() if name.startswith("bw-")]
    told = [tuple(map(int, each.groups())) for each in named if each]
    for answer in (run / "evidence").rglob("*.ndjson"):
        text = answer.read_bytes()  # as a whole: most of its lines are long, and tell no version
        if _OF_A_TOOL in text:
            told += [tuple(map(int, each.groups())) for each in _IN_ANSWER.finditer(text)]
    return max(told, default=())


def parsed(text: str) -> Version:
    """Return the version of a text such as `0.2.1`; raises ValueError where it is none."""
    return tuple(int(number) for number in text.split("."))


def version_discrepancies(
    manifest: Mapping[str, Any], records: Sequence[Record], version: Version
) -> Iterator[str]:
    """Say what the manifest of a run lacks that its version always writes."""
    if manifest["end_utc"] is None or version < WITH_STACK_USED:
        return
    wanted = [name for name in ALWAYS if name != "failed_tests" or manifest.get("tests", {}).get("failed")]
    if any(record["quantity"] == "one_way_latency" for record in records):
        wanted.append(OF_LATENCY)
    for name in wanted:
        if manifest.get(name) is None:
            yield f"run.json: {name} is missing, and the version that wrote the run always has it"
