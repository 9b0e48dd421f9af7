# SPDX-License-Identifier: Apache-2.0
"""The form that all requirements files share: a head, and an array of tables, [[requirement]]."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import cast

from hw.errors import ConfigError
from hw.fields import Fields


def read_requirements_file(
    path: Path, schema: str, texts: tuple[str, ...], optional: tuple[str, ...] = ()
) -> tuple[dict[str, str], list[Fields]]:
    """Read a requirements file; what a requirement holds is left to the caller.

    To read it is not to ask for what is in it: that is `resources/asking.py`.

    Args:
        path: The TOML file.
        schema: What `requirements.schema` has to be.
        texts: Further keys of the head, all strings.
        optional: As `texts`, but may be left out: "" then.

    Returns:
        The texts by key, and the requirements in the order of the file, at least one.

    Raises:
        ConfigError: Names file, field and allowed range.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
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
