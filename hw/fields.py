# SPDX-License-Identifier: Apache-2.0
"""Strict reading of tables from YAML and TOML: refuse what is unknown, mistyped or out of range."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from hw.errors import ConfigError

_REQUIRED: Any = object()
_ABSENT: Any = object()
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")

HOST_LABELS = "each label of HOST of 1..63 characters"
"""What a host name must be that `can_be_looked_up`."""


def can_be_looked_up(host: str) -> bool:
    """Tell whether a host can be asked for: the system's resolver raises UnicodeError for what is no name."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


@cache
def _warn(text: str) -> None:
    """Say it once: a file is read several times in a run. Robot Framework takes it into its log."""
    logging.getLogger(__name__).warning(text)


class FieldError(ConfigError):
    """A key, or a table, that is wrong.

    Attributes:
        file: Name of the file; empty: who reads it knows.
        key: Path of the key inside the file.
        said: What is wrong with it.
    """

    def __init__(self, file: str, key: str, said: str) -> None:
        """Say it in one line."""
        super().__init__(": ".join(filter(None, (file, key, said))))
        self.file = file
        self.key = key
        self.said = said


class Fields:
    """One table of a configuration file; ask for each key, then call `finish`."""

    def __init__(self, data: object, file: str, table: str) -> None:
        """Wrap a table.

        Args:
            data: What the parser returned; must be a mapping with string keys.
            file: Name of the file, for messages.
            table: Path of the table inside the file, for messages; empty: the file's top.
        """
        self.file = file
        self.table = table
        if not isinstance(data, Mapping):
            found = type(data).__name__
            raise FieldError(file, table or "the top", f"must be a table of keys, found {found}")
        items = cast("Mapping[object, object]", data)
        for key in items:
            if not isinstance(key, str | int) or isinstance(key, bool):
                said = f"key {key!r} must be a plain name (quote it)"
                raise FieldError(file, table or "the top", said)
        self._data: dict[str, object] = {str(key): value for key, value in items.items()}
        self._asked: set[str] = set()

    def rename(self, old: str, new: str) -> None:
        """Take a key by its name in version 0.2.1 as the one that it has now, with a warning."""
        if old not in self._data:
            return
        if new in self._data:
            raise self.fault(old, f"is {new} now, which is there, too")
        _warn(f"{self.file}: {self._path(old)} is {new} now; the next version no longer knows the old name")
        self._data[new] = self._data.pop(old)

    def _path(self, key: str) -> str:
        return f"{self.table}.{key}" if self.table else key

    def _take(self, key: str, default: object) -> object:
        self._asked.add(key)
        if key in self._data:
            return self._data[key]
        if default is _REQUIRED:
            raise self.fault(key, "missing")
        return default

    def fault(self, key: str, said: str) -> FieldError:
        """Return what is wrong with a key, to be raised; with an empty one, with the table."""
        return FieldError(self.file, self._path(key) if key else self.table, said)

    def _wrong(self, key: str, found: object, wanted: str) -> FieldError:
        return self.fault(key, f"must be {wanted}, found {found!r}")

    def text(self, key: str, default: str | None = _REQUIRED, choices: Sequence[str] = ()) -> str:
        """Return a string, one of `choices` where given."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, "a string")
        if choices and value not in choices:
            raise self._wrong(key, value, "one of " + ", ".join(choices))
        return value

    def text_that_says(self, key: str) -> str:
        """Return a string that is not empty, without blanks around it."""
        value = self.text(key).strip()
        if not value:
            raise self._wrong(key, value, "a text that is not empty")
        return value

    def words(self, key: str, default: str | None = _REQUIRED) -> tuple[str, ...]:
        """Return the words of a text; one with blanks stands in quotes, as in a shell."""
        value = self.text(key, default)
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise self._wrong(key, value, f"words, their quotes closed ({error})") from error

    def name(self, key: str) -> str:
        """Return a name that can be part of the name of a file or a namespace."""
        return self.check_name(key, self.text(key))

    def check_name(self, key: str, text: str, longest: int = 32) -> str:
        """Return `text` if it is a name: lower-case letters, digits and hyphens, a letter or digit first."""
        if len(text) > longest or not _NAME.fullmatch(text):
            raise self._wrong(key, text, f"1..{longest} of a-z, 0-9 and hyphen, the first no hyphen")
        return text

    def integer(self, key: str, low: int, high: int, default: int | None = _REQUIRED) -> int:
        """Return an integer in low..high."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(key, value, f"an integer in {low}..{high}")
        return value

    def number(self, key: str, low: float, high: float, default: float | None = _REQUIRED) -> float:
        """Return a number in low..high."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._wrong(key, value, f"a number in {low}..{high}")
        return float(value)

    def boolean(self, key: str, default: bool | None = _REQUIRED) -> bool:
        """Return true or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def integers(
        self, key: str, low: int, high: int, default: Sequence[int] | None = _REQUIRED
    ) -> tuple[int, ...]:
        """Return a list of integers, each in low..high."""
        value = self._take(key, default)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._wrong(key, value, f"a list of integers in {low}..{high}")
        items = cast("Sequence[object]", value)
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int) or not low <= item <= high:
                raise self._wrong(key, item, f"a list of integers in {low}..{high}")
        return tuple(cast("Sequence[int]", items))

    def texts(
        self, key: str, choices: Sequence[str] | None, default: Sequence[str] | None = _REQUIRED
    ) -> tuple[str, ...]:
        """Return a list of strings, each one of `choices`; None: of any."""
        value = self._take(key, default)
        wanted = "a list of " + ("texts" if choices is None else ", ".join(choices) or "nothing")
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._wrong(key, value, wanted)
        for item in cast("Sequence[object]", value):
            if item not in choices if choices is not None else not isinstance(item, str):
                raise self._wrong(key, item, wanted)
        return tuple(cast("Sequence[str]", value))

    def table_of(self, key: str, optional: bool = False) -> dict[str, Fields]:
        """Return a table whose values are tables: name → fields, in the file's order."""
        inner = self.child(key, optional)
        if inner is None:
            return {}
        for name in inner._data:
            inner._asked.add(name)
        return {name: Fields(value, self.file, inner._path(name)) for name, value in inner._data.items()}

    def texts_of(self, key: str) -> dict[str, str]:
        """Return an optional table whose values are texts that say something, in the file's order."""
        inner = self.child(key, optional=True)
        if inner is None:
            return {}
        return {name: inner.text_that_says(name) for name in inner._data}

    def child(self, key: str, optional: bool = False) -> Fields | None:
        """Return an inner table, or None where it is optional and absent."""
        value = self._take(key, _ABSENT if optional else _REQUIRED)
        return None if value is _ABSENT else Fields(value, self.file, self._path(key))

    def tables(self, key: str, optional: bool = False) -> list[Fields]:
        """Return a list of tables; in messages they are numbered from 1."""
        value = self._take(key, () if optional else _REQUIRED)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._wrong(key, value, "a list of tables")
        items = cast("Sequence[object]", value)
        return [
            Fields(each, self.file, f"{self._path(key)}[{number}]") for number, each in enumerate(items, 1)
        ]

    def names(self) -> list[str]:
        """Return the keys, in the file's order."""
        return list(self._data)

    def any(self, key: str) -> object:
        """Return a value of whatever type."""
        return self._take(key, _REQUIRED)

    def has(self, key: str) -> bool:
        """Tell whether the key is there."""
        return key in self._data

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        unknown = sorted(set(self._data) - self._asked)
        if unknown:
            known = ", ".join(sorted(self._asked))
            raise self.fault(unknown[0], f"unknown key; known here: {known}")
