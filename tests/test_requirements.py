# SPDX-License-Identifier: Apache-2.0
"""What runs a bench imports only packages that `make qualify` installs, not those that the tests add."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

SOURCES = ("dashboards", "hw", "reports", "resources", "robot", "scope", "targets", "traffic-gen")


def _imported(path: Path) -> Iterator[str]:
    """List the top-level packages that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _is_beside(path: Path, name: str) -> bool:
    """Say whether a module lies beside the program of a file: in its folder, or the one above."""
    folders = path.parent, path.parent.parent
    return any((each / f"{name}.py").is_file() or (each / name / "__init__.py").is_file() for each in folders)


def _plain(name: str) -> str:
    """Return a distribution's name as locks spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_imports_are_in_the_requirements(repository: Path) -> None:
    wanted = (repository / "hw" / "host" / "requirements.in").read_text()
    installed = {_plain(name) for name in re.findall(r"^([A-Za-z0-9_.-]+)", wanted, re.MULTILINE)}
    distributions = packages_distributions()
    brought = {path.stem for path in (repository / "traffic-gen").glob("*/python/*.py")}
    """Of programs of a site, which have the file beside them on their node."""
    of_a_site = {"opencv_tracker.py": {"cv2"}}
    """Of an example that a site runs with a Python of its own."""
    known = {*sys.stdlib_module_names, *SOURCES, "tests", *brought} - {"robot"}
    checked: set[str] = set()
    for path in sorted(file for folder in SOURCES for file in (repository / folder).rglob("*.py")):
        for name in set(_imported(path)) - known - of_a_site.get(path.name, set()):
            if name not in distributions and _is_beside(path, name):
                continue
            checked.add(name)
            assert installed.intersection(map(_plain, distributions.get(name, []))), f"{path}: import {name}"
    assert {"numpy", "robot", "labgrid"} <= checked
