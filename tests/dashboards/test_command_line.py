# SPDX-License-Identifier: Apache-2.0
"""`python -m dashboards`, and what a qualification does with its run."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboards import __main__ as command_line
from dashboards.__main__ import main
from dashboards.delivery.endpoint import ENDPOINT_VARIABLE
from dashboards.store.connection import guarded
from resources.keep_run import RunEnd, keep_run
from tests.dashboards.fake_server import FakeServer, answer
from tests.dashboards.runs import make_run, record
from tests.dashboards.test_rtc_testbench import message


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing of this machine's settings."""
    for name in (ENDPOINT_VARIABLE, "BENCHWRIGHT_BRANCH_CLASS", "GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL"):
        monkeypatch.delenv(name, raising=False)


def status_of(store: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    assert main(["status", "--json", "--store", str(store)]) == 0
    return dict(json.loads(capsys.readouterr().out))


def endpoint_file(folder: Path, port: int) -> Path:
    file = folder / "endpoint.toml"
    text = f'api = 1\nurl = "http://127.0.0.1:{port}"\ndatabase = "hil"\nread_back = false\n'
    file.write_text("[influxdb]\n" + text)
    return file


def test_import_deliver_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, [record()])
    run.close()
    run.finalise()
    store = tmp_path / "s.sqlite"
    assert main(["import", str(run.path), "--store", str(store), "--branch", "main"]) == 0
    assert main(["import", str(run.path), "--store", str(store)]) == 0
    assert capsys.readouterr().out.split("\n")[1].startswith("unchanged ")
    assert status_of(store, capsys)["waiting"] == 3
    with FakeServer(answer(204)) as server:
        file = endpoint_file(tmp_path, server.port)
        assert main(["deliver", "--store", str(store), "--endpoint", str(file)]) == 0
    found = status_of(store, capsys)
    assert (found["waiting"], found["delivered"], found["runs"]) == (0, 3, 1)


def test_status_names_what_was_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, store = make_run(tmp_path, [record()]), tmp_path / "s.sqlite"
    main(["import", str(run.path), "--store", str(store)])

    def behave(connection: object, request: bytes) -> None:
        status = 400 if b"hil_verdict" in request else 204
        answer(status, '{"error":"unable to parse \'x\': no"}' if status == 400 else "")(connection, request)  # type: ignore[arg-type]

    with FakeServer(behave) as server:
        file = endpoint_file(tmp_path, server.port)
        assert main(["deliver", "--store", str(store), "--endpoint", str(file)]) == 1
    capsys.readouterr()
    assert main(["status", "--store", str(store)]) == 0
    assert "1 times: 400 unable to parse '…': no" in capsys.readouterr().out


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let a service sleep eight times, in no time, and then be broken off; return for how long."""
    pauses_s: list[float] = []

    def sleep(pause_s: float) -> None:
        pauses_s.append(pause_s)
        if len(pauses_s) == 8:
            raise KeyboardInterrupt

    clock = SimpleNamespace(monotonic=lambda: 1e6 + sum(pauses_s), sleep=sleep)
    monkeypatch.setattr(command_line, "time", clock)
    return pauses_s


def follow(folder: Path, port: int) -> int:
    """Follow a store with a run; what a failure is tried again within one delivery is nothing here."""
    run, store = make_run(folder, [record()]), folder / "s.sqlite"
    main(["import", str(run.path), "--store", str(store)])
    file = endpoint_file(folder, port)
    options = ["--follow", "--give-up-s", "0", "--store", str(store), "--endpoint", str(file)]
    return main(["deliver", *options])


def test_a_service_keeps_the_pause_that_the_server_asks_for(
    tmp_path: Path, slept: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer(answer(429, "busy", "Retry-After: 3600")) as server:
        assert follow(tmp_path, server.port) == 0
    assert slept == 8 * [3600]
    assert len(server.requests) == 8
    assert capsys.readouterr().err.count("; once more in 3600 s\n") == 8


def test_a_service_is_not_asked_for_a_pause_of_years(tmp_path: Path, slept: list[float]) -> None:
    with FakeServer(answer(503, "", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT")) as server:
        assert follow(tmp_path, server.port) == 0
    assert slept == 8 * [86400]


@pytest.mark.parametrize("status", [401, 404])
def test_a_service_asks_less_and_less_where_the_answer_stays_the_same(
    tmp_path: Path, slept: list[float], status: int
) -> None:
    with FakeServer(answer(status, "no")) as server:
        assert follow(tmp_path, server.port) == 0
    assert slept == [5, 10, 20, 40, 80, 160, 300, 300]


def test_a_service_that_is_served_again_is_as_quick_as_before(tmp_path: Path, slept: list[float]) -> None:
    def behave(connection: object, request: bytes) -> None:
        answer(204 if len(slept) == 3 else 404)(connection, request)  # type: ignore[arg-type]

    with FakeServer(behave) as server:
        assert follow(tmp_path, server.port) == 0
    assert slept == [5, 10, 20, 5, 5, 5, 5, 5]


@pytest.mark.parametrize("problem", ["SQLITE_FULL", "SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"])
def test_a_service_goes_on_when_the_store_can_be_written_again(
    tmp_path: Path,
    slept: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    problem: str,
) -> None:
    def full(*_: object) -> None:
        error = sqlite3.OperationalError("no room")
        error.sqlite_errorname = problem
        with guarded(tmp_path / "s.sqlite"):
            raise error

    monkeypatch.setattr(command_line, "deliver", full)
    assert follow(tmp_path, 9) == 0
    assert slept == [5, 10, 20, 40, 80, 160, 300, 300]
    assert "s.sqlite: " in capsys.readouterr().err


def test_a_service_ends_when_its_store_is_damaged(
    tmp_path: Path, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> None:
        with guarded(tmp_path / "s.sqlite"):
            raise sqlite3.DatabaseError("malformed")

    monkeypatch.setattr(command_line, "deliver", damaged)
    assert follow(tmp_path, 9) == 5
    assert slept == []


def test_server_that_is_down_leaves_the_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, store = make_run(tmp_path, [record()]), tmp_path / "s.sqlite"
    main(["import", str(run.path), "--store", str(store)])
    with FakeServer(answer(204)) as server:
        port = server.port
    file = endpoint_file(tmp_path, port)
    assert main(["deliver", "--store", str(store), "--endpoint", str(file), "--give-up-s", "0"]) == 5
    assert "the points wait on" in capsys.readouterr().err
    assert status_of(store, capsys)["waiting"] == 3


def test_statistics_of_another_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, store = tmp_path / "statistics.json", tmp_path / "s.sqlite"
    file.write_text(message(time=0))
    assert main(["import", str(file), "--store", str(store)]) == 2
    assert "say --time" in capsys.readouterr().err
    assert main(["import", str(file), "--store", str(store), "--time", "2026-11-22T00:00:00Z"]) == 0
    assert status_of(store, capsys)["waiting"] == 2


def test_altered_run_is_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, store = make_run(tmp_path, [record()]), tmp_path / "s.sqlite"
    run.close()
    run.finalise()
    measurements = run.path / "measurements.jsonl"
    measurements.write_text(measurements.read_text().replace('"lost":0', '"lost":1'))
    assert main(["import", str(run.path), "--store", str(store)]) == 2
    assert "measurements.jsonl has changed since" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["deliver"],
        ["deliver", "--endpoint", "missing.toml"],
        ["import", "missing"],
        ["import", ".", "--time", "x"],
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str]) -> None:
    assert main([*arguments, "--store", str(tmp_path / "s.sqlite")]) == 2


def test_status_of_a_store_that_is_not_there(tmp_path: Path) -> None:
    assert main(["status", "--store", str(tmp_path / "s.sqlite")]) == 5
    assert not (tmp_path / "s.sqlite").exists()


def test_qualification_keeps_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, [record()])
    assert keep_run(run.path, tmp_path) == RunEnd("", "0 of 15 earlier runs, no statement yet")
    assert status_of(tmp_path / "store.sqlite", capsys)["waiting"] == 3


def test_qualification_delivers_where_an_endpoint_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, [record()])
    with FakeServer(answer(204)) as server:
        monkeypatch.setenv(ENDPOINT_VARIABLE, str(endpoint_file(tmp_path, server.port)))
        # How long it may take is for a bench; this machine may be busy.
        monkeypatch.setattr("resources.keep_run._DELIVERY_MAX_S", 120.0)
        assert keep_run(run.path, tmp_path).problem == ""
    assert status_of(tmp_path / "store.sqlite", capsys)["delivered"] == 3


def test_qualification_says_what_it_could_not_keep(tmp_path: Path) -> None:
    """Whatever goes wrong is a sentence, never an exception: the verdict stands without a store."""
    run = make_run(tmp_path, [record()])
    (tmp_path / "store.sqlite").write_text("no database " * 100)
    assert "not a database" in keep_run(run.path, tmp_path).problem
    assert "neither a run folder" in keep_run(tmp_path / "missing", tmp_path / "elsewhere").problem


def test_only_pages_load_what_pages_need() -> None:
    code = "import sys, dashboards.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "dashboards.trends.page" in loaded
    assert not loaded & {"jinja2", "matplotlib", "robot"}
