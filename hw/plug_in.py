# SPDX-License-Identifier: Apache-2.0
"""Clocks that `bw-clock` loads: `plugin:FILE[,ARGUMENTS]`, and where FILE is.

A relative path is that of a file beside the bench file, which is brought to the node; an absolute one is the
node's own, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from hw.errors import ConfigError

PREFIX = "plugin:"


@dataclass(frozen=True)
class PlugIn:
    """A clock that is loaded.

    Attributes:
        file: As it is named.
        arguments: Its own, with the comma before them; empty: none.
    """

    file: str
    arguments: str

    @property
    def is_on_node(self) -> bool:
        """Tell whether the node has the file."""
        return PurePosixPath(self.file).is_absolute() or PureWindowsPath(self.file).is_absolute()

    def beside(self, bench_file: Path) -> Path:
        """Return the file that is brought to the node; raises ConfigError where there is none."""
        file = (bench_file.parent / self.file).resolve()
        if not file.is_file():
            raise ConfigError(f"{PREFIX}{self.file}: there is no file {file}")
        return file


def plug_in_of(clock: str) -> PlugIn | None:
    """Return the plug-in that a clock is, as `bw-clock` names it; None: one that is built in."""
    if not clock.startswith(PREFIX):
        return None
    file, comma, arguments = clock.removeprefix(PREFIX).partition(",")
    return PlugIn(file, comma + arguments)
