# SPDX-License-Identifier: Apache-2.0
"""A real InfluxDB 1.x (Debian's) on loopback, which can be killed and started again, and asked."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self, cast

import pytest

from dashboards.delivery import Endpoint, load_endpoint
from dashboards.delivery.endpoint import TOKEN
from tests.patience import HANG_S

DATABASE = "hil"
_CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  wal-fsync-delay = "0s"
[monitor]
  store-enabled = false
[subscriber]
  enabled = false
[continuous_queries]
  enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  max-row-limit = 0
"""


class InfluxServer:
    """The server, with its data in a folder; a context manager that starts it."""

    def __init__(self, folder: Path) -> None:
        """Prepare a server; skips the test where it is not installed."""
        self.require()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.folder = folder
        self.token = ""
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self.start()
        self.set_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    @staticmethod
    def require() -> None:
        """Skip the test where the server is not installed."""
        if shutil.which("influxd") is None:
            pytest.skip("needs Debian's influxdb (hw/host/setup.sh --dev)")

    def command(self) -> list[str]:
        """Return the command that starts it."""
        config = self.folder / "influxdb.toml"
        config.write_text(_CONFIG.format(folder=self.folder, port=self.port))
        return ["influxd", "-config", str(config)]

    def set_up(self) -> None:
        """Make the database."""
        self.query(f"CREATE DATABASE {DATABASE}", method="POST")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "15", *self.command()]
        with (self.folder / "influxd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self.folder / "influxd.log").read_text()[-2000:]
            try:
                self.request("GET", "/ping", timeout_s=5)

            except OSError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError("influxd does not answer")

    @property
    def pid(self) -> int:
        """Return the id of the running server's process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the server as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def set_shards(self, duration: str) -> None:
        """Let each shard of the database hold so long, such as 52w."""
        self.query(f"ALTER RETENTION POLICY autogen ON {DATABASE} SHARD DURATION {duration}", method="POST")

    def endpoint(self, database: str = DATABASE) -> Endpoint:
        """Return the server's write interface."""
        text = self.endpoint_text().replace(f'"{DATABASE}"', f'"{database}"')
        (self.folder / "endpoint.toml").write_text(text)
        return load_endpoint(self.folder / "endpoint.toml", self.environment())

    def endpoint_file(self, path: Path) -> Path:
        """Write an endpoint file for the server and return its path."""
        path.write_text(self.endpoint_text())
        return path

    def endpoint_text(self) -> str:
        """Return the text of an endpoint file for the server."""
        return f'[influxdb]\napi = 1\nurl = "{self.url}"\ndatabase = "{DATABASE}"\n'

    def environment(self) -> dict[str, str]:
        """Return the variables with its credentials."""
        return {TOKEN: self.token} if self.token else {}

    def query(self, text: str, method: str = "GET") -> list[dict[str, Any]]:
        """Ask in InfluxQL; return the series of the answer."""
        query = urllib.parse.urlencode({"db": DATABASE, "epoch": "ns", "q": text})
        result = json.loads(self.request(method, f"/query?{query}"))["results"][0]
        assert "error" not in result, result
        return cast("list[dict[str, Any]]", result.get("series", []))

    def request(self, method: str, path: str, body: object = None, timeout_s: float = 120) -> bytes:
        """Send a request, with the token where there is one, and return its answer's body."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Token {self.token}"
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
            return cast("bytes", answer.read())

    def value(self, text: str) -> Any:
        """Ask for one value; None where there is none."""
        series = self.query(text)
        return series[0]["values"][0][1] if series else None
