# SPDX-License-Identifier: Apache-2.0
"""JSON from files and servers that nobody vouches for: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
import re
from typing import Any

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str | bytes) -> Any:
    r"""Return what a JSON text says.

    Raises:
        ValueError: It is no JSON, is nested deeper than this machine can follow, or holds half of a surrogate
            pair (`"\ud800"`), which no page and no file can hold.
    """
    known = text if isinstance(text, str) else text.decode()
    try:
        data: Any = json.loads(known)
    except RecursionError as error:
        raise json.JSONDecodeError("nested too deep", "", 0) from error
    if _HALF_PAIR.search(known):
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise json.JSONDecodeError("half of a surrogate pair in a text", "", 0) from error
    return data
