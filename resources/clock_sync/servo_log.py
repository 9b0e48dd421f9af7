# SPDX-License-Identifier: Apache-2.0
"""The log of a stack's servo on the target: `[logs.DAEMON]` of its `stack.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from hw.fields import Fields
from reports.clock_sync.log_formats import LOG_READERS, NOT_SHOWN
from reports.clock_sync.logs import ClockLog


@dataclass(frozen=True)
class ServoLog:
    """The log of a stack's servo on the target.

    Attributes:
        daemon: Who writes it.
        file: Below the folder of the run.
        format: Whose reader takes it, one of LOG_READERS.
        settled_states: States in which an observation counts.
        kept: The log that a report reads: file below the folder of the run, and its format.
    """

    daemon: str
    file: str
    format: str
    settled_states: tuple[str, ...]
    kept: tuple[str, str]

    def read(self, text: str) -> ClockLog:
        """Read its text; times in UTC stay so: a lock asks for offsets and for their order."""
        return LOG_READERS[self.format](text, 0)


def servo_log(daemon: str, table: Fields) -> ServoLog:
    """Read what `stack.toml` says of a daemon's log; raises ConfigError: names file, key and choices."""
    file = table.text("file", f"{daemon}.log")
    form = table.text("format", choices=tuple(LOG_READERS))
    log = ServoLog(
        daemon=daemon,
        file=file,
        format=form,
        settled_states=table.words("settled_states"),
        kept=(
            table.text("report_file", file),
            table.text("report_format", form, choices=(*LOG_READERS, *NOT_SHOWN)),
        ),
    )
    table.finish()
    return log
