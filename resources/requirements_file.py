# SPDX-License-Identifier: Apache-2.0
"""The form that all requirements files share: a head, and an array of tables, [[requirement]]."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import cast

from hw.errors import ConfigError
from hw.fields import Fields


def read_requirements_file(
    path: Path, schema: str, texts: tuple[str, ...]
) -> tuple[dict[str, str], list[Fields]]:
    """Read a requirements file; what a requirement holds is left to the caller.

    Args:
        path: The TOML file.
        schema: What `requirements.schema` has to be.
        texts: Further keys of the head, all strings.

    Returns:
        The texts by key, and the requirements in the order of the file, at least one.

    Raises:
        ConfigError: Names file, field and allowed range.
    """
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    unknown = sorted(set(document) - {"requirements", "requirement"})
    if unknown:
        raise ConfigError(f"{path}: {unknown[0]}: unknown table; known here: requirements, requirement")
    head = Fields(document.get("requirements", {}), str(path), "requirements")
    head.text("schema", choices=(schema,))
    found = {key: head.text(key) for key in texts}
    head.finish()
    items: object = document.get("requirement", [])
    if not isinstance(items, list):
        raise ConfigError(f"{path}: requirement: must be an array of tables, [[requirement]]")
    if not items:
        raise ConfigError(f"{path}: requirement: there must be at least one")
    numbered = enumerate(cast("list[object]", items), start=1)
    return found, [Fields(item, str(path), f"requirement[{number}]") for number, item in numbered]
