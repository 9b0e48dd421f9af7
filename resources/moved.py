# SPDX-License-Identifier: Apache-2.0
"""Files that lay elsewhere in version 0.2.1: their old paths work once more, with a warning.

`robot/requirements/NAME.toml` is now `robot/CAP/requirements/NAME.toml`, `resources/NAME.resource` is
`robot/CAP/NAME.resource`. The next version knows the new paths alone.
"""

from __future__ import annotations

from pathlib import Path

from robot.api import logger

OLD_REQUIREMENTS = Path("robot", "requirements")


def present(path: Path) -> Path:
    """Return where a requirements file is now; one that is there, or never was, stays as it is."""
    if path.exists() or path.parent.parts[-2:] != OLD_REQUIREMENTS.parts:
        return path
    found = sorted(path.parent.parent.glob(f"*/{OLD_REQUIREMENTS.name}/{path.name}"))
    if not found:
        return path
    _warn(path, found[0])
    return found[0]


class Moved:
    """Imported by a resource file that stands at an old path, and imports the one at the new path."""

    ROBOT_LIBRARY_SCOPE = "GLOBAL"

    def __init__(self, old: Path, new: Path) -> None:
        """Say so.

        Args:
            old: The path that a suite names.
            new: The path that it should name.
        """
        _warn(old, new)


def _warn(old: Path, new: Path) -> None:
    logger.warn(f"{old} is {new} now; the next version no longer knows the old path")
