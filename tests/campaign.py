# SPDX-License-Identifier: Apache-2.0
"""One thing that is tried with many made-up inputs: some dozens in `make test`, for long in `make nightly`.

pytest FILE --fuzz-s 600 --fuzz-first 1000000 --fuzz-to results/fuzz    # seconds, first input, what is kept
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

SUMMARY = "summary.json"
FOUND = "found"


@dataclass
class Campaign:
    """Inputs of one target, each made of its number alone, so that every one can be made again.

    Attributes:
        name: Of the target; also of its folder.
        folder: What is found is kept here.
        seconds: How long it goes on; None: for as many inputs as the test asks for.
        first: Number of the first input.
        executions: Inputs tried.
        reached: What of the code was reached, in words of the test; its size is the coverage.
        findings: Files of the inputs that found a fault.
    """

    name: str
    folder: Path
    seconds: float | None = None
    first: int = 0
    executions: int = 0
    reached: set[str] = field(default_factory=set[str])
    findings: list[Path] = field(default_factory=list[Path])

    def rounds(self, count: int) -> Iterator[Random]:
        """Yield a source of chance for each input."""
        began_s = time.monotonic()
        number = 0
        while number < count if self.seconds is None else time.monotonic() - began_s < self.seconds:
            yield Random(f"{self.name} {self.first + number}")
            number += 1

    @contextmanager
    def trying(self, data: bytes) -> Generator[None]:
        """Count an input; keep it if what is done with it ends in any exception."""
        self.executions += 1
        try:
            yield
        except Exception as error:
            file = self.folder / FOUND / hashlib.sha256(data).hexdigest()[:16]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            self.findings.append(file)
            error.add_note(f"the input is kept: {file}")
            raise

    def close(self) -> None:
        """Write the summary."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f"{SUMMARY}.draft"
        draft.write_text(
            json.dumps(
                {
                    "executions": self.executions,
                    "first": self.first,
                    "reached": sorted(self.reached),
                    "findings": [str(file) for file in self.findings],
                },
                indent=1,
            )
            + "\n",
            encoding="utf-8",
        )
        draft.replace(self.folder / SUMMARY)


def folder_name(test: str) -> str:
    """Return the folder of a test's campaign: its name without what files cannot be called."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", test.removeprefix("test_")).strip("-")
