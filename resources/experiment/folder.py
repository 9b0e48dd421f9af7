# SPDX-License-Identifier: Apache-2.0
"""The folder of an experiment: what was asked, with what, what every point has left, where to go on.

experiment.toml    resolved: it runs again as it is
files/             that its commands bring to nodes
plan.txt           as `plan` prints it
versions.json      kernels and tools
points/0001/       of a point that is complete: what its components wrote, `schedule.ndjson`, `point.json`
points/0002.1/     of one that was broken off, the first time
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hw.errors import BenchError, ConfigError
from resources.experiment.components import ProgramComponent
from resources.experiment.experiment_file import ExperimentFile, read_experiment_file
from resources.experiment.plan import plan_text
from resources.experiment.points import Point

EXPERIMENT, PLAN, VERSIONS, IDENTITY = "experiment.toml", "plan.txt", "versions.json", "identity.json"
_HERE = "open"


class ExperimentFolder:
    """A folder that is there."""

    def __init__(self, path: Path, mark: str) -> None:
        """Take a folder that `create` or `reopen` has found whole."""
        self.path = path
        self.mark = mark
        """Tells the experiment's processes from all others on a node."""
        self.files = path / "files"

    @classmethod
    def create(cls, path: Path, experiment: ExperimentFile) -> ExperimentFolder:
        """Make a folder for an experiment that begins.

        Raises:
            ConfigError: It is there already, or a file that a command brings is not.
        """
        if path.exists():
            on = f"; `resume {path / EXPERIMENT}` goes on with it" if (path / EXPERIMENT).exists() else ""
            raise ConfigError(f"--output {path}: must be a new folder{on}")
        brought = _brought(experiment)
        path.mkdir(parents=True)
        folder = cls(path, secrets.token_hex(8))
        folder.files.mkdir()
        for name, file in brought.items():
            shutil.copy2(file, folder.files / name)
        (path / "points").mkdir()
        (path / EXPERIMENT).write_text(experiment.text(), encoding="utf-8")
        (path / PLAN).write_text(plan_text(experiment), encoding="utf-8")
        _replace(path / IDENTITY, {"mark": folder.mark, "sha256": folder.hashes()})
        return folder

    @classmethod
    def reopen(cls, path: Path, bench: Path | None = None) -> tuple[ExperimentFolder, ExperimentFile]:
        """Return a folder that an experiment has left, and the experiment.

        Raises:
            ConfigError: It is none, or its plan is no more the one that began.
        """
        if not (path / IDENTITY).is_file() or not (path / PLAN).is_file():
            raise ConfigError(f"{path}: must be the folder of an experiment that has begun")
        experiment = read_experiment_file(path / EXPERIMENT, bench)
        if plan_text(experiment) != (path / PLAN).read_text(encoding="utf-8"):
            raise ConfigError(
                f"{path / EXPERIMENT}: its plan must be that of {PLAN} beside it; begin anew with `run`"
            )
        identity: Any = json.loads((path / IDENTITY).read_text())
        folder = cls(path, str(identity["mark"]))
        for name, digest in folder.hashes().items():
            if identity["sha256"].get(name) != digest:
                raise ConfigError(
                    f"{folder.files / name}: must be as when the experiment began; begin anew with `run`"
                )
        return folder, experiment

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each file that commands bring to nodes."""
        files = sorted(self.files.iterdir())
        return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in files}

    def keep_versions(self, versions: Mapping[str, str]) -> list[str]:
        """Keep versions the first time; return in words what has changed since."""
        file = self.path / VERSIONS
        if not file.exists():
            _replace(file, versions)
            return []
        before: dict[str, str] = json.loads(file.read_text())
        return [
            f"{name}: {before.get(name, 'nothing')} before, {versions.get(name, 'nothing')} now"
            for name in sorted({*before, *versions})
            if before.get(name) != versions.get(name)
        ]

    def done(self) -> set[int]:
        """Return the numbers of the points that are complete."""
        return {int(each.name) for each in (self.path / "points").iterdir() if each.name.isdecimal()}

    def complete(self, point: Point) -> Path:
        """Return the folder of a point that is complete."""
        return self.path / "points" / f"{point.number:04d}"

    @contextmanager
    def point(self, point: Point) -> Generator[Path, None, None]:
        """Give the folder of a point; it counts as complete when the context ends without an error."""
        points = self.path / "points"
        here = points / f"{point.number:04d}.{_HERE}"
        if here.exists():  # of a controller that was killed
            here.rename(_broken_off(points, point))
        here.mkdir()
        _replace(
            here / "point.json",
            {"number": point.number, "repeat": point.repeat, "values": dict(point.values)},
        )
        try:
            yield here
        except BaseException:
            here.rename(_broken_off(points, point))
            raise
        try:
            os.sync()
            here.rename(self.complete(point))
        except OSError as error:
            raise BenchError(f"{here}: cannot be completed: {error}") from error


def _broken_off(points: Path, point: Point) -> Path:
    number = 1
    while (path := points / f"{point.number:04d}.{number}").exists():
        number += 1
    return path


def _brought(experiment: ExperimentFile) -> dict[str, Path]:
    """Return the files that commands bring to nodes, by their names there."""
    found: dict[str, Path] = {}
    for point in experiment.points:
        for component in experiment.at(point).components.values():
            for name in component.brought if isinstance(component, ProgramComponent) else ():
                file = experiment.folder / name
                if not file.is_file():
                    raise ConfigError(f"components.{component.name}: {name}: no file {file}")
                before = found.setdefault(file.name, file)
                if before.resolve() != file.resolve():
                    raise ConfigError(
                        f"components.{component.name}: {name}: must have another name than {before}"
                    )
    return found


def _replace(path: Path, value: Mapping[str, Any]) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.replace(path)
