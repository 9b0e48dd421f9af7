# SPDX-License-Identifier: Apache-2.0
"""Delivering the spool: everything that waits, until the server has acknowledged it.

A point is noted as delivered only after the server's 204. Whatever happens in between (a kill, a cut
connection, a full disk here) it is sent once more, and since series and time are the same it replaces itself.
A batch that the server refuses is halved until the rows that it refuses stand alone; these are set aside with
its reason, and only once it is proven that it takes a sound point: a wrong endpoint sets nothing aside. At
the end the server is asked what it has (`read_back.py`); what is missing is sent again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from dashboards.delivery.endpoint import Endpoint
from dashboards.delivery.http import Answer, NoAnswerError, SlowAnswerError, post
from dashboards.delivery.read_back import NotReadableError, ServerFaultError, missing
from dashboards.errors import DeliveryError
from dashboards.line_protocol import INT64_MIN, Field, Point, tag_text
from dashboards.store.connection import lock_path
from dashboards.store.store import PointReceipt, Store, Waiting
from reports.units import NS_PER_S

SPOOL = "hil_spool"
"""Measurement of how the spool stands: sent after a delivery, and to prove that an endpoint takes a point."""

_ACCEPTED = 204
_REFUSED = frozenset({400, 413, 422})
_BUSY = frozenset({408, 429, 502, 503, 504})
_FAULTS_MAX = 3
"""So often a server may fault (500) at the same rows before they are divided, or at the same question."""
_SLOW_MAX = 2
_SETTLE_S = 0.5
_STRIKES_MAX = 3
_READ_BACK_POINTS = 2000
_DAY_S = 86_400


@dataclass(frozen=True)
class Pace:
    """How delivery goes about it.

    Attributes:
        deadline_s: For one request, answer included.
        give_up_s: Without a single acceptance for so long delivery ends; the points wait on.
        wait_s: First pause after a failure; each further one is twice as long, up to wait_max_s.
        read_back_days: The server is asked for what it has taken in so many days; None: for everything.
    """

    lines_max: int = 5000
    bytes_max: int = 1 << 20
    deadline_s: float = 30.0
    give_up_s: float = 60.0
    wait_s: float = 0.2
    wait_max_s: float = 30.0
    read_back_days: float | None = 30.0


@dataclass(frozen=True)
class DeliveryResult:
    """What one delivery did.

    Attributes:
        delivered: Points that were acknowledged.
        rejected: Points that were set aside.
        lost: Points that the server had acknowledged and did not have any more; they were sent again.
        unproven: Why the server could not be asked; empty: it has everything, or is not to be asked.
    """

    delivered: int
    rejected: int
    lost: int = 0
    unproven: str = ""


def deliver(
    store: Store, endpoint: Endpoint, pace: Pace | None = None, say: Callable[[str], None] = lambda _: None
) -> DeliveryResult:
    """Deliver everything that waits in the store.

    Args:
        store: The spool.
        endpoint: Where to.
        pace: Sizes and times.
        say: Gets a line of text for each failure that is tried again.

    Raises:
        DeliveryError: The server cannot be reached, refuses the credentials or everything; points wait on.
        StoreError: The store cannot be written; what was sent since will be sent once more.
    """
    with _sole_delivery(store.path):
        courier = _Courier(store, endpoint, pace or Pace(), say)
        try:
            courier.deliver_and_prove()
        finally:
            courier.settle()
    return DeliveryResult(courier.delivered, courier.rejected, courier.lost, courier.unproven)


@contextlib.contextmanager
def _sole_delivery(store: Path) -> Generator[None]:
    """Hold the lock of the one process that delivers; the kernel frees it however the process ends."""
    try:
        with lock_path(store).open("w") as file:
            os.fchmod(file.fileno(), 0o600)  # who can open it can hold its lock, for ever
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DeliveryError(f"{store}: another process is delivering from it") from error
            yield
    except OSError as error:
        raise DeliveryError(f"{error.filename or store}: {error.strerror}") from error


class _Courier:
    """One delivery: what it has learnt of the server, and what is still to be noted in the store."""

    def __init__(self, store: Store, endpoint: Endpoint, pace: Pace, say: Callable[[str], None]) -> None:
        self._store, self._endpoint, self._pace, self._say = store, endpoint, pace, say
        self._taken: list[Waiting] = []
        self._refused: list[tuple[Waiting, str]] = []
        self._proven = False
        self._lines_max = pace.lines_max
        self._settled_at = self._accepted_at = time.monotonic()
        self.delivered = self.rejected = self.lost = 0
        self.unproven = ""

    def deliver_and_prove(self) -> None:
        """Deliver until nothing waits and the server has everything that it took."""
        before = strikes = 0
        while True:
            self.deliver_all()
            if not self._endpoint.query_path:
                break
            try:
                lost = self._read_back()
            except NotReadableError as error:
                self.unproven = str(error)
                break
            if lost == 0:
                break
            self.lost += lost
            strikes = strikes + 1 if before and lost >= before else 0
            before = lost
            if strikes >= _STRIKES_MAX:
                problem = f"{self._endpoint.name}: acknowledges points, but {lost} are not there"
                raise DeliveryError(problem, is_final=True)
        if self.delivered:
            self._sound_point_is_taken()

    def deliver_all(self) -> None:
        """Deliver until nothing waits."""
        while batch := self._store.waiting(self._lines_max, self._pace.bytes_max):
            parts = [batch]
            while parts:
                part = parts.pop()
                reason = self._offer(part)
                if reason is None:
                    self._taken += part
                elif len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                else:
                    self._prove()
                    self._refused.append((part[0], reason))
                if time.monotonic() - self._settled_at > _SETTLE_S:
                    self.settle()
            self.settle()

    def settle(self) -> None:
        """Note in the store what became of the points so far."""
        taken, self._taken = self._taken, []
        refused, self._refused = self._refused, []
        self._settled_at = time.monotonic()
        if taken or refused:
            self._store.settle(taken, refused)
            self.delivered += len(taken)
            self.rejected += len(refused)

    def _read_back(self) -> int:
        """Ask for everything of the last weeks; let wait again what is missing, and return how many."""
        days = self._pace.read_back_days
        since_ns = 0 if days is None else time.time_ns() - round(days * _DAY_S * NS_PER_S)
        lost = 0
        place = (INT64_MIN, 0)
        while points := self._store.acknowledged(since_ns, place, _READ_BACK_POINTS):
            gone = self._missing(points)
            if gone:
                self._store.lost(gone)
                lost += len(gone)
            place = (points[-1].time_ns, points[-1].id)
        return lost

    def _missing(self, points: list[PointReceipt]) -> list[PointReceipt]:
        wait_s = self._pace.wait_s
        faults = 0
        while True:
            try:
                gone = missing(self._endpoint, points, self._pace.deadline_s)
            except (NoAnswerError, ServerFaultError) as error:
                asked_s = 0.0
                if isinstance(error, ServerFaultError):
                    faults += not error.busy
                    asked_s = error.retry_after_s
                if faults >= _FAULTS_MAX:
                    raise NotReadableError(str(error)) from error
                self._pause(str(error), wait_s, asked_s)
                wait_s = min(2 * wait_s, self._pace.wait_max_s)
            else:
                self._accepted_at = time.monotonic()
                return gone

    def _offer(self, part: list[Waiting]) -> str | None:
        """Send some points until they are taken (None), or it is certain that they must be divided (why)."""
        body = "".join(f"{point.line}\n" for point in part).encode()
        slow = faults = 0
        wait_s = self._pace.wait_s
        while True:
            asked_s = 0.0
            try:
                answer = post(self._endpoint, body, self._pace.deadline_s)
            except NoAnswerError as error:
                problem = str(error)
                if isinstance(error, SlowAnswerError):
                    slow += 1
                    self._lines_max = max(1, min(self._lines_max, len(part)) // 2)
                    if slow >= _SLOW_MAX and len(part) > 1:
                        return problem
            else:
                if answer.status == _ACCEPTED:
                    self._accepted()
                    return None
                problem = f"{self._endpoint.name}: {answer.status} {answer.reason}"
                if answer.status in _REFUSED or _is_partial(answer):
                    return problem_of_row(answer)
                if answer.status not in _BUSY:
                    if answer.status < 500:
                        final = f"{problem}{_hint(answer)}"
                        raise DeliveryError(final, retry_after_s=answer.retry_after_s, is_final=True)
                    faults += 1
                    if faults >= _FAULTS_MAX and (len(part) > 1 or self._sound_point_is_taken()):
                        return problem_of_row(answer)
                asked_s = answer.retry_after_s
            self._pause(problem, wait_s * random.uniform(0.5, 1.0), asked_s)  # noqa: S311 - only spreads
            wait_s = min(2 * wait_s, self._pace.wait_max_s)

    def _pause(self, problem: str, wait_s: float, asked_s: float = 0.0) -> None:
        """Wait before the next try, never less than the server asks for.

        Raises:
            DeliveryError: There is no time left, or less than the server asks for.
        """
        left_s = self._accepted_at + self._pace.give_up_s - time.monotonic()
        if left_s <= 0:
            given_up = f"{problem}; given up after {self._pace.give_up_s:g} s; the points wait on"
            raise DeliveryError(given_up, retry_after_s=asked_s)
        if asked_s > left_s:
            raise DeliveryError(
                f"{problem}; it asks to be left alone for {asked_s:.0f} s, and with no acceptance delivery is"
                f" given up after {left_s:.0f} s more: ended now; the points wait on",
                retry_after_s=asked_s,
            )
        wait_s = max(wait_s, asked_s)
        self._say(f"{problem}; once more in {min(wait_s, left_s):.1f} s")
        time.sleep(min(wait_s, left_s))

    def _accepted(self) -> None:
        self._proven = True
        self._accepted_at = time.monotonic()
        self._lines_max = min(2 * self._lines_max, self._pace.lines_max)

    def _prove(self) -> None:
        """Make sure that the server takes a sound point: else the fault is not the row's."""
        if self._proven:
            return
        reason = self._offer([self._spool_point()])
        if reason is not None:
            raise DeliveryError(
                f"{self._endpoint.name}: refuses even a sound point: {reason}; nothing is set aside",
                is_final=True,
            )

    def _spool_point(self) -> Waiting:
        """Return a point that is certainly sound: how the spool stands now."""
        status = self._store.status()
        fields: dict[str, Field] = {
            "waiting": status.waiting,
            "rejected": status.rejected,
            "runs": status.runs,
        }
        point = Point(SPOOL, {"host": tag_text(socket.gethostname()) or "-"}, fields, time.time_ns())
        return Waiting(0, 0, point.line())

    def _sound_point_is_taken(self) -> bool:
        """Tell the server how the spool stands, once; say whether it took it."""
        try:
            answer = post(self._endpoint, f"{self._spool_point().line}\n".encode(), self._pace.deadline_s)
        except NoAnswerError:
            return False
        if answer.status == _ACCEPTED:
            self._accepted()
        return answer.status == _ACCEPTED


def _is_partial(answer: Answer) -> bool:
    return answer.status >= 500 and answer.is_partial


def problem_of_row(answer: Answer) -> str:
    """Return why a server refused, for the store."""
    return f"{answer.status} {answer.reason}"


def _hint(answer: Answer) -> str:
    status = answer.status
    if 300 <= status < 400 and answer.location:
        return f" (sent on to {answer.location}, and nobody follows with credentials: name that address)"
    if status in (401, 403):
        return " (credentials: see docs/store.md)"
    if status == 404:
        return " (database, bucket or organisation; it is not made from here)"
    if 200 <= status < 400:
        return " (not the write interface of an InfluxDB: its acknowledgement is 204)"
    return ""
