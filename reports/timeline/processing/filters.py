# SPDX-License-Identifier: Apache-2.0
"""What a filter is: a function over arrays, whose annotations say what it takes and gives.

    @named_filter("late")
    def late(lengths: Values, *, limit_ns: int) -> Events: ...

What is positional are its inputs, `*more: Values` any number of them, `Context` what a source reads and a
writer writes by. What is keyword-only are its parameters in the file. One that gives None writes files.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite, isnan
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

from reports.errors import RecordError
from reports.run.integrity import sha256_file
from reports.timeline.processing.data import Data

LARGEST = 1 << 62


class Range(NamedTuple):
    """From `low` to `high`, both in it; an end may be infinite."""

    low: float
    high: float


class Names(tuple[str, ...]):
    """Texts with `*` for any letters and `?` for one; what is one of them is meant."""

    __slots__ = ()

    def match(self, text: str) -> bool:
        """Say whether a text is meant."""
        return any(_pattern(each).fullmatch(text) for each in self)


ALL = Names(("*",))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


@dataclass(slots=True)
class Context:
    """Where a filter stands.

    Attributes:
        step: Its name in the file.
        inputs: Names of the steps that it takes.
        run: The run folder.
        beside: Folder of the file; None: it is computed again from the copy in a run.
        folder: Where it may write.
        hashes: SHA-256 of each file that was read, by its name in the graph's file.
        left_out: In words what a source holds and does not give, by the step.
    """

    step: str
    inputs: tuple[str, ...]
    run: Path
    beside: Path | None
    folder: Path
    hashes: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def path(self, name: str) -> Path:
        """Return a file or folder that the graph's file names: of the run, or with `./` or `../` beside it.

        Raises:
            RecordError: It is not there, lies elsewhere, or was beside a file that is not at hand.
        """
        if "\0" in name:
            raise RecordError(f"{name!r}: no name of a file")
        if name.startswith(("./", "../")):
            if self.beside is None:
                raise RecordError(f"{name}: was read from beside the file: give that with --process")
            found = self.beside / name
        else:
            found = self.run / name
            if not found.resolve().is_relative_to(self.run.resolve()):
                raise RecordError(f"{name}: lies outside of the run; ./ is the folder of this file")
        if not found.exists():
            raise RecordError(f"{name}: does not exist")
        return found

    def leave_out(self, words: str) -> None:
        """Keep what this step does not give of its source."""
        self.left_out.setdefault(self.step, []).append(words)

    def note(self, name: str, path: Path) -> None:
        """Keep the hash of a file, or of each below a folder, as what was computed from."""
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for each in files:
            if each.is_file():
                below = each.relative_to(path).as_posix() if path.is_dir() else ""
                self.hashes[f"{name.rstrip('/')}/{below}" if below else name] = sha256_file(each)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of a step.

    Attributes:
        kind: `int`, `float`, `str`, `bool`, `Range` or `Names`.
        default: Without it; `inspect.Parameter.empty`: it has to be there.
        choices: Texts of which it is one; empty: it is not limited so.
    """

    kind: type[Any]
    default: Any
    choices: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Say whether it has to be there."""
        return self.default is inspect.Parameter.empty

    def read(self, value: object) -> Any:
        """Return a value of the file as the function takes it; raises RecordError, which says what may be."""
        found = self._read(value)
        if found is None:
            raise RecordError(f"must be {self._words()}, found {value!r}")
        return found

    def _words(self) -> str:
        if self.choices:
            return " or ".join(f'"{each}"' for each in self.choices)
        words: dict[type[Any], str] = {
            int: f"a whole number from -{LARGEST} to {LARGEST}",
            float: "a number",
            str: "a text",
            bool: "true or false",
            Range: "[FROM, TO], numbers or inf, the first no more than the second",
            Names: "a text or a list of texts",
        }
        return words[self.kind]

    def _read(self, value: object) -> Any:
        if self.choices:
            return value if value in self.choices else None
        if self.kind in (str, bool):
            return value if type(value) is self.kind else None
        if self.kind is int:
            return value if _is_whole(value) else None
        if self.kind is float:
            return value if _is_whole(value) or (isinstance(value, float) and isfinite(value)) else None
        items = cast("list[Any]", value if isinstance(value, list) else [value])
        if self.kind is Names:
            return Names(items) if items and all(isinstance(each, str) for each in items) else None
        is_range = len(items) == 2 and all(
            _is_whole(each) or (isinstance(each, float) and not isnan(each)) for each in items
        )
        return Range(*items) if is_range and items[0] <= items[1] else None


def _is_whole(value: object) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter, as its function declares it.

    Attributes:
        name: In the file.
        call: The function.
        with_context: It takes a `Context` first.
        inputs: What each input may be.
        more: What any number of further ones may be, one at least; empty: none.
        parameters: By their keys.
        output: What it gives; None: it writes files.
    """

    name: str
    call: Callable[..., Data | None]
    with_context: bool
    inputs: tuple[tuple[type[Any], ...], ...]
    more: tuple[type[Any], ...]
    parameters: Mapping[str, Parameter]
    output: type[Any] | None

    @property
    def about(self) -> str:
        """Return the first line of what it says of itself."""
        return (self.call.__doc__ or "").strip().partition("\n")[0]


def _kinds(annotation: Any, where: str) -> tuple[type[Any], ...]:
    kinds = get_args(annotation) or (annotation,)
    if not set(kinds) <= set(get_args(Data)):
        allowed = ", ".join(each.__name__ for each in get_args(Data))
        raise TypeError(f"{where}: must be one of {allowed}")
    return kinds


def _parameter(found: inspect.Parameter, annotation: Any, where: str) -> Parameter:
    if NoneType in get_args(annotation):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    if get_origin(annotation) is Literal:
        return Parameter(str, found.default, get_args(annotation))
    if annotation not in (int, float, str, bool, Range, Names):
        raise TypeError(f"{where}: must be int, float, str, bool, Range, Names or Literal")
    return Parameter(annotation, found.default)


def named_filter(name: str) -> Callable[[Callable[..., Data | None]], Filter]:
    """Return what makes a filter of a function.

    Args:
        name: By which files call it.

    Raises:
        TypeError: An annotation is missing, or none of those that are allowed.
    """

    def made(function: Callable[..., Data | None]) -> Filter:
        hints = get_type_hints(function)
        inputs: list[tuple[type[Any], ...]] = []
        more: tuple[type[Any], ...] = ()
        parameters: dict[str, Parameter] = {}
        with_context = False
        for each in inspect.signature(function).parameters.values():
            where, hint = f"filter {name}: {each.name}", hints.get(each.name)
            if hint is Context:
                with_context = True
            elif each.kind is each.KEYWORD_ONLY:
                parameters[each.name] = _parameter(each, hint, where)
            elif each.kind is each.VAR_POSITIONAL:
                more = _kinds(hint, where)
            else:
                inputs.append(_kinds(hint, where))
        if reserved := {"filter", "inputs"} & set(parameters):
            raise TypeError(f"filter {name}: a parameter cannot be called {min(reserved)}")
        gives = hints.get("return")
        output = None if gives in (None, NoneType) else _kinds(gives, f"filter {name}: what it gives")[0]
        return Filter(name, function, with_context, tuple(inputs), more, parameters, output)

    return made
