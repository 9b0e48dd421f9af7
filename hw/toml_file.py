# SPDX-License-Identifier: Apache-2.0
"""Reading of a TOML file; `hw.fields.Fields` reads its tables."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hw.errors import ConfigError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the file's top table.

    Raises:
        ConfigError: It cannot be read, or is not TOML; names the file.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from error
