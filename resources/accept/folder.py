# SPDX-License-Identifier: Apache-2.0
"""The folder of an acceptance: its plan, what it was begun with, and a journal that survives a power cut.

plan.toml        as it began
identity.json    SHA-256 of the plan and of each file that says what is measured, and the software's version
journal.ndjson   a line for each event, on the disk before the next thing happens; each has the hash of all
                 before it, so that none can be taken away or changed without being seen
runs/            a run folder for each part, of those that were broken off, too
lock             held by the controller
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hw.errors import BenchError, ConfigError
from hw.tools import ROOT
from reports.durable import append_line, replace_file, sync_directory
from reports.run.provenance import commit_of, source_of
from resources.accept.plan_file import AcceptancePlan, read_plan
from resources.accept.state import Event, PartState, part_states

PLAN, IDENTITY, JOURNAL, LOCK, RUNS = "plan.toml", "identity.json", "journal.ndjson", "lock", "runs"
SCHEMA = "benchwright.acceptance_identity/1"
SOFTWARE = "software"


class AcceptanceFolder:
    """An acceptance that has begun."""

    def __init__(self, path: Path, plan: AcceptancePlan) -> None:
        """Take a folder that `create` or `reopen` has found whole."""
        self.path, self.plan = path, plan
        self.runs = path / RUNS

    @classmethod
    def create(cls, path: Path, plan_file: Path) -> AcceptanceFolder:
        """Begin an acceptance: its plan is sealed before anything is measured.

        Raises:
            ConfigError: The folder is there already, or the plan is wrong.
        """
        plan = read_plan(plan_file)
        if path.exists():
            raise ConfigError(f"--output {path}: must be a new folder; `resume {path}` goes on with one")
        (path / RUNS).mkdir(parents=True)
        replace_file(path / PLAN, plan.text.encode())
        identity = {"schema": SCHEMA, "sha256": _hashes(plan), SOFTWARE: _software()}
        replace_file(path / JOURNAL, b"")
        replace_file(path / IDENTITY, json.dumps(identity, indent=1).encode() + b"\n")
        sync_directory(path.parent)
        return cls(path, plan)

    @classmethod
    def reopen(cls, path: Path) -> AcceptanceFolder:
        """Return the folder of an acceptance that has begun.

        Raises:
            ConfigError: It is none, or a file of it, or one that says what is measured, is not as it was.
        """
        try:
            identity: Any = json.loads((path / IDENTITY).read_text(encoding="utf-8"))
            before, software = dict(identity["sha256"]), identity[SOFTWARE]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path / IDENTITY}: must be of an acceptance that has begun: {error}"
            ) from error
        plan = read_plan(path / PLAN)
        now = _hashes(plan)
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise ConfigError(
                    f"{path / PLAN if name == PLAN else name}: must be as when the acceptance began; what was"
                    " measured under another configuration is another acceptance"
                )
        if software != _software():
            raise ConfigError(f"the software is {_software()}, the acceptance began with {software}")
        folder = cls(path, plan)
        folder.states()
        return folder

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """Keep other controllers out while the context lasts.

        Raises:
            BenchError: One is there.
        """
        lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise BenchError(f"{self.path}: another controller goes on with it") from None
        try:
            self._cut_torn_line()
            yield
        finally:
            os.close(lock)

    def events(self) -> list[Event]:
        """Return the journal; a last line without its end was never on the disk as a whole.

        Raises:
            ConfigError: A line is damaged, changed, or one before it is missing.
        """
        found: list[Event] = []
        chain = ""
        for place, line in enumerate(self._whole_lines(), 1):
            try:
                event: Any = json.loads(line)
                own, event = event["chain"], {key: value for key, value in event.items() if key != "chain"}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ConfigError(f"{self.path / JOURNAL}: line {place}: damaged: {error}") from error
            chain = _chained(chain, event)
            if own != chain:
                raise ConfigError(
                    f"{self.path / JOURNAL}: line {place}: it, or one before it, was changed or taken away"
                )
            found.append(event)
        return found

    def states(self) -> list[PartState]:
        """Return how each part stands; raises ConfigError as `events`, or where events contradict."""
        try:
            return part_states(len(self.plan.parts), self.events())
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{self.path / JOURNAL}: {error}") from error

    def note(self, event: str, part: int, **more: object) -> None:
        """Write an event, and wait until it is on the disk.

        Raises:
            RunFolderError: It cannot be written.
        """
        at_utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told: dict[str, object] = {"event": event, "part": part, **more, "at_utc": at_utc}
        chain = ""
        for each in self.events():
            chain = _chained(chain, each)
        append_line(self.path / JOURNAL, json.dumps(told | {"chain": _chained(chain, told)}))

    def _whole_lines(self) -> list[str]:
        text = (self.path / JOURNAL).read_text(encoding="utf-8", errors="replace")
        return text.split("\n")[:-1]

    def _cut_torn_line(self) -> None:
        data = (self.path / JOURNAL).read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            replace_file(self.path / JOURNAL, whole)


def _chained(before: str, event: Mapping[str, Any]) -> str:
    return hashlib.sha256((before + json.dumps(event, sort_keys=True)).encode()).hexdigest()


def _hashes(plan: AcceptancePlan) -> dict[str, str]:
    found = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in plan.files()}
    return found | {PLAN: hashlib.sha256(plan.text.encode()).hexdigest()}


def _software() -> str:
    return commit_of(ROOT) or source_of(ROOT) or "unknown"
