# SPDX-License-Identifier: Apache-2.0
"""The file of a graph: steps, the filter of each, its inputs and its parameters, read strictly.

folder = "site"                 # filters of a site, beside the file; may be left out

[steps]
events = {filter = "run", timeline = "daq_replay/*"}
sent = {filter = "select", inputs = "events", name = "sent"}
list = {filter = "csv", inputs = "sent"}

The order of the steps is that of their inputs, not that of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from reports.errors import RecordError
from reports.timeline.processing.filters import Filter

STEPS_MAX = 1000
FILE_MAX_BYTES = 1 << 20
_NAME = re.compile(r"(?!attempt-\d)[A-Za-z0-9_-]{1,64}", re.ASCII)
"""A folder called attempt-1 is that of a measurement to whoever judges a run again."""
_KEYS = ("folder", "steps")


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file as TOML has it.

    Attributes:
        name: Of the file, for errors.
        text: All of it.
        folder: Of the site's filters, counted from the file; empty: there is none.
        steps: Tables by their names.
    """

    name: str
    text: str
    folder: str
    steps: Mapping[str, Mapping[str, Any]]

    def where(self, step: str = "", key: str = "") -> str:
        """Return file, line, step and key, for errors."""
        path = ".".join(filter(None, ("steps" if step else "", step, key)))
        shown = "".join(each if each.isprintable() else "?" for each in path)
        return f"{self.name}:{_line(self.text, step, key)}: {shown}"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a graph.

    Attributes:
        name: Of its own.
        filter: What it does.
        inputs: Names of the steps that it takes.
        parameters: By their keys, as the function takes them.
    """

    name: str
    filter: Filter
    inputs: tuple[str, ...]
    parameters: Mapping[str, Any]


def _line(text: str, step: str, key: str) -> int:
    """Return the line of a key, or of the step where it is not found."""
    lines = text.splitlines() or [""]
    begin, whole = 0, rf"[\"']?{re.escape(step)}[\"']?"
    if step:
        header = re.compile(rf"\s*(\[\s*steps\s*\.\s*{whole}\s*\]|(steps\s*\.\s*)?{whole}\s*[=.])")
        begin = next((at for at, line in enumerate(lines) if header.match(line)), 0)
    if key:
        wanted = re.compile(rf"(^|[\s{{,.\"']){re.escape(key)}[\"']?\s*[=.\]]|^\s*\[\s*{re.escape(key)}\b")
        for at in range(begin, len(lines)):
            if at > begin and step and lines[at].lstrip().startswith("["):
                break
            if wanted.search(lines[at]):
                return at + 1
    return begin + 1


def read_raw(data: bytes, name: str) -> RawFile:
    """Read a file as far as that needs no filters.

    Args:
        data: Its bytes.
        name: For errors.

    Raises:
        RecordError: Names file, line and key, and what is allowed.
    """
    if len(data) > FILE_MAX_BYTES:
        raise RecordError(f"{name}: more than {FILE_MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{name}: {error}") from error
    raw = RawFile(name, text, "", {})
    for key in document:
        if key not in _KEYS:
            raise RecordError(f"{raw.where(key=key)}: unknown key (allowed: {', '.join(_KEYS)})")
    folder, steps = document.get("folder", ""), document.get("steps")
    if not isinstance(folder, str) or ("folder" in document and not folder):
        raise RecordError(f"{raw.where(key='folder')}: must be the name of a folder")
    if not isinstance(steps, dict) or not steps or len(cast("dict[str, object]", steps)) > STEPS_MAX:
        raise RecordError(f"{raw.where(key='steps')}: must be a table of 1 to {STEPS_MAX} steps")
    for step, table in cast("dict[str, object]", steps).items():
        if not _NAME.fullmatch(step):
            raise RecordError(f"{raw.where(step)}: a name has 1 to 64 of A-Z a-z 0-9 _ -, no attempt-N")
        if not isinstance(table, dict):
            raise RecordError(f"{raw.where(step)}: must be a table with a filter")
    return RawFile(name, text, folder, cast("dict[str, dict[str, Any]]", steps))


def read_graph(raw: RawFile, known: Mapping[str, Filter]) -> tuple[Step, ...]:
    """Return the steps in an order in which each comes behind its inputs.

    Args:
        raw: The file.
        known: Filters by their names.

    Raises:
        RecordError: Names file, line, step and key, and what is allowed.
    """
    steps = {name: _step(raw, name, table, known) for name, table in raw.steps.items()}
    for step in steps.values():
        _check_inputs(raw, step, steps)
    try:
        order = tuple(TopologicalSorter({name: step.inputs for name, step in steps.items()}).static_order())
    except CycleError as error:
        ring = cast("list[str]", error.args[1])
        raise RecordError(f"{raw.where(ring[-1], 'inputs')}: a cycle: {' -> '.join(ring)}") from error
    if all(step.filter.output for step in steps.values()):
        writers = ", ".join(sorted(name for name, each in known.items() if each.output is None))
        raise RecordError(f"{raw.where(key='steps')}: none of them writes a file (what does: {writers})")
    return tuple(steps[name] for name in order)


def _step(raw: RawFile, name: str, table: Mapping[str, Any], known: Mapping[str, Filter]) -> Step:
    called: object = table.get("filter")
    if not isinstance(called, str) or called not in known:
        said = "missing" if called is None else f"unknown filter {called!r}"
        raise RecordError(f"{raw.where(name, 'filter')}: {said} (allowed: {', '.join(sorted(known))})")
    its = known[called]
    allowed = ["filter", *(["inputs"] if its.inputs or its.more else []), *its.parameters]
    for key in table:
        if key not in allowed:
            raise RecordError(
                f"{raw.where(name, key)}: unknown key of filter {called} (allowed: {', '.join(allowed)})"
            )
    inputs: object = table.get("inputs", [])
    items = cast("list[object]", inputs if isinstance(inputs, list) else [inputs])
    if not all(isinstance(each, str) for each in items):
        raise RecordError(f"{raw.where(name, 'inputs')}: must be the name of a step, or a list of names")
    parameters: dict[str, Any] = {}
    for key, parameter in its.parameters.items():
        if key in table:
            try:
                parameters[key] = parameter.read(table[key])
            except RecordError as error:
                raise RecordError(f"{raw.where(name, key)}: {error}") from error
        elif parameter.needed:
            raise RecordError(f"{raw.where(name)}: filter {called} needs the key {key}")
    return Step(name, its, tuple(cast("list[str]", items)), parameters)


def _check_inputs(raw: RawFile, step: Step, steps: Mapping[str, Step]) -> None:
    its, where = step.filter, raw.where(step.name, "inputs")
    least, given = len(its.inputs) + bool(its.more), len(step.inputs)
    if given < least or (given > least and not its.more):
        more = " or more" if its.more else ""
        raise RecordError(f"{where}: filter {its.name} takes {least}{more}, found {given}")
    wanted: Sequence[tuple[type[Any], ...]] = [*its.inputs, *[its.more] * (given - len(its.inputs))]
    for name, kinds in zip(step.inputs, wanted, strict=True):
        if name not in steps:
            raise RecordError(f"{where}: unknown step {name!r} (allowed: {', '.join(steps)})")
        gives = steps[name].filter.output
        if gives not in kinds:
            words = " or ".join(each.__name__.lower() for each in kinds)
            found = gives.__name__.lower() if gives else "files alone"
            raise RecordError(f"{where}: {name} gives {found}, filter {its.name} takes {words}")
