# SPDX-License-Identifier: Apache-2.0
"""One request with one deadline over all of it: connecting, sending, and every byte of the answer.

No proxy of the environment is used and no redirection followed: both could hand the credentials to others.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import urlencode

from dashboards.delivery.endpoint import Endpoint
from dashboards.line_protocol import field_text

ANSWER_BYTES_MAX = 65536
QUERY_BYTES_MAX = 1 << 26
CONTENT_TYPE = "text/plain; charset=utf-8"
_PARTIAL = "partial write"
"""So InfluxDB 2.0 begins an answer of 500 that is a refusal of some lines: it has kept the others."""
_BROKEN_OFF_S = 1.0
"""What breaking a connection off takes at most."""


class NoAnswerError(Exception):
    """Say that the server could not be reached, or was cut off before it answered."""


class SlowAnswerError(NoAnswerError):
    """Say that the server did not answer in time; it may still have taken what was sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        reason: Its own words, one line.
        retry_after_s: How long it asks to be left alone; 0: it does not.
        location: Where it sends on to; empty: it does not. Nobody follows.
        is_partial: Its words, before anything secret was taken out of them, tell of a partial write.
    """

    status: int
    reason: str
    retry_after_s: float = 0.0
    location: str = ""
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """An answer as it came: `retry_after_s` and `location` as in `Answer`, the latter as it was sent."""

    status: int
    body: bytes
    retry_after_s: float
    location: str


def post(endpoint: Endpoint, body: bytes, deadline_s: float) -> Answer:
    """Write lines, each with its end, and return the answer; raises as `exchange`."""
    found = exchange(endpoint, "POST", endpoint.path, body, deadline_s)
    words, location = _words(found.body), _line(endpoint, found.location)
    is_partial = _PARTIAL in words.lower()
    return Answer(found.status, _line(endpoint, words), found.retry_after_s, location, is_partial)


def ask(endpoint: Endpoint, statement: str, deadline_s: float) -> Response:
    """Ask in InfluxQL, and return the answer; raises as `exchange`."""
    path = f"{endpoint.query_path}&{urlencode({'q': statement})}"
    return exchange(endpoint, "GET", path, None, deadline_s, bytes_max=QUERY_BYTES_MAX)


def exchange(
    endpoint: Endpoint,
    method: str,
    path: str,
    body: bytes | None,
    deadline_s: float,
    *,
    bytes_max: int = ANSWER_BYTES_MAX,
) -> Response:
    """Send one request, and return the answer.

    An answer that comes before all of the request is sent counts: a server says so that a body is too large.

    Args:
        endpoint: Where to.
        method: Of the request.
        path: With its query.
        body: None: none.
        deadline_s: Seconds for all of it.
        bytes_max: So much of the answer is read.

    Raises:
        SlowAnswerError: It took longer.
        NoAnswerError: There is nobody, or the connection broke.
    """
    found: list[Response | Exception] = []

    def work() -> None:
        try:
            found.append(_exchange(endpoint, method, path, body, deadline_s, bytes_max))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where somebody waits
            found.append(error)

    # Looking up a name has no time-out of its own, and cannot be broken off.
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(deadline_s + _BROKEN_OFF_S)
    if not found:
        raise SlowAnswerError(f"{endpoint.name}: no answer within {deadline_s:g} s")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _exchange(
    endpoint: Endpoint, method: str, path: str, body: bytes | None, deadline_s: float, bytes_max: int
) -> Response:
    kind = http.client.HTTPSConnection if endpoint.secure else http.client.HTTPConnection
    connection = kind(endpoint.host, endpoint.port, timeout=deadline_s)
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        opened = connection.sock
        if opened is not None:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    # The socket's own time-out is for one call; a server that sends a byte now and then holds us for ever.
    timer = threading.Timer(deadline_s, expire)
    timer.daemon = True
    headers = {"Content-Type": CONTENT_TYPE, "Connection": "close"}
    if endpoint.authorization:
        headers["Authorization"] = endpoint.authorization
    timer.start()
    try:
        connection.connect()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have answered already
            connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read(bytes_max)
        if expired.is_set():
            raise SlowAnswerError(f"{endpoint.name}: no answer within {deadline_s:g} s")
        return Response(response.status, text, _retry_after_s(response), response.getheader("Location") or "")
    except (OSError, UnicodeError, http.client.HTTPException) as error:  # UnicodeError: of a host's name
        if expired.is_set() or isinstance(error, TimeoutError):
            raise SlowAnswerError(f"{endpoint.name}: no answer within {deadline_s:g} s") from error
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoAnswerError(f"{endpoint.name}: {why}") from error
    finally:
        timer.cancel()
        connection.close()


def reason_of(endpoint: Endpoint, text: bytes) -> str:
    """Return the server's own words of an answer: the messages in its JSON, else its text, on one line.

    They go to terminals, logs and the store: without what would steer a terminal, and without credentials,
    which a proxy may send back with the rest of a request.
    """
    return _line(endpoint, _words(text))


def _words(text: bytes) -> str:
    """Return what an answer says as it was sent: it is for comparisons, never to be shown."""
    found = text.decode(errors="replace")
    try:
        data: object = json.loads(found)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        known = cast("dict[str, object]", data)
        words = [str(known[key]) for key in ("error", "message") if known.get(key)]
        rows = known.get("data")  # InfluxDB 3: an object, or a list with one for each rejected line
        found_rows = _objects(cast("list[object]", rows) if isinstance(rows, list) else [rows])
        words += [str(row["error_message"]) for row in found_rows if "error_message" in row]
        found = ": ".join(words) or found
    return found


def _line(endpoint: Endpoint, text: str) -> str:
    """Return a server's words on one line, without what would steer a terminal and without credentials."""
    for secret in endpoint.secrets:
        text = text.replace(secret, "***")
    return field_text("".join(each if each.isprintable() else " " for each in text), 300)


def _objects(items: list[object]) -> list[dict[str, object]]:
    return [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]


def _retry_after_s(response: http.client.HTTPResponse) -> float:
    """Return for how long the server asks for a pause (RFC 9110, 10.2.3): seconds, or until a date.

    A date is by the server's clock: it counts from the date of the answer, where that is told.
    """
    text = (response.getheader("Retry-After") or "").strip()
    if re.fullmatch(r"\d{1,6}", text):
        return float(text)
    until = _date(text)
    if until is None:
        return 0.0
    now = _date(response.getheader("Date") or "") or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _date(text: str) -> datetime | None:
    """Return a date of HTTP; None: it is none."""
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
