# SPDX-License-Identifier: Apache-2.0
"""bw-timed as a service of Windows, under Wine: made, started, held, stopped, removed; and on a console."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hw.errors import CapabilityError
from hw.tools import BUILD
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment
from tests.patience import HANG_S
from tests.targets.timeservice.lab import ToldServer, recompute
from tests.targets.timeservice.test_keys import KEY_FILE, KeyServer, other_secret, right

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
TOOLS = "C:\\tools"
FULL_DISK = "\\\\?\\unix\\dev\\full"
"""As Wine names a file of this machine that nobody can write to."""
FOLDER = Path("Program Files", "Benchwright", "time")
QUICK = ("--interval-ms", "500", "--quick-interval-ms", "200", "--any-counter")


class Windows:
    """A disk of Windows with the two programs, switched on."""

    def __init__(self, prefix: Path) -> None:
        """Copy what is needed, and keep the machine on: its services end with the last program of a user."""
        self.disk = prefix / "drive_c"
        self._environment = wine_environment(prefix)
        (self.disk / "tools").mkdir()
        for program in ("targets/windows/src/bw-timed.exe", "traffic-gen/bw-timectl.exe"):
            shutil.copy(BUILD / "win" / program, self.disk / "tools")
        self._on = subprocess.Popen(
            [str(WINE_FOLDER / "wine64"), "C:\\windows\\system32\\cmd.exe"],
            env=self._environment,
            cwd=self.disk,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, program: str, *arguments: str) -> tuple[int, str, str]:
        """Run one of the programs; return exit code, stdout, stderr."""
        # Not pipes: Wine's own processes, which it may begin, would keep them open.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                [str(WINE_FOLDER / "wine64"), f"{TOOLS}\\{program}.exe", *arguments],
                env=self._environment,
                cwd=self.disk,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                check=False,
                timeout=HANG_S,
            )
            out.seek(0)
            err.seek(0)
            return done.returncode, out.read(), err.read()

    def tracking(self, *arguments: str) -> dict[str, Any]:
        """Return what bw-timectl says of the clock; empty without a page."""
        _, out, _ = self.run("bw-timectl", "tracking", "--json", *arguments)
        return dict(json.loads(out)) if out else {}

    def until(self, state: str) -> dict[str, Any]:
        """Wait for a state of the page."""
        deadline_s = time.monotonic() + HANG_S
        while True:
            said = self.tracking()
            if said.get("state") == state:
                return said
            assert time.monotonic() < deadline_s, said
            time.sleep(0.2)

    def programs(self, name: str) -> list[int]:
        """Return the processes of this machine in which a program of that disk runs."""
        found: list[int] = []
        prefix = f"WINEPREFIX={self._environment['WINEPREFIX']}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                of_disk = prefix in (folder / "environ").read_bytes().split(b"\0")
                if of_disk and name.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
        return found

    def close(self) -> None:
        """Switch it off."""
        self._on.communicate("exit\n", timeout=HANG_S)
        subprocess.run(
            [str(WINE_FOLDER / "wineserver64"), "--kill"],
            env=self._environment,
            check=False,
            timeout=HANG_S,
        )


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Generator[Windows]:
    """Make a machine of its own: services are the machine's."""
    if not (BUILD / "win" / "traffic-gen" / "bw-timectl.exe").exists():
        pytest.skip(".build/win is not built: make setup, or make test")
    prefix = tmp_path_factory.mktemp("windows") / "prefix"
    try:
        shutil.copytree(prefix_or_make(), prefix, symlinks=True)
    except CapabilityError as error:
        pytest.skip(str(error))
    made = Windows(prefix)
    try:
        yield made
    finally:
        made.close()


def test_console_runs_to_its_end(windows: Windows) -> None:
    with ToldServer() as server:
        code, out, err = windows.run(
            "bw-timed",
            "--console",
            "--server",
            server.text,
            *QUICK,
            "--page",
            "C:\\console",
            "--batches",
            "6",
        )
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert lines[0]["type"] == "ready"
    syncs = [line for line in lines if line["type"] == "sync"]
    assert syncs
    assert {line["stamps"] for line in syncs} == {"user"}
    assert windows.tracking("--page", "C:\\console")["state"] == "ended"


def test_exchanges_that_it_has_logged_are_computed_again(windows: Windows) -> None:
    with ToldServer() as server:
        arguments = ("--server", server.text, *QUICK, "--page", "C:\\logged", "--batches", "6")
        code, _, err = windows.run(
            "bw-timed", "--console", *arguments, "--log", "C:\\logged.ndjson", "--log-exchanges"
        )
    assert (code, err) == (0, "")
    code, out, err = windows.run("bw-timectl", "recompute", "C:\\logged.ndjson")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 2
    log = windows.disk / "logged.ndjson"
    assert b"\r" in log.read_bytes()
    assert recompute(log)[0] in (0, 4), "of another build a last bit may differ, but its lines can be read"


def put_keys(windows: Windows, text: str, mode: int) -> str:
    """Write a file of keys; return its path there.

    Wine makes its access control list of the mode: of what owner and others may, not of the group.
    """
    path = windows.disk / "timed.keys"
    path.write_text(text)
    path.chmod(mode)
    return "C:\\timed.keys"


def test_server_with_a_key(windows: Windows) -> None:
    keys = put_keys(windows, KEY_FILE, 0o600)
    for ending, used in ((right, True), (other_secret, False)):
        with KeyServer(ending) as server:
            arguments = ("--server", f"{server.text},key=5", "--key-file", keys, "--timeout-ms", "200")
            page = ("--page", f"C:\\key-{used}", "--batches", "6")
            code, out, err = windows.run("bw-timed", "--console", *arguments, *QUICK, *page)
        lines = [json.loads(line) for line in out.splitlines()]
        assert (code, err) == (0, "")
        assert any(line["type"] == "sync" for line in lines) == used
        reasons = {line["reason"] for line in lines if line["type"] == "rejected"}
        assert reasons == (set() if used else {"mac-wrong", "no-answer"})


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602])
def test_keys_that_others_may_read_are_refused(windows: Windows, mode: int) -> None:
    keys = put_keys(windows, KEY_FILE, mode)
    arguments = ("--server", "127.0.0.1,key=5", "--key-file", keys, "--page", "C:\\no")
    code, out, err = windows.run("bw-timed", "--console", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"bw-timed: {keys}: others may read or write it; allowed: a file that its owner, ")


def test_service_is_made_run_held_and_removed(windows: Windows) -> None:
    with ToldServer() as server:
        assert windows.run("bw-timed", "install", "--server", server.text, *QUICK)[0] == 0
        assert windows.run("bw-timed", "start")[0] == 0
        before_ns = time.time_ns()
        said = windows.until("synchronised")
        assert before_ns - said["bound_ns"] <= said["utc_ns"] <= time.time_ns() + said["bound_ns"]
        assert windows.run("bw-timectl", "hold")[0] == 0
        windows.until("holdover")
        assert windows.run("bw-timectl", "resume")[0] == 0
        windows.until("synchronised")
        assert windows.run("bw-timed", "stop")[0] == 0
        assert windows.tracking()["state"] == "ended"
        # A second time: the page is taken over, the log goes on.
        assert windows.run("bw-timed", "start")[0] == 0
        assert windows.until("synchronised")["publications"] > said["publications"]
        assert windows.run("bw-timed", "uninstall")[0] == 0
    code, _, err = windows.run("bw-timed", "start")
    assert code == 3
    assert err.startswith("bw-timed: start: ")
    log = [json.loads(line) for line in (windows.disk / FOLDER / "bw-timed.ndjson").read_text().splitlines()]
    assert [line["type"] for line in log].count("ready") == 2
    assert log[-1]["page_state"] == "ended"


@pytest.mark.parametrize(
    ("arguments", "again"),
    [
        (("--server", "127.0.0.1:9", "--log", FULL_DISK), True),
        (("--server", "127.0.0.1:9", "--page", "C:\\none\\page"), False),
    ],
)
def test_service_tells_of_no_end_that_a_new_start_cures(
    windows: Windows, arguments: tuple[str, ...], again: bool
) -> None:
    """Who ends without a word is started again; who says that it has stopped (1066: with a code) is not."""
    shutil.copy(windows.disk / "windows" / "system32" / "sc.exe", windows.disk / "tools")
    assert windows.run("bw-timed", "install", *arguments, *QUICK)[0] == 0  # makes the folder, too
    try:
        code, _, _ = windows.run("bw-timed", "--console", *arguments, *QUICK)
        assert code == (5 if again else 3)
        windows.run("bw-timed", "start")
        deadline_s = time.monotonic() + HANG_S
        while windows.programs("bw-timed.exe"):
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
        assert ("1066" in windows.run("sc", "query", "bw-timed")[1]) == (not again)
    finally:
        windows.run("bw-timed", "uninstall")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install"], "no server"),
        (["install", "--server", "127.0.0.1", "--batch", "65"], "allowed: 1..64"),
        (["stop", "now"], "surplus argument"),
    ],
)
def test_bad_input_is_refused(windows: Windows, arguments: list[str], said: str) -> None:
    code, _, err = windows.run("bw-timed", *arguments)
    assert code == 2
    assert said in err
