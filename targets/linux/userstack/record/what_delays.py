# SPDX-License-Identifier: Apache-2.0
"""Say what delays a program, from its record alone: `python what_delays.py FILE`.

The file is one that bw-accel --watch has written on Windows, or libbw-record.so on Linux. Named is what the
record shows again and again (docs/windows.md has the faults and from when on each is named), with where, how
often, and the time it cost, as an amount and as a share of the time from the first transfer to the last.
Amounts of several faults may hold the same time.

Prints a page; exit code 0 also where nothing is named, 2 for a file that is no whole record.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import timed_calls
from delays import late_reader, name_lookup, paced, shared_thread, small_buffer, small_writes
from delays.finding import NS_PER_MS, Finding
from timed_calls import Trace

FAULTS: tuple[Callable[[Trace], Iterator[Finding]], ...] = (
    *(small_writes.look, small_buffer.look, paced.look),
    *(shared_thread.look, name_lookup.look, late_reader.look),
)
LINES_SHOWN = 6


def main() -> int:
    """Look and print; return the exit code."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        trace = timed_calls.read(Path(sys.argv[1]))
    except (OSError, ValueError) as error:
        print(f"what_delays: {error}", file=sys.stderr)
        return 2
    print("\n".join(page_of(Path(sys.argv[1]).name, trace)))
    return 0


def findings_of(trace: Trace) -> list[Finding]:
    """Return all that delays the program, the costliest first."""
    found = [finding for look in FAULTS for finding in look(trace)]
    return sorted(found, key=lambda finding: -finding.cost_ns)


def page_of(name: str, trace: Trace) -> Iterator[str]:
    """Yield the lines of the page."""
    processes = len({call.process for call in trace.calls})
    threads = len(trace.of_threads())
    yield (
        f"{name}: {trace.machine}, {len(trace.calls)} calls of {processes} process(es), {threads} thread(s), "
        f"{len(trace.sockets)} socket(s)"
    )
    yield f"first to last transfer: {_ms(trace.span_ns)}"
    for note in trace.notes:
        yield f"note: {note}"
    if not trace.span_ns:
        yield from ("", "no data has gone through its sockets: nothing can be said")
        return
    found = findings_of(trace)
    if not found:
        yield from ("", "nothing that the record shows")
    for finding in found:
        rows = {
            "where": finding.where,
            "how often": finding.how_often,
            "cost": _cost(finding, trace.span_ns),
            "reason": finding.reason,
            "lines": _lines(finding),
            "remedy": finding.remedy,
        }
        yield from ("", finding.fault)
        yield from (f"  {title:<10}{text}" for title, text in rows.items())


def _cost(finding: Finding, span_ns: int) -> str:
    if not finding.cost_ns:
        return "data"
    return f"{_ms(finding.cost_ns)}, {100 * finding.cost_ns / span_ns:.1f} % of it"


def _lines(finding: Finding) -> str:
    shown = ", ".join(map(str, finding.lines[:LINES_SHOWN]))
    more = len(finding.lines) - LINES_SHOWN
    return shown + (f" and {more} more" if more > 0 else "")


def _ms(time_ns: int) -> str:
    return f"{time_ns / NS_PER_MS:,.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
