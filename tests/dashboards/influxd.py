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
from types import TracebackType
from typing import Any, cast

import pytest

from dashboards.delivery import Endpoint

DATABASE = "hil"
START_S = 60.0
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
        """Prepare a server; skips the test where Debian's influxdb is not installed."""
        if shutil.which("influxd") is None:
            pytest.skip("needs Debian's influxdb (hw/host/setup.sh --dev)")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.folder = folder
        self._config = folder / "influxdb.toml"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._config.write_text(_CONFIG.format(folder=folder, port=self.port))

    def __enter__(self) -> InfluxServer:
        self.start()
        self.query(f"CREATE DATABASE {DATABASE}", method="POST")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "nice",
            "-n",
            "15",
            "influxd",
            "-config",
            str(self._config),
        ]
        with (self.folder / "influxd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self.folder / "influxd.log").read_text()[-2000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ping", timeout=5):
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("influxd does not answer")

    def kill(self) -> None:
        """Kill the server as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def endpoint(self, database: str = DATABASE) -> Endpoint:
        """Return the server's write interface."""
        query = urllib.parse.urlencode({"db": database, "precision": "ns"})
        read = urllib.parse.urlencode({"db": database, "epoch": "ns"})
        return Endpoint(1, False, "127.0.0.1", self.port, f"/write?{query}", query_path=f"/query?{read}")

    def endpoint_file(self, path: Path) -> Path:
        """Write an endpoint file for the server and return its path."""
        path.write_text(
            f'[influxdb]\napi = 1\nurl = "http://127.0.0.1:{self.port}"\ndatabase = "{DATABASE}"\n'
        )
        return path

    def query(self, text: str, method: str = "GET") -> list[dict[str, Any]]:
        """Ask in InfluxQL; return the series of the answer."""
        query = urllib.parse.urlencode({"db": DATABASE, "epoch": "ns", "q": text})
        url = f"http://127.0.0.1:{self.port}/query?{query}"
        request = urllib.request.Request(url, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - loopback
            result = json.load(answer)["results"][0]
        assert "error" not in result, result
        return cast("list[dict[str, Any]]", result.get("series", []))

    def value(self, text: str) -> Any:
        """Ask for one value; None where there is none."""
        series = self.query(text)
        return series[0]["values"][0][1] if series else None
