# SPDX-License-Identifier: Apache-2.0
"""Strict translation between frozen dataclasses and JSON objects, and their JSON schema.

A key that the dataclass does not have, a key that is missing, and a value of another type are errors
that name the place in the document (`limit.upper`). A field marked `omit_none()` is left out of the
JSON object while it is None and may be absent when read; every other key is required.
"""

from __future__ import annotations

import dataclasses
import math
import types
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from reports.errors import RecordError

T = TypeVar("T")
_OMIT_NONE = "omit_none"
_SCALARS: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def omit_none() -> Any:
    """Declare an optional field, default None, that is absent from JSON while it is None."""
    return dataclasses.field(default=None, metadata={_OMIT_NONE: True})


def to_json(value: object) -> Any:
    """Turn a dataclass instance into plain JSON data, keys in the order of the fields.

    Raises:
        RecordError: A float is not finite: JSON has no NaN.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {f.name: to_json(v) for f, v in pairs if not (v is None and _OMIT_NONE in f.metadata)}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in cast("dict[object, object]", value).items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise RecordError(f"{value} cannot be written: a record holds finite numbers only")
    return value


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields; a run folder has thousands of the same."""
    return get_type_hints(kind)


def from_json(kind: type[T], data: object, where: str = "") -> T:
    """Build `kind`, a dataclass, from a JSON object.

    Args:
        kind: The dataclass.
        data: The decoded JSON.
        where: Where the object stands in its document, for error messages.

    Raises:
        RecordError: A key is unknown or missing, or a value has the wrong type.
    """
    if not isinstance(data, dict):
        raise RecordError(f"{where or kind.__name__}: expected an object, found {_shown(data)}")
    found = cast("dict[str, object]", data)
    hints = _hints(kind)
    fields = dataclasses.fields(cast(Any, kind))
    prefix = f"{where}." if where else ""
    unknown = sorted(set(found) - {field.name for field in fields})
    if unknown:
        allowed = ", ".join(field.name for field in fields)
        raise RecordError(f"{prefix}{unknown[0]}: unknown key (allowed: {allowed})")
    arguments: dict[str, object] = {}
    for field in fields:
        place = f"{prefix}{field.name}"
        if field.name in found:
            arguments[field.name] = _decode(hints[field.name], found[field.name], place)
        elif _OMIT_NONE not in field.metadata:
            raise RecordError(f"{place}: missing key")
    return kind(**arguments)


def _decode(hint: Any, data: object, where: str) -> object:
    """Return `data` checked against the type `hint`, dataclasses built."""
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint):
        return from_json(cast("type[Any]", hint), data, where)
    if origin in (Union, types.UnionType):
        return _decode_union(hint, data, where)
    if origin is Literal:
        if data in get_args(hint) and isinstance(data, str):
            return data
        raise RecordError(f"{where}: {_shown(data)} is not one of {', '.join(map(str, get_args(hint)))}")
    if origin is tuple:
        return _decode_list(get_args(hint)[0], data, where)
    if origin is dict:
        return _decode_map(get_args(hint)[1], data, where)
    if hint is Any:
        return data
    if isinstance(data, hint) and (hint is bool or not isinstance(data, bool)):
        return data
    raise RecordError(f"{where}: expected {_SCALARS[hint]}, found {_shown(data)}")


def _decode_union(hint: Any, data: object, where: str) -> object:
    """Return `data` as the first member of the union that accepts it."""
    members = get_args(hint)
    if data is None and types.NoneType in members:
        return None
    rest = [member for member in members if member is not types.NoneType]
    if len(rest) == 1:
        return _decode(rest[0], data, where)
    for member in rest:
        try:
            return _decode(member, data, where)
        except RecordError:
            continue
    raise RecordError(f"{where}: expected a number, found {_shown(data)}")


def _decode_list(hint: Any, data: object, where: str) -> tuple[object, ...]:
    if not isinstance(data, list):
        raise RecordError(f"{where}: expected a list, found {_shown(data)}")
    items = cast("list[object]", data)
    return tuple(_decode(hint, item, f"{where}[{index}]") for index, item in enumerate(items))


def _decode_map(hint: Any, data: object, where: str) -> dict[str, object]:
    if not isinstance(data, dict):
        raise RecordError(f"{where}: expected an object, found {_shown(data)}")
    items = cast("dict[str, object]", data)
    return {key: _decode(hint, item, f"{where}.{key}") for key, item in items.items()}


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 40 else text[:37] + "..."


def json_schema(kind: type[Any], constants: dict[str, str]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a dataclass.

    Args:
        kind: The dataclass.
        constants: Fields of `kind` that hold one constant text.
    """
    schema = _object_schema(kind)
    for name, value in constants.items():
        schema["properties"][name] = {"const": value}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _object_schema(kind: type[Any]) -> dict[str, Any]:
    hints = _hints(kind)
    fields = dataclasses.fields(kind)
    return {
        "title": kind.__name__,
        "description": (kind.__doc__ or "").strip().split("\n")[0],
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in fields if _OMIT_NONE not in field.metadata],
        "properties": {field.name: _type_schema(hints[field.name]) for field in fields},
    }


def _type_schema(hint: Any) -> dict[str, Any]:
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint):
        return _object_schema(cast("type[Any]", hint))
    if origin in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not types.NoneType]
        if set(members) == {int, float}:
            inner: dict[str, Any] = {"type": "number"}
        else:
            inner = _type_schema(members[0])
        return {"anyOf": [inner, {"type": "null"}]} if types.NoneType in get_args(hint) else inner
    if origin is Literal:
        return {"enum": list(get_args(hint))}
    if origin is tuple:
        return {"type": "array", "items": _type_schema(get_args(hint)[0])}
    if origin is dict:
        return {"type": "object"}
    return {} if hint is Any else {"type": _SCALARS[hint]}
