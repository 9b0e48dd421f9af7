# SPDX-License-Identifier: Apache-2.0
"""A graph is computed: each step once, into files of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reports.errors import RecordError
from reports.timeline.processing.data import Data
from reports.timeline.processing.filters import Context
from reports.timeline.processing.graph_file import RawFile, Step, read_graph
from reports.timeline.processing.known_filters import filters_here, filters_of_site, site_error


def run_graph(
    raw: RawFile, site: Mapping[str, bytes], run: Path, beside: Path | None, folder: Path
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Compute a graph; return the SHA-256 of each file that it read, and by step what it left out.

    Args:
        raw: Its file.
        site: Modules of a site, by their names.
        run: The run folder.
        beside: Folder of the file; None: it is a copy.
        folder: An empty one, for the files.

    Raises:
        RecordError: The file is wrong, or a step cannot be computed; names file, line and step.
        SiteModuleError: Code of a site fails; names its file and line.
    """
    known = filters_here()
    own = filters_of_site(site, known) if site else {}
    given: dict[str, Data] = {}
    hashes: dict[str, str] = {}
    left_out: dict[str, list[str]] = {}
    for step in read_graph(raw, known | own):
        context = Context(step.name, step.inputs, run, beside, folder, hashes, left_out)
        try:
            found = _call(step, context, given)
            if step.filter.output is not None and not isinstance(found, step.filter.output):
                raise TypeError(
                    f"filter {step.filter.name}: gave {type(found).__name__},"
                    f" not {step.filter.output.__name__}"
                )
        except Exception as error:
            if step.filter.name in own:
                raise site_error(error, site) from error
            if isinstance(error, RecordError):
                raise RecordError(f"{raw.where(step.name)}: {error}") from error
            raise
        if found is not None:
            given[step.name] = found
    return hashes, left_out


def _call(step: Step, context: Context, given: Mapping[str, Data]) -> Data | None:
    first = [context] if step.filter.with_context else []
    return step.filter.call(*first, *(given[name] for name in step.inputs), **step.parameters)
