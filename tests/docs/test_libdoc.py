# SPDX-License-Identifier: Apache-2.0
"""Libdoc pages of all keyword libraries and resources: they can be built, and they are complete."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ROOT / ".build" / "docs"
LIBRARY = re.compile(r"^@library\(.*?\)\nclass (\w+)", re.MULTILINE | re.DOTALL)
ARGUMENTS_OF_LIBRARIES = {
    "ClockReadLatencyLibrary": "::requirements.toml",
    "RealtimeEthernetLibrary": "::requirements.toml",
    "RtBaselineLibrary": "::requirements.toml",
    "SoftwareLatencyLibrary": "::requirements.toml",
    "StacksLibrary": "::requirements.toml::pattern.toml",
    "ClockSyncLibrary": "::requirements.toml",
    "ControlLoopsCameraLibrary": "::requirements.toml",
    "ControlLoopsLibrary": "::requirements.toml",
    "DaqReplayLibrary": "::requirements.toml::pattern.toml",
    "LargestPatternLibrary": "::requirements.toml::budgets.toml",
    "ProvisioningLibrary": "::requirements.toml",
    "TimeServiceLibrary": "::requirements.toml",
    "TimedEdgesLibrary": "::requirements.toml::clocks.toml",
    "TimelineBulkLibrary": "::requirements.toml",
    "TimelineLibrary": "::requirements.toml",
}

build_page: Any = importlib.import_module("robot.libdoc").libdoc


def sources() -> dict[str, str]:
    """Return what Libdoc is asked for, by the name of its page: every library and every resource there is."""
    found: dict[str, str] = {}
    for file in sorted((ROOT / "resources").glob("*/*.py")):
        for name in LIBRARY.findall(file.read_text()):
            module = f"resources.{file.parent.name}.{file.stem}"
            found[name] = f"{module}.{name}{ARGUMENTS_OF_LIBRARIES.get(name, '')}"
    for file in sorted([*(ROOT / "robot").glob("*/*.resource"), ROOT / "resources" / "lab.resource"]):
        found[file.stem] = str(file.relative_to(ROOT))
    return found


def run_libdoc(source: str, output: Path) -> None:
    """Run Libdoc as a user would."""
    argv = [sys.executable, "-m", "robot.libdoc", "--pythonpath", ".", source, str(output)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def undocumented(page: dict[str, Any]) -> list[str]:
    """Return what lacks documentation: a page, its keywords, arguments that their keyword's text omits."""
    missing = [] if page["doc"].strip() else [page["name"]]
    for keyword in [*page["keywords"], *page["inits"]]:
        if not keyword["doc"].strip():
            missing.append(keyword["name"])
        for argument in keyword["args"]:
            # Resources have no section of arguments: there the keyword's text has to name them.
            in_text = page["type"] == "RESOURCE" and argument["name"] in keyword["doc"]
            if not argument["doc"].strip() and not in_text:
                missing.append(f"{keyword['name']}: {argument['name']}")
            if page["type"] == "LIBRARY" and argument["type"] is None:
                missing.append(f"{keyword['name']}: type of {argument['name']}")
    return missing


def test_all_libraries_are_found() -> None:
    assert {"BenchLibrary", "DaqReplayLibrary", "lab", "daq_replay"} <= set(sources())


@pytest.mark.parametrize("name", sources())
def test_page_is_complete(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages are built in this process: what the libraries import takes longer than the pages."""
    monkeypatch.chdir(ROOT)
    PAGES.mkdir(parents=True, exist_ok=True)
    for form in ("html", "json"):
        output = PAGES / f"{name}.{form}"
        output.unlink(missing_ok=True)
        assert build_page(sources()[name], str(output), quiet=True) == 0
    page = json.loads((PAGES / f"{name}.json").read_text())
    assert page["keywords"], "no keyword"
    assert undocumented(page) == []


def test_what_is_undocumented_is_found(tmp_path: Path) -> None:
    library = tmp_path / "Silent.py"
    documented = '"""Add.\n\n    Args:\n        first: One.\n    """'
    library.write_text(
        '"""Has keywords."""\n\n'
        f"def known(first: int, second: int):\n    {documented}\n\n"
        f"def untyped(first):\n    {documented}\n\n"
        "def silent():\n    pass\n"
    )
    run_libdoc(str(library), tmp_path / "page.json")
    page = json.loads((tmp_path / "page.json").read_text())
    assert undocumented(page) == ["Known: second", "Silent", "Untyped: type of first"]
