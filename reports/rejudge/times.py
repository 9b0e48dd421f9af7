# SPDX-License-Identifier: Apache-2.0
"""When a run began: by its manifest, its name, and Robot Framework's own file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NAMED = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{8}")
AT_ONCE = timedelta(seconds=2)
"""Name and manifest of a run are made one after the other."""
OF_ANY_ZONE = timedelta(hours=27)
"""Robot Framework writes local time: zones are 26 hours apart, and a run begins with it."""
_GENERATED = re.compile(rb'<robot [^>]*generated="([^"]+)"')
_HEAD_BYTES = 4096


def time_discrepancies(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say where the manifest's beginning is not that of the run's name, or of `output.xml`."""
    begin = datetime.fromisoformat(manifest["start_utc"])
    if named := NAMED.fullmatch(manifest["run_id"]):
        stamp = datetime.strptime(named[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if not -AT_ONCE <= begin - stamp <= AT_ONCE:
            yield f"run.json: start_utc is {manifest['start_utc']}, the run's name has {named[1]}"
    output = run / "output.xml"
    if not output.is_file():
        return
    with output.open("rb") as file:
        told = _GENERATED.search(file.read(_HEAD_BYTES))
    if told is None:
        return
    generated = datetime.fromisoformat(told[1].decode()).replace(tzinfo=UTC)
    if abs(generated - begin) > OF_ANY_ZONE:
        yield f"run.json: start_utc is {manifest['start_utc']}, output.xml begins at {told[1].decode()}"
