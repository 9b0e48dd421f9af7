# SPDX-License-Identifier: Apache-2.0
"""Which filters there are: those of the modules `*_filters.py` here, and those of a site's folder.

Modules of a site are Python code that runs with all that its user may do.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from reports.errors import RecordError, ReportError
from reports.timeline.processing.filters import Filter

HERE = Path(__file__).parent
SITE_FILE_MAX_BYTES = 1 << 20


class SiteModuleError(ReportError):
    """Say that the code of a site has failed, with its file and line."""


def filters_here() -> dict[str, Filter]:
    """Return the filters that come with the project, by their names."""
    found: dict[str, Filter] = {}
    for path in sorted(HERE.glob("*_filters.py")):
        found |= {
            each.name: each for each in _of_module(import_module(f"reports.timeline.processing.{path.stem}"))
        }
    return found


def _of_module(module: ModuleType) -> Iterator[Filter]:
    for each in vars(module).values():
        if isinstance(each, Filter) and each.call.__module__ == module.__name__:
            yield each


def site_files(folder: Path, name: str) -> dict[str, bytes]:
    """Return the modules of a site's folder, by their names.

    Args:
        folder: The folder.
        name: As the file has it, for errors.

    Raises:
        RecordError: It has none, or one cannot be read.
    """
    found: dict[str, bytes] = {}
    for path in sorted(folder.glob("*.py")):
        try:
            found[path.name] = path.read_bytes()
        except OSError as error:
            raise RecordError(f"folder {name}: {path.name}: {error.strerror}") from error
        if len(found[path.name]) > SITE_FILE_MAX_BYTES:
            raise RecordError(f"folder {name}: {path.name}: more than {SITE_FILE_MAX_BYTES} bytes")
    if not found:
        raise RecordError(f"folder {name}: no *.py in it")
    return found


def filters_of_site(files: Mapping[str, bytes], known: Mapping[str, Filter]) -> dict[str, Filter]:
    """Run the modules of a site, and return the filters that they make.

    Args:
        files: The modules, by their names.
        known: Filters whose names are taken.

    Raises:
        SiteModuleError: One fails; names its file and line.
        RecordError: A name is taken.
    """
    found: dict[str, Filter] = {}
    for name, source in files.items():
        module = ModuleType(f"benchwright_site_{Path(name).stem}")
        sys.modules[module.__name__] = module  # where dataclasses look up annotations
        try:
            exec(compile(source, name, "exec"), vars(module))  # noqa: S102 - what the site's folder is for
        except (Exception, SystemExit) as error:
            raise site_error(error, files) from error
        for each in _of_module(module):
            if each.name in known or each.name in found:
                raise RecordError(f"{name}: filter {each.name!r}: there is one of this name already")
            found[each.name] = each
    return found


def site_error(error: BaseException, files: Mapping[str, bytes]) -> SiteModuleError:
    """Return what names the file and line of a site in which an error arose."""
    place = ""
    if isinstance(error, SyntaxError) and error.filename in files:
        place = f"{error.filename}:{error.lineno}"
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename in files:
            place = f"{frame.filename}:{frame.lineno}"
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return SiteModuleError(f"{place or min(files)}: {type(error).__name__}: {said}")
