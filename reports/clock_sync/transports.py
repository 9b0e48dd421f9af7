# SPDX-License-Identifier: Apache-2.0
"""The plain lines of a log, whatever other programs have wrapped around them.

What is taken off: gzip, UTF-16, escape sequences of a terminal's colours, the JSON of docker's `json-file`
and of `journalctl -o json`, the time and stream of a container's log of Kubernetes, the pod that kubectl puts
before a line, the container that compose does. Each line stays a line, so that numbers of lines are those
of the file.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from typing import Any, cast

from reports.errors import ReportError
from reports.record.json_text import load_json

BYTES_MAX = 1 << 29
"""So large may a log be when it is unpacked."""
_GZIP = b"\x1f\x8b"
_NOT_UNPACKED = {
    b"\xfd7zXZ\x00": "an xz file: unpack it first (xz -d)",
    b"\x28\xb5\x2f\xfd": "a zstd file: unpack it first (zstd -d)",
    b"BZh": "a bzip2 file: unpack it first (bzip2 -d)",
    b"LPKSHHRH": "a file of systemd's journal: read it with journalctl --file",
}
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
_CRI = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) (?:(?:stdout|stderr) ([FP])(?: |$))?"
)
"""Of a container's log of Kubernetes, by which P begins a line that goes on; without a stream of kubectl."""
_POD = re.compile(r"\[(?:pod/)?([^\s\[\]/]+/[^\s\[\]]+)\] ")
_CONTAINER = re.compile(r"([\w.-]+) +\| (?=\{|\d{4}-\d\d-\d\d \d\d:|====| +Date )")
"""Before a line that names no host itself: of chrony's logs, of JSON."""
_JSON_MARK = re.compile(r'^\{.*"(?:log|MESSAGE)" ?:', re.MULTILINE)


def plain_text(data: bytes) -> str:
    """Return the plain lines of a log; raises ReportError where the file cannot be unpacked."""
    text = decoded(_unpacked(data))
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if _CRI.match(text):
        text = "\n".join(_without_time(text.split("\n")))
    if _POD.match(text):
        text = "\n".join(_POD.sub(r"\1 | ", line, count=1) for line in text.split("\n"))
    if "| " in text and _CONTAINER.search(text):
        text = _without_container(text)
    if _JSON_MARK.search(text):
        text = "\n".join(_plain_line(line) for line in text.split("\n"))
    return text


def decoded(data: bytes) -> str:
    """Return the text of a log: UTF-8, or UTF-16 with its mark, as PowerShell writes it.

    A byte order mark is no part of it; bytes that are no text become U+FFFD.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _unpacked(data: bytes) -> bytes:
    for mark, what in _NOT_UNPACKED.items():
        if data.startswith(mark):
            raise ReportError(what)
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as file:
            found = file.read(BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ReportError(f"a gzip file that is damaged: {error}") from error
    if len(found) > BYTES_MAX:
        raise ReportError(f"a gzip file of more than {BYTES_MAX} bytes")
    return found


def _without_time(lines: list[str]) -> list[str]:
    """Return the lines of a container; of one in parts the last has all, and the others are empty."""
    found: list[str] = []
    begun = ""
    for line in lines:
        head = _CRI.match(line)
        if head is None:
            found.append(line)
            continue
        begun += line[head.end() :]
        found.append("" if head[1] == "P" else begun)
        begun = begun if head[1] == "P" else ""
    return found


def _without_container(text: str) -> str:
    """Return lines without the container before them; raises ReportError where it is not one and the same."""
    lines = text.split("\n")
    heads = [_CONTAINER.match(line) for line in lines]
    names = sorted({head[1] for head in heads if head is not None})
    if len(names) > 1:
        raise ReportError(f"lines of several containers ({', '.join(names)}): write a file for each")
    return "\n".join(
        line if head is None else line[head.end() :] for line, head in zip(lines, heads, strict=True)
    )


def _plain_line(line: str) -> str:
    """Return the message that a line of JSON wraps; any other line as it is."""
    if not _JSON_MARK.match(line):
        return line
    try:
        found: object = load_json(line)
    except ValueError:
        return line
    wrapped = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if isinstance(wrapped.get("log"), str) and "stream" in wrapped:
        message, before = wrapped["log"], ""
    elif "MESSAGE" in wrapped:
        message, before = _message(wrapped["MESSAGE"]), _writer(wrapped)
    else:
        return line
    return before + _COLOUR.sub("", " ".join(message.splitlines()))


def _message(value: object) -> str:
    """Return a message of the journal, which is a list of its bytes where it holds colours."""
    if isinstance(value, list):
        found = cast("list[Any]", value)
        if all(isinstance(each, int) and 0 <= each < 256 for each in found):
            return bytes(found).decode(errors="replace")
    return value if isinstance(value, str) else ""


def _writer(wrapped: dict[str, Any]) -> str:
    """Return who wrote a message, as journalctl's short form has it."""
    name, host = wrapped.get("SYSLOG_IDENTIFIER", wrapped.get("_COMM", "")), wrapped.get("_HOSTNAME", "")
    number = wrapped.get("_PID", wrapped.get("SYSLOG_PID", ""))
    return f"{host} {name}[{number}]: ".lstrip() if name and number else ""
