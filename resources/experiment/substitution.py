# SPDX-License-Identifier: Apache-2.0
"""`${NAME}` in the texts of a table: one level, no language; `$${` stands for `${`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from hw.fields import FieldError

Scalar = str | int | float | bool
_NAME = re.compile(r"(?<!\$)\$\{([^}]*)\}")


def is_scalar(value: object) -> bool:
    """Tell whether a value can stand for a name."""
    return isinstance(value, str | int | float | bool)


def substituted(
    value: Any, names: Mapping[str, Scalar], others: Callable[[str], bool], path: str = ""
) -> Any:
    """Return a value of TOML in which names are replaced in every text.

    Args:
        value: A table, a list or a scalar.
        names: What each stands for. A text that is one name alone becomes its value, whatever type that has.
        others: Tells which names are left as they are.
        path: Of the value in the file.

    Raises:
        ConfigError: A name stands for nothing; the text begins with the path.
    """
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {
            key: substituted(each, names, others, f"{path}.{key}" if path else key)
            for key, each in table.items()
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [substituted(each, names, others, path) for each in items]
    if not isinstance(value, str):
        return value
    whole = _NAME.fullmatch(value)
    if whole is not None and whole[1] in names:
        return names[whole[1]]

    def one(found: re.Match[str]) -> str:
        name = found[1]
        if name in names:
            return text_of(names[name])
        if others(name):
            return found[0]
        known = ", ".join(sorted(names)) or "none"
        raise FieldError(
            "", path, f"${{{name}}}: must be a name that is there, found {name!r}; there are: {known}"
        )

    return _NAME.sub(one, value)


def unescaped(value: Any) -> Any:
    """Return a value of TOML whose names are all replaced, with `${` in the place of `$${`."""
    if isinstance(value, Mapping):
        return {key: unescaped(each) for key, each in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [unescaped(each) for each in cast("list[Any]", value)]
    return value.replace("$${", "${") if isinstance(value, str) else value


def text_of(value: Scalar) -> str:
    """Return a scalar as it stands within a text: as TOML writes it, texts without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
