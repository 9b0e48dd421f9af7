# SPDX-License-Identifier: Apache-2.0
"""Under what a loop was measured, delay of its path, load, and who corrects the target's clock, in names.

A stretch is `whole at 50 ms under network load`, a folder `50-ms-under-network`, a check `…-50-NETWORK`; with
a clock that is corrected `hop 1 under network load with chrony`, `under-network-with-chrony`, `…-CHRONY`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"(.+?)(?: at (\d+) ms)?(?: under (\S+) load)?(?: with (\S+))?")
_FOLDER = re.compile(r"(?:(\d+)-ms)?-?(?:under-(\S+?))?-?(?:with-(\S+))?")


@dataclass(frozen=True)
class Case:
    """What distinguishes one loop of a run from another.

    Attributes:
        delay_ms: Of the path, each way, as asked; None: the loop has no path of its own.
        load: Kind of the load meanwhile; empty: none.
        clock: What corrects the target's clock meanwhile; empty: nothing.
    """

    delay_ms: int | None = None
    load: str = ""
    clock: str = ""

    @property
    def delay_us(self) -> int:
        """Return the delay, 0 where there is none."""
        return (self.delay_ms or 0) * 1000

    @property
    def words(self) -> str:
        """Return it in words, such as `at 50 ms under network load`; empty: nothing."""
        delay = "" if self.delay_ms is None else f"at {self.delay_ms} ms"
        load = f"under {self.load} load" if self.load else ""
        clock = f"with {self.clock}" if self.clock else ""
        return " ".join(part for part in (delay, load, clock) if part)

    @property
    def beside(self) -> str:
        """Return load and clock in words, such as `compile-like, chrony`; `none`: nothing."""
        return ", ".join(part for part in (self.load, self.clock) if part) or "none"

    @property
    def folder(self) -> str:
        """Return the name of its folder; empty: that of all."""
        delay = "" if self.delay_ms is None else f"{self.delay_ms}-ms"
        load = f"under-{self.load}" if self.load else ""
        clock = f"with-{self.clock}" if self.clock else ""
        return "-".join(part for part in (delay, load, clock) if part)

    def stretch(self, name: str) -> str:
        """Return a stretch of it, as records and requirements name it."""
        return f"{name} {self.words}" if self.words else name

    def check(self, name: str) -> str:
        """Return a check of it by its name."""
        delay = "" if self.delay_ms is None else str(self.delay_ms)
        return "-".join(part for part in (name, delay, self.load.upper(), self.clock.upper()) if part)


def case_of_stretch(text: str) -> tuple[str, Case]:
    """Return the stretch that a record or a requirement names, and under what."""
    found = _NAME.fullmatch(text)
    if found is None:
        return text, Case()
    return found[1], Case(None if found[2] is None else int(found[2]), found[3] or "", found[4] or "")


def case_of_folder(name: str) -> Case | None:
    """Return the case that a folder's name tells; None: it is not one."""
    found = _FOLDER.fullmatch(name)
    if found is None:
        return None
    case = Case(None if found[1] is None else int(found[1]), found[2] or "", found[3] or "")
    return case if name and case.folder == name else None
