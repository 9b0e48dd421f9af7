# SPDX-License-Identifier: Apache-2.0
"""The run folder: everything that a run leaves behind, safe against a kill at any moment.

results/<UTC time>-<bench>-<profile>/
    run.json             manifest, replaced as a whole; at the end it lists all files
    measurements.jsonl   one record a line, each on the disk before `append` returns
    evidence/            raw data
    SHA256SUMS           over every other file, written last
results/latest           link to the run that was finalised last
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reports.durable import append_line, draft_of, replace_file, sync_directory, write_error
from reports.errors import RecordError, RunFolderError
from reports.record.measurement import Evidence, Measurement, Outcome, utc_now
from reports.run.failed_tests import FailedTest
from reports.run.integrity import SUMS, sha256_file, write_sums
from reports.run.left_out import LeftOut
from reports.run.manifest import MANIFEST_SCHEMA, Attempt, Manifest, TestCounts, count_outcomes
from reports.run.selected import SelectedSuite

MANIFEST = "run.json"
MEASUREMENTS = "measurements.jsonl"
EVIDENCE = "evidence"
LATEST = "latest"
RESULTS = Path("results")
"""Where a qualification puts its runs, unless it is told otherwise."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclasses.dataclass(frozen=True, slots=True)
class Records:
    """The measurements of a run, and a torn last line where one was found."""

    measurements: tuple[Measurement, ...]
    torn: str | None


class RunFolder:
    """A run folder that is being written, or read again."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        """Hold a folder that exists; use `create` or `open`."""
        self.path = path
        self._manifest = manifest
        self._handle: int | None = None

    @property
    def manifest(self) -> Manifest:
        """Return the manifest as it was last written."""
        return self._manifest

    @property
    def run_id(self) -> str:
        """Return the id of the run, unique over all benches."""
        return self._manifest.run_id

    @classmethod
    def create(
        cls,
        results: Path,
        bench: str,
        profile: str,
        *,
        simulated: bool | None = None,
        commit: str | None = None,
    ) -> RunFolder:
        """Make `<results>/<UTC time>-<bench>-<profile>/` with its manifest, all at once.

        The folder is made under another name and renamed, so that it is never seen without a manifest.

        Raises:
            RunFolderError: A name is not fit for a path, or the folder cannot be written.
        """
        for what, name in (("bench", bench), ("profile", profile)):
            if not _NAME.fullmatch(name):
                raise RunFolderError(f"{what} {name!r}: only letters, digits, '_', '.' and '-' are allowed")
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        run_id = f"{stamp}-{secrets.token_hex(4)}"
        manifest = Manifest(
            schema=MANIFEST_SCHEMA,
            run_id=run_id,
            bench=bench,
            profile=profile,
            simulated=simulated,
            start_utc=utc_now(),
            end_utc=None,
            commit=commit,
            host={},
            target={},
            tools={},
            counts=count_outcomes(()),
        )
        draft = results / f".{run_id}.new"
        try:
            (draft / EVIDENCE).mkdir(parents=True)
            replace_file(draft / MANIFEST, manifest.to_text().encode())
            append_empty(draft / MEASUREMENTS)
            path = _rename_free(draft, results / f"{stamp}-{bench}-{profile}")
        except (OSError, RunFolderError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise write_error(results, error) if isinstance(error, OSError) else error from error
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder that exists; raises RunFolderError where it is none."""
        try:
            data = (path / MANIFEST).read_bytes()
        except OSError as error:
            raise RunFolderError(f"{path}: no run folder: {MANIFEST}: {error.strerror}") from error
        try:
            return cls(path.resolve(), Manifest.from_text(data))
        except RecordError as error:
            raise RunFolderError(f"{path}: {error}") from error

    @property
    def finalised(self) -> bool:
        """Say whether the folder has its sums and must not change any more."""
        return (self.path / SUMS).exists()

    def append(self, measurement: Measurement) -> None:
        """Add one record and wait until it is on the disk.

        Raises:
            RunFolderError: The record is of another run, the run is over, or the disk does not take it.
        """
        if measurement.run_id != self.run_id:
            raise RunFolderError(f"record of run {measurement.run_id} in the folder of {self.run_id}")
        self._check_open()
        append_line(self.path / MEASUREMENTS, measurement.to_line())

    def records(self) -> Records:
        """Read the measurements; a last line that a kill has torn is reported apart.

        Raises:
            RunFolderError: A whole line is not a record; the message says which and why.
        """
        lines = (self.path / MEASUREMENTS).read_bytes().decode(errors="replace").split("\n")
        torn = lines.pop() or None
        found: list[Measurement] = []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(Measurement.from_line(line))
            except RecordError as error:
                raise RunFolderError(f"{MEASUREMENTS}:{number}: {error}") from error
        return Records(tuple(found), torn)

    def fix(self) -> str | None:
        """Set a torn last line aside into the evidence, so that records can be appended; return it."""
        self._check_open()
        path = self.path / MEASUREMENTS
        data = path.read_bytes()
        torn = data[data.rfind(b"\n") + 1 :]
        if not torn:
            return None
        kept = self.path / EVIDENCE / f"torn-record-{len(data)}.txt"
        replace_file(kept, torn)
        os.truncate(path, len(data) - len(torn))
        return torn.decode(errors="replace")

    def evidence_folder(self, *names: str) -> Path:
        """Make and return a folder below `evidence/`; raises RunFolderError."""
        self._check_open()
        folder = self.path.joinpath(EVIDENCE, *names)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from error
        return folder

    def evidence(self, file: Path) -> Evidence:
        """Return the reference to a file of this folder, with its hash; raises RunFolderError."""
        try:
            relative = file.resolve().relative_to(self.path.resolve()).as_posix()
            return Evidence(relative, sha256_file(file))
        except ValueError as error:
            raise RunFolderError(f"{file}: not inside the run folder") from error
        except OSError as error:
            raise RunFolderError(f"{file}: {error.strerror}") from error

    def update(
        self,
        *,
        bench: str | None = None,
        simulated: bool | None = None,
        commit: str | None = None,
        host: Mapping[str, Any] | None = None,
        target: Mapping[str, Any] | None = None,
        tools: Mapping[str, Any] | None = None,
        tests: TestCounts | None = None,
        failed_tests: tuple[FailedTest, ...] = (),
        asked: tuple[SelectedSuite, ...] = (),
        left_out: tuple[LeftOut, ...] = (),
        excluded_miss_probability: float | None = None,
        interrupted: str | None = None,
        outcome: Outcome | None = None,
        file_sizes_bytes: Mapping[str, int | None] | None = None,
    ) -> None:
        """Add to the manifest; facts of `host`, `target` and `tools` join those that are there."""
        old = self._manifest
        self._write(
            dataclasses.replace(
                old,
                bench=old.bench if bench is None else bench,
                simulated=old.simulated if simulated is None else simulated,
                commit=commit or old.commit,
                host={**old.host, **(host or {})},
                target={**old.target, **(target or {})},
                tools={**old.tools, **(tools or {})},
                tests=tests or old.tests,
                failed_tests=failed_tests or old.failed_tests,
                asked=asked or old.asked,
                left_out=left_out or old.left_out,
                excluded_miss_probability=excluded_miss_probability or old.excluded_miss_probability,
                interrupted=old.interrupted if interrupted is None else interrupted,
                outcome=outcome or old.outcome,
                file_sizes_bytes=dict(file_sizes_bytes) if file_sizes_bytes else old.file_sizes_bytes,
            )
        )

    def add_attempt(self, suite: str, outcome: Outcome, reason: str = "") -> int:
        """Record that an attempt of a suite is over; return its number, 1 for the first."""
        number = 1 + sum(attempt.suite == suite for attempt in self._manifest.attempts)
        attempts = (*self._manifest.attempts, Attempt(suite, number, outcome, reason))
        self._write(dataclasses.replace(self._manifest, attempts=attempts))
        return number

    def add_problem(self, problem: str) -> None:
        """Record that something went wrong with the run itself."""
        self._write(dataclasses.replace(self._manifest, problems=(*self._manifest.problems, problem)))

    def close(self) -> None:
        """Write the counts and the end into the manifest; pages may be rendered after it."""
        self._close(end_utc=utc_now())

    def close_afterwards(self) -> None:
        """Write the counts of a run whose process has died, and that this was done after it."""
        self._close(finished_utc=utc_now())

    def _close(self, **times: str) -> None:
        records = self.records().measurements
        simulated = self._manifest.simulated
        if records:
            simulated = bool(simulated) or any(record.simulated for record in records)
        self._write(
            dataclasses.replace(self._manifest, simulated=simulated, counts=count_outcomes(records), **times)
        )

    def finalise(self) -> None:
        """Write the sums over every file and point `latest` here; nothing changes after it.

        Raises:
            RunFolderError: A file cannot be summed, or the disk does not take the sums.
        """
        self._check_open()
        write_sums(self.path)
        switch_link(self.path.parent / LATEST, self.path.name)
        self.let_go()

    def finish(self) -> None:
        """Write the sums of a run whose process has died; `latest` moves here from an older run only.

        One that cannot be read counts as older.

        Raises:
            RunFolderError: As `finalise`.
        """
        newest = self.path.parent / LATEST
        began_utc = ""
        with contextlib.suppress(RunFolderError):
            began_utc = RunFolder.open(newest).manifest.start_utc if newest.exists() else ""
        if began_utc > self.manifest.start_utc:
            self._check_open()
            write_sums(self.path)
        else:
            self.finalise()

    def hold(self) -> None:
        """Let others know that this run is still being written, until it is finalised or this process ends.

        Raises:
            RunFolderError: Another process holds it, or its records cannot be read.
        """
        try:
            handle = os.open(self.path / MEASUREMENTS, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RunFolderError(f"{self.path / MEASUREMENTS}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise RunFolderError(f"{self.path}: the run is still being written") from None
        self._handle = handle

    def let_go(self) -> None:
        """End `hold`; harmless where nothing is held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @property
    def is_held(self) -> bool:
        """Say whether a process is still writing the run."""
        try:
            self.hold()
        except RunFolderError:
            return True
        self.let_go()
        return False

    def _check_open(self) -> None:
        if self.finalised:
            raise RunFolderError(f"{self.path}: the run is finalised; it must not change")

    def _write(self, manifest: Manifest) -> None:
        self._check_open()
        replace_file(self.path / MANIFEST, manifest.to_text().encode())
        self._manifest = manifest


def append_empty(path: Path) -> None:
    """Make an empty file; raises RunFolderError."""
    try:
        path.touch(exist_ok=False)
    except OSError as error:
        raise write_error(path, error) from error


def _rename_free(draft: Path, wanted: Path) -> Path:
    """Rename a folder to a name that is free: the wanted one, or the same with a number behind it."""
    number = 1
    while True:
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            draft.rename(path)
        except OSError:
            if not path.exists():
                raise
            number += 1
            continue
        sync_directory(path.parent)
        return path


def named_run(text: str) -> Path:
    """Return the folder of a run that a command line names: its path, or its name below `results`."""
    path, kept = Path(text), RESULTS / text
    return kept if not path.exists() and kept.exists() else path


def newer_runs(run: Path) -> list[RunFolder]:
    """Return the runs beside `latest` that began after it and are not finalised, the oldest first.

    Args:
        run: As somebody has named it: of a run that is named otherwise nobody takes it for the newest.
    """
    if run.name != LATEST:
        return []
    latest = RunFolder.open(run).manifest.start_utc if run.exists() else ""
    found: list[RunFolder] = []
    for manifest in run.parent.glob(f"[!.]*/{MANIFEST}"):
        with contextlib.suppress(RunFolderError):
            found.append(RunFolder.open(manifest.parent))
    newer = [each for each in found if each.manifest.start_utc > latest and not each.finalised]
    return sorted(newer, key=lambda each: each.manifest.start_utc)


def newer_words(run: Path) -> list[str]:
    """Return a line for each of `newer_runs`, in words: what is said of `latest` is not said of them."""
    return [
        f"a newer run {each.run_id} {'is still running' if each.is_held else 'was not finalised'}:"
        f" python -m reports show {each.path}"
        for each in newer_runs(run)
    ]


def switch_link(link: Path, destination: str) -> None:
    """Point a symbolic link elsewhere in one step: a reader sees the old place or the new one.

    Raises:
        RunFolderError: The link's name is taken by something that is no link, or cannot be written.
    """
    draft = draft_of(link)
    try:
        if link.exists() and not link.is_symlink():
            raise RunFolderError(f"{link}: exists and is not a link; remove it")
        draft.symlink_to(destination)
        draft.replace(link)
        sync_directory(link.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise write_error(link, error) from error
