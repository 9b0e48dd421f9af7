# SPDX-License-Identifier: Apache-2.0
"""Delivery to servers that refuse, fault, are slow, wrong or not there: nothing is lost, nothing hangs."""

from __future__ import annotations

import errno
import fcntl
import importlib
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from email.utils import formatdate

import pytest

from dashboards.delivery import DeliveryResult, Endpoint, Pace, deliver, http
from dashboards.delivery.http import NoAnswerError, SlowAnswerError, post
from dashboards.errors import DeliveryError
from dashboards.store import Store
from dashboards.store.connection import lock_path
from dashboards.store.store import PointReceipt
from tests.dashboards.chaos import fill
from tests.dashboards.fake_server import Behaviour, FakeServer, answer, body_of, drip, hang_up, send_answer
from tests.dashboards.stored import stored_points
from tests.patience import HANG_S

POINTS = 48
HASTY = Pace(deadline_s=0.5, give_up_s=0.6, wait_s=0.01, wait_max_s=0.05)
PATIENT = Pace(deadline_s=HANG_S, give_up_s=HANG_S, wait_s=0.01, wait_max_s=0.05)


@pytest.fixture
def store(store: Store) -> Store:
    """Return a store in which 48 points wait."""
    fill(store, POINTS)
    return store


def refusing(*marks: str, status: int = 400) -> Behaviour:
    """Return a server that refuses a whole request with a line that holds one of the marks (as 2.x does)."""

    def behave(connection: socket.socket, request: bytes) -> None:
        bad = [line for line in body_of(request) if any(mark in line for mark in marks)]
        send_answer(connection, status if bad else 204, f'{{"message": "bad {bad[0][:9]}"}}' if bad else "")

    return behave


def test_everything_is_delivered_once(store: Store) -> None:
    with FakeServer(answer(204)) as server:
        assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)
        assert deliver(store, server.endpoint()) == DeliveryResult(0, 0)
    lines = body_of(server.requests[0])
    assert len(lines) == POINTS
    assert lines[0].startswith("hil_latency,bench=virtual,branch=main")
    assert server.requests[0].startswith(b"POST /write?db=hil&precision=ns HTTP/1.1\r\n")


def test_depth_of_the_spool_is_told(store: Store) -> None:
    with FakeServer(answer(204)) as server:
        deliver(store, server.endpoint())
    (line,) = body_of(server.requests[-1])
    assert line.startswith("hil_spool,host=")
    assert " rejected=0i,runs=1i,waiting=0i " in line


@pytest.mark.parametrize("status", [400, 413, 422])
def test_refused_rows_are_set_aside_with_the_reason(store: Store, status: int) -> None:
    with FakeServer(refusing("stream=7,", "stream=30,", status=status)) as server:
        assert deliver(store, server.endpoint()) == DeliveryResult(POINTS - 2, 2)
    found = store.status()
    assert (found.waiting, found.rejected) == (0, 2)
    assert found.reasons == ((f"{status} bad hil_laten", 2),)
    refused = [point.tags["stream"] for point in stored_points(store) if "rejected" in point.state]
    assert sorted(refused) == ["30", "7"]


def test_row_at_which_the_server_faults_does_not_stop_the_others(store: Store) -> None:
    with FakeServer(refusing("stream=7,", status=500)) as server:
        assert deliver(store, server.endpoint(), PATIENT) == DeliveryResult(POINTS - 1, 1)


@pytest.mark.parametrize(
    ("status", "pace", "message"),
    [
        *(pytest.param(status, HASTY, "no such precision", marks=pytest.mark.timed) for status in (400, 500)),
        # Where no time is kept: it refuses at once, and is not asked again.
        *((status, PATIENT, "refuses even a sound point: .*no such precision") for status in (400, 413, 422)),
    ],
)
def test_a_server_that_refuses_even_a_sound_point_sets_nothing_aside(
    store: Store, status: int, pace: Pace, message: str
) -> None:
    """The rows are not to blame."""
    with (
        FakeServer(answer(status, '{"error": "no such precision"}')) as server,
        pytest.raises(DeliveryError, match=message),
    ):
        deliver(store, server.endpoint(), pace)
    assert (store.status().waiting, store.status().rejected) == (POINTS, 0)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (401, "credentials"),
        (403, "credentials"),
        (404, "database"),
        (200, "acknowledgement is 204"),
        (301, "sent on to http://192.0.2.7/"),
    ],
)
def test_what_repeating_does_not_fix_ends_delivery_at_once(store: Store, status: int, text: str) -> None:
    with FakeServer(answer(status, "", "Location: http://192.0.2.7/")) as server:
        with pytest.raises(DeliveryError, match=text):
            deliver(store, server.endpoint(), PATIENT)
        assert len(server.requests) == 1
    assert store.status().waiting == POINTS


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_passing_fault_is_tried_again(store: Store, status: int) -> None:
    left = [2]

    def behave(connection: socket.socket, _request: bytes) -> None:
        left[0] -= 1
        send_answer(connection, status if left[0] >= 0 else 204)

    said: list[str] = []
    with FakeServer(behave) as server:
        assert deliver(store, server.endpoint(), PATIENT, said.append) == DeliveryResult(POINTS, 0)
    assert len(said) == 2
    assert f": {status} " in said[0]


def test_server_that_asks_for_a_pause_gets_it(store: Store) -> None:
    times: list[float] = []

    def behave(connection: socket.socket, _request: bytes) -> None:
        times.append(time.monotonic())
        send_answer(connection, 503 if len(times) == 1 else 204, "", "Retry-After: 1")

    with FakeServer(behave) as server:
        deliver(store, server.endpoint(), PATIENT)
    assert times[1] - times[0] >= 1


def partly(*marks: str) -> Behaviour:
    """Return InfluxDB 2.0 with a retention policy: it keeps what is sound, and answers 500 of the rest."""

    def behave(connection: socket.socket, request: bytes) -> None:
        bad = sum(any(mark in line for mark in marks) for line in body_of(request))
        text = f"unexpected error: partial write: points beyond retention policy dropped={bad}"
        send_answer(
            connection, 500 if bad else 204, f'{{"code":"internal error","message":"{text}"}}' if bad else ""
        )

    return behave


def test_a_partial_write_sets_aside_what_was_dropped_at_once(store: Store) -> None:
    with FakeServer(partly("stream=7,", "stream=30,", "stream=31,")) as server:
        assert deliver(store, server.endpoint(), HASTY) == DeliveryResult(POINTS - 3, 3)
    assert store.status().waiting == 0
    assert len(server.requests) < 40, "no row is tried again"
    (reason,) = store.status().reasons
    assert "partial write: points beyond retention policy dropped=1" in reason[0]


@pytest.mark.parametrize("token", ["write", "partial", "al wr"])
def test_a_partial_write_is_known_with_a_credential_that_is_part_of_its_words(
    store: Store, token: str
) -> None:
    with FakeServer(partly("stream=7,")) as server:
        assert deliver(store, server.endpoint(f"Token {token}"), HASTY) == DeliveryResult(POINTS - 1, 1)
    assert len(server.requests) < 20, "no row is tried again"
    (reason,) = store.status().reasons
    assert "***" in reason[0]
    assert token not in reason[0]


def http_date(from_now_s: float) -> str:
    return formatdate(time.time() + from_now_s, usegmt=True)


def test_a_pause_may_end_at_a_date_of_the_servers_clock(store: Store) -> None:
    times: list[float] = []

    def behave(connection: socket.socket, _request: bytes) -> None:
        times.append(time.monotonic())
        # The server's clock is an hour slow: what counts is the difference to its own date.
        headers = (f"Date: {http_date(-3600)}", f"Retry-After: {http_date(-3598)}")
        send_answer(connection, 503 if len(times) == 1 else 204, "", *headers)

    with FakeServer(behave) as server:
        assert deliver(store, server.endpoint(), PATIENT).delivered == POINTS
    assert times[1] - times[0] >= 1


@pytest.mark.parametrize("wanted", ["120", "a date"])
def test_a_pause_longer_than_there_is_time_ends_delivery_at_once(store: Store, wanted: str) -> None:
    asked = "120" if wanted == "120" else http_date(120)
    pace = Pace(deadline_s=HANG_S, give_up_s=60, wait_s=0.01, wait_max_s=0.05)
    with FakeServer(answer(429, "busy", f"Retry-After: {asked}")) as server:
        with pytest.raises(DeliveryError, match=r"asks to be left alone for 1(19|20) s.*the points wait on"):
            deliver(store, server.endpoint(), pace)
        assert len(server.requests) == 1
    assert store.status().waiting == POINTS


def test_a_pause_that_is_asked_for_at_a_question_is_kept(store: Store) -> None:
    def behave(connection: socket.socket, request: bytes) -> None:
        busy = request.startswith(b"GET")
        send_answer(connection, 429 if busy else 204, "", *(["Retry-After: 120"] if busy else []))

    pace = Pace(deadline_s=HANG_S, give_up_s=60, wait_s=0.01, wait_max_s=0.05)
    with FakeServer(behave) as server:
        endpoint = replace(server.endpoint(), query_path="/query?db=hil&epoch=ns")
        with pytest.raises(DeliveryError, match="asks to be left alone for 120 s") as ended:
            deliver(store, endpoint, pace)
        assert sum(request.startswith(b"GET") for request in server.requests) == 1
    assert ended.value.retry_after_s == 120


@pytest.mark.parametrize("text", ["soon", "-1", "Thu, 99 Foo 2026 00:00:00 GMT", "1e3"])
def test_a_pause_that_is_none_is_the_usual_one(store: Store, text: str) -> None:
    asked: list[bytes] = []

    def behave(connection: socket.socket, request: bytes) -> None:
        asked.append(request)
        send_answer(connection, 503 if len(asked) == 1 else 204, "", f"Retry-After: {text}")

    with FakeServer(behave) as server:
        assert deliver(store, server.endpoint(), PATIENT).delivered == POINTS


def test_a_redirection_is_told_with_its_address_and_not_followed(store: Store) -> None:
    with FakeServer(answer(308, "", "Location: https://user:s3cret@other.example/write")) as server:
        with pytest.raises(DeliveryError, match=r"308.*sent on to https://.*other\.example/write"):
            deliver(store, server.endpoint("Token s3cret"), HASTY)
        assert len(server.requests) == 1
    assert store.status().waiting == POINTS


@pytest.mark.timed
def test_a_probe_that_is_accepted_is_an_acceptance(store: Store) -> None:
    """A server that faults at row after row, and takes sound points meanwhile, is not given up."""

    def behave(connection: socket.socket, request: bytes) -> None:
        is_probe = body_of(request)[0].startswith("hil_spool")
        if not is_probe:
            time.sleep(0.02)
        send_answer(connection, 204 if is_probe else 500, "" if is_probe else "it broke")

    with FakeServer(behave) as server:
        pace = Pace(deadline_s=HANG_S, give_up_s=3, wait_s=0.005, wait_max_s=0.01)
        assert deliver(store, server.endpoint(), pace) == DeliveryResult(0, POINTS)


@pytest.mark.timed
def test_nobody_there(store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(DeliveryError, match=r"refused.*given up after 0.6 s"):
        deliver(store, Endpoint(1, False, "127.0.0.1", port, "/write"), HASTY)
    assert store.status().waiting == POINTS


def test_a_host_name_that_cannot_be_looked_up_is_no_slow_server() -> None:
    endpoint = Endpoint(1, False, "influx..example", 8086, "/write")
    with pytest.raises(NoAnswerError, match=r"http://influx\.\.example:8086: .*label") as refused:
        post(endpoint, b"x", HANG_S)
    assert not isinstance(refused.value, SlowAnswerError)


def test_a_connection_that_is_reset_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def reset(*_: object, **__: object) -> None:
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    monkeypatch.setattr(socket, "create_connection", reset)
    with pytest.raises(NoAnswerError, match="Connection reset by peer"):
        post(Endpoint(1, False, "127.0.0.1", 8086, "/write"), b"x", HANG_S)


def test_a_connection_that_is_reset_in_the_handshake_of_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def reset() -> None:
            connection, _ = listener.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.recv(1)
            connection.close()

        resetting = threading.Thread(target=reset)
        resetting.start()
        with pytest.raises(NoAnswerError, match="Connection reset by peer"):
            post(Endpoint(1, True, "127.0.0.1", listener.getsockname()[1], "/write"), b"x", HANG_S)
        resetting.join()


def test_what_nobody_has_thought_of_is_no_slow_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("nobody has thought of it")

    monkeypatch.setattr(http, "_exchange", fail)
    with pytest.raises(RuntimeError, match="nobody has thought of it"):
        post(Endpoint(1, False, "127.0.0.1", 8086, "/write"), b"x", HANG_S)


@pytest.mark.timed
@pytest.mark.parametrize("behaviour", [drip, hang_up])
def test_answer_that_never_ends_or_breaks_off(store: Store, behaviour: Behaviour) -> None:
    start_s = time.monotonic()
    with FakeServer(behaviour) as server, pytest.raises(DeliveryError, match="given up"):
        deliver(store, server.endpoint(), HASTY)
    assert time.monotonic() - start_s < 30
    assert store.status().waiting == POINTS


@pytest.mark.timed
def test_server_too_slow_for_a_batch_gets_smaller_ones(store: Store) -> None:
    def behave(connection: socket.socket, request: bytes) -> None:
        if len(body_of(request)) > 10:
            time.sleep(0.4)
        send_answer(connection, 204)

    pace = Pace(deadline_s=0.3, give_up_s=60, wait_s=0.01, wait_max_s=0.02)
    with FakeServer(behave) as server:
        assert deliver(store, server.endpoint(), pace) == DeliveryResult(POINTS, 0)
    assert min(len(body_of(request)) for request in server.requests) <= 10


@pytest.mark.timed
def test_what_was_taken_before_the_server_went_is_not_sent_again(store: Store) -> None:
    def behave(connection: socket.socket, request: bytes) -> None:
        if len(server.requests) <= 2:
            send_answer(connection, 204)

    with FakeServer(behave) as server, pytest.raises(DeliveryError):
        deliver(store, server.endpoint(), Pace(lines_max=10, give_up_s=0.2, wait_s=0.01))
    assert (store.status().delivered, store.status().waiting) == (20, 28)


@pytest.mark.parametrize("page", [1, 7, 47, 48, 2000])
def test_the_look_back_asks_for_each_point_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """All points of a run have one time: pages end within it."""
    delivery = importlib.import_module("dashboards.delivery.deliver")
    asked: list[int] = []

    def none_missing(_endpoint: Endpoint, points: Sequence[PointReceipt], _s: float) -> list[PointReceipt]:
        assert len(points) <= page
        asked.extend(point.id for point in points)
        return []

    monkeypatch.setattr(delivery, "_READ_BACK_POINTS", page)
    monkeypatch.setattr(delivery, "missing", none_missing)
    times_ns = store.connection.execute("SELECT DISTINCT time_ns FROM point").fetchall()
    assert len(times_ns) < POINTS
    with FakeServer(answer(204)) as server:
        endpoint = replace(server.endpoint(), query_path="/query?db=hil&epoch=ns")
        assert deliver(store, endpoint, PATIENT) == DeliveryResult(POINTS, 0)
    ids = [row[0] for row in store.connection.execute("SELECT id FROM point ORDER BY time_ns, id")]
    assert asked == ids


@pytest.mark.timed
def test_credentials_are_in_the_header_and_nowhere_else(store: Store) -> None:
    said: list[str] = []
    with (
        FakeServer(answer(503, '{"error": "later"}')) as server,
        pytest.raises(DeliveryError) as caught,
    ):
        deliver(store, server.endpoint("Token s3cret"), HASTY, said.append)
    assert b"\r\nAuthorization: Token s3cret\r\n" in server.requests[0]
    assert "s3cret" not in "".join(said) + str(caught.value)


@pytest.mark.timed
@pytest.mark.parametrize("authorization", ["Token s3cret", "Bearer s3cret", "Basic bWU6czNjcmV0"])
def test_a_server_that_echoes_the_request_reveals_nothing(store: Store, authorization: str) -> None:
    """Nor does what it says steer a terminal: it is printed, and kept with the rows that it refuses."""

    def echo(connection: socket.socket, request: bytes) -> None:
        head = request.partition(b"\r\n\r\n")[0].decode()
        send_answer(connection, 403, f"\x1b[2J\x9b31m\u202e{head} me:s3cret")

    with FakeServer(echo) as server, pytest.raises(DeliveryError) as caught:
        deliver(store, server.endpoint(authorization), HASTY)
    assert "s3cret" not in str(caught.value)
    assert "bWU6" not in str(caught.value)
    assert "Authorization: " in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_answer_that_comes_before_the_body_is_read(store: Store) -> None:
    """A server says that a body is too large, and hangs up: smaller ones go through."""

    class Impatient(FakeServer):
        def read(self, connection: socket.socket) -> bytes:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(1)
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if length > 4000:
                send_answer(connection, 413, "too large")
                raise OSError
            body = b""
            while len(body) < length:
                body += connection.recv(65536)
            return head + body

    with Impatient(answer(204)) as server:
        fill(store, 4000)
        assert deliver(store, server.endpoint(), PATIENT).rejected == 0
    assert store.status().waiting == 0


def test_a_name_that_is_looked_up_for_ever_does_not_hold_delivery_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()

    def hang(*_words: object, **_more: object) -> None:
        given_up.wait(HANG_S)
        raise socket.gaierror  # which is another error than that of who does not wait for it

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(SlowAnswerError, match=r"no answer within 0\.2 s"):
        post(Endpoint(1, False, "influx.example", 80, "/write"), b"x", 0.2)
    given_up.set()


@pytest.mark.timed
def test_an_answer_nested_without_end_is_no_answer(store: Store) -> None:
    with FakeServer(answer(403, "[" * 60_000)) as server, pytest.raises(DeliveryError, match="403"):
        deliver(store, server.endpoint(), HASTY)


def test_only_one_process_delivers(store: Store) -> None:
    with lock_path(store.path).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with FakeServer(answer(204)) as server, pytest.raises(DeliveryError, match="another process"):
            deliver(store, server.endpoint())
    with FakeServer(answer(204)) as server:
        assert deliver(store, server.endpoint()).delivered == POINTS
