# SPDX-License-Identifier: Apache-2.0
"""This machine's own kernel as a source of rings: recorded, read as text, then raw, by a shell alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_RECORD = r"""
set -eu
mount -t tracefs tracefs /mnt 2>/dev/null || exit 77
own=/mnt/instances/benchwright-test-$$
mkdir "$own" 2>/dev/null || exit 77
trap 'cd /; rmdir "$own"' EXIT
cd "$own"
echo 0 >tracing_on
echo mono >trace_clock
echo "$2" >options/overwrite
echo 4 >buffer_size_kb
echo "$3" >per_cpu/cpu0/buffer_size_kb
echo 1 >tracing_cpumask
formats=
for group in $4; do
    echo 1 >"events/$group/enable"
    formats="$formats $(echo events/"$group"/*/format)"
done
echo 1 >tracing_on
taskset -c 0 sh -c 'i=0; while [ $i -lt '"$5"' ]; do true | true; i=$((i+1)); done'
echo 0 >tracing_on
{
    echo "byte order: $6"
    for file in events/header_page events/header_event per_cpu/cpu0/stats $formats; do
        echo "file: $file"
        cat "$file"
    done
} >"$1/description"
cat per_cpu/cpu0/trace >"$1/text"
if echo 1 2>/dev/null >options/fields; then cat per_cpu/cpu0/trace >"$1/fields"; fi
dd if=per_cpu/cpu0/trace_pipe_raw of="$1/pages" bs="$(cat events/header_page | sed -n \
    's/.* data;.*offset:\([0-9]*\);.*size:\([0-9]*\);.*/\1 + \2/p' | { read -r a _ b; echo $((a + b)); })" \
    iflag=nonblock 2>/dev/null || :
"""


@dataclass(frozen=True)
class RealRing:
    """One ring, read in three ways.

    Attributes:
        description: Of it, with the formats of all events of the groups.
        pages: As the kernel gave them.
        text: As the kernel writes it.
        fields: The same with every field by name; empty: the kernel is older than 6.4.
    """

    description: str
    pages: bytes
    text: list[str]
    fields: list[str]


def record(
    folder: Path, events: str, turns: int, buffer_kb: int = 24_576, overwrite: bool = False
) -> RealRing:
    """Record this machine's CPU 0 while it starts processes; skip the test where tracefs is not permitted.

    Args:
        folder: For files.
        events: Groups of events, separated by blanks.
        turns: How often two processes are started.
        buffer_kb: What the ring takes.
        overwrite: What a full ring does: the oldest goes, or what comes is dropped.
    """
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", _RECORD, "sh", str(folder)),
            *(str(int(overwrite)), str(buffer_kb), events, str(turns), sys.byteorder),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode == 77:
        pytest.skip("tracefs cannot be mounted")
    assert done.returncode == 0, done.stderr
    fields = folder / "fields"
    return RealRing(
        (folder / "description").read_text(),
        (folder / "pages").read_bytes(),
        (folder / "text").read_text(errors="replace").splitlines(),
        fields.read_text(errors="replace").splitlines() if fields.exists() else [],
    )
