# SPDX-License-Identifier: Apache-2.0
"""JSON from files and servers that nobody vouches for: whatever is wrong with it is a JSONDecodeError."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_INTEGER_MAX = 1 << 64
"""In size: no count, time or size of anything here is larger."""


def load_json(text: str | bytes) -> Any:
    r"""Return what a JSON text says.

    Raises:
        json.JSONDecodeError: It is no JSON, is nested deeper than this machine can follow, has a number that
            is infinite, none (`NaN`) or an integer above 2^64 in size, holds half of a surrogate pair
            (`"\ud800"`), which no page and no file can hold, or is no UTF-8.
    """
    try:
        known = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error
    return _checked(known, lambda: json.loads(known, cls=_Decoder))


def load_json_at(text: str, place: int) -> tuple[Any, int]:
    """Return what the JSON text from a place on says, and where it ends; raises as `load_json` does."""
    return _checked(text, lambda: _Decoder().raw_decode(text, place))


class _Decoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__(parse_int=_integer, parse_float=_number, parse_constant=_number)


def _checked(text: str, decode: Callable[[], Any]) -> Any:
    try:
        data = decode()
        if _HALF_PAIR.search(text):
            json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise json.JSONDecodeError("nested too deep", "", 0) from error
    except UnicodeEncodeError as error:
        raise json.JSONDecodeError("half of a surrogate pair in a text", "", 0) from error
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error
    return data


def _integer(digits: str) -> int:
    value = int(digits)
    if abs(value) > _INTEGER_MAX:
        raise ValueError(f"an integer of {len(digits)} digits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value
