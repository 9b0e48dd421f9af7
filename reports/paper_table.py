# SPDX-License-Identifier: Apache-2.0
"""Tables of the papers: CSV files with their source beside what reads them, and the reader of their form."""

from __future__ import annotations

import csv
from pathlib import Path

from reports.errors import RecordError


def table_rows(path: Path, columns: list[str]) -> list[tuple[str, list[str]]]:
    """Return the rows of a table: where each stands, for error messages, and its fields.

    Lines that begin with `#` and empty ones are skipped; the first other line is the header.

    Raises:
        RecordError: The header is another, or a row has more or fewer fields; says file, line and need.
    """
    lines = [
        (f"{path}:{number}", line)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    if not lines or next(csv.reader([lines[0][1]])) != columns:
        raise RecordError(f"{path}: header: need {','.join(columns)}")
    rows = [(where, next(csv.reader([line]))) for where, line in lines[1:]]
    for where, fields in rows:
        if len(fields) != len(columns):
            raise RecordError(f"{where}: {len(fields)} fields; need {','.join(columns)}")
    return rows
