# SPDX-License-Identifier: Apache-2.0
"""The form that all requirements files share: a head, and an array of tables, [[requirement]]."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import cast

from hw.errors import ConfigError
from hw.fields import Fields
from reports.asked import KEPT, note_asked, suite_name
from reports.current import open_run
from reports.durable import replace_file
from reports.robot_variable import robot_variable


def read_requirements_file(
    path: Path, schema: str, texts: tuple[str, ...], optional: tuple[str, ...] = (), asked: bool = True
) -> tuple[dict[str, str], list[Fields]]:
    """Read a requirements file; what a requirement holds is left to the caller.

    While a run is open, its evidence keeps the file's bytes: they say later what was asked, and what of it
    nobody measured.

    Args:
        path: The TOML file.
        schema: What `requirements.schema` has to be.
        texts: Further keys of the head, all strings.
        optional: As `texts`, but may be left out: "" then.
        asked: Whether what it demands is asked of the target; else the run does not keep it.

    Returns:
        The texts by key, and the requirements in the order of the file, at least one.

    Raises:
        ConfigError: Names file, field and allowed range.
        RunFolderError: The copy cannot be written.
    """
    try:
        data = path.read_bytes()
        document = tomllib.loads(data.decode())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    unknown = sorted(set(document) - {"requirements", "requirement"})
    if unknown:
        raise ConfigError(f"{path}: {unknown[0]}: unknown table; known here: requirements, requirement")
    head = Fields(document.get("requirements", {}), str(path), "requirements")
    head.text("schema", choices=(schema,))
    found = {key: head.text(key) for key in texts} | {key: head.text(key, "") for key in optional}
    head.finish()
    items: object = document.get("requirement", [])
    if not isinstance(items, list):
        raise ConfigError(f"{path}: requirement: must be an array of tables, [[requirement]]")
    if not items:
        raise ConfigError(f"{path}: requirement: there must be at least one")
    tables = cast("list[object]", items)
    _refuse_doubles(path, tables)
    if asked:
        _keep(path, data)
    return found, [
        Fields(table, str(path), f"requirement[{number}]") for number, table in enumerate(tables, start=1)
    ]


def _refuse_doubles(path: Path, tables: list[object]) -> None:
    """Raise ConfigError where two requirements have one id."""
    seen: set[object] = set()
    for number, table in enumerate(tables, start=1):
        identifier = cast("dict[str, object]", table).get("id") if isinstance(table, dict) else None
        if not isinstance(identifier, str):
            continue  # whoever reads the requirement says what is wrong with it
        if identifier in seen:
            raise ConfigError(f"{path}: requirement[{number}].id: {identifier!r} stands twice")
        seen.add(identifier)


def _keep(path: Path, data: bytes) -> None:
    """Copy a file into the evidence of the open run, once; one of the same name and other bytes beside it."""
    run = open_run()
    if run is None or run.finalised:
        return
    folder = run.evidence_folder(KEPT)
    kept = folder / path.name
    if kept.exists() and kept.read_bytes() != data:
        kept = folder / f"{path.stem}-{hashlib.sha256(data).hexdigest()[:8]}{path.suffix}"
    if not kept.exists():
        replace_file(kept, data)
    target, suite = robot_variable("TARGET"), robot_variable("SUITE_SOURCE")
    if target and suite:
        note_asked(run, target, suite_name(Path(suite)), kept.name)
