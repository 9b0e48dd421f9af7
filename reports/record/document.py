# SPDX-License-Identifier: Apache-2.0
"""Documents of evidence: one dataclass as a JSON file, which says its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol, TypeVar

from reports.durable import replace_file
from reports.errors import RecordError
from reports.record.codec import from_json, to_json
from reports.record.json_text import load_json


class Document(Protocol):
    """A dataclass that names its schema."""

    @property
    def schema(self) -> str:
        """Return the schema's name and version."""
        ...


D = TypeVar("D", bound=Document)


def write_document(path: Path, document: Document) -> Path:
    """Write a document in the place of an earlier one, whole or not at all, and return its path."""
    replace_file(path, (json.dumps(to_json(document), indent=1) + "\n").encode())
    return path


def read_document(kind: type[D], path: Path, schema: str) -> D:
    """Read a document.

    Raises:
        RecordError: It is missing, damaged, or of another schema; names the file and the key.
    """
    try:
        data: object = load_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path.name}: {error}") from error
    found = from_json(kind, data, path.name)
    if found.schema != schema:
        raise RecordError(f"{path.name}.schema: must be {schema}, found {found.schema!r}")
    return found
