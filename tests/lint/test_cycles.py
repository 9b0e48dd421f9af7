# SPDX-License-Identifier: Apache-2.0
"""No module imports itself by way of others, under TYPE_CHECKING either; nor do folders of capabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dashboards", "hw", "reports", "resources", "scope")


def imported(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield the modules of the project that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            package = root.joinpath(*node.module.split("."))
            found = [
                f"{node.module}.{alias.name}"
                if (package / f"{alias.name}.py").exists() or (package / alias.name).is_dir()
                else node.module
                for alias in node.names
            ]
        else:
            continue
        yield from (name for name in found if name.split(".")[0] in PACKAGES)


def module_of(path: Path, root: Path = ROOT) -> str:
    """Return the name of a file as a module."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cycle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the members of a cycle; empty: there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    """Return each module with those that it imports."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {module_of(path): set(imported(path)) - {module_of(path)} for path in files}


def test_no_module_imports_itself_by_way_of_others(modules: dict[str, set[str]]) -> None:
    assert cycle_in(modules) == []


@pytest.mark.parametrize("package", ["reports", "resources"])
def test_no_folder_of_a_package_imports_itself_by_way_of_others(
    package: str, modules: dict[str, set[str]]
) -> None:
    """Modules right in the package are what all share, or bring all together: they are not looked at."""

    def folder(name: str) -> str:
        parts = name.split(".")
        is_in_folder = parts[0] == package and (ROOT / package / "/".join(parts[1:2])).is_dir() and parts[1:]
        return parts[1] if is_in_folder else ""

    graph: dict[str, set[str]] = {}
    for name, names in modules.items():
        if own := folder(name):
            graph.setdefault(own, set()).update(
                other for each in names if (other := folder(each)) not in ("", own)
            )
    assert len(graph) > 3
    assert cycle_in(graph) == []


def test_the_two_judges_share_nothing(modules: dict[str, set[str]]) -> None:
    """What a capability tells the second judge is of the documents; the first judge sees none of it."""
    capabilities = {
        name.split(".")[1] for name in modules if name.endswith(".capability") and name.count(".") == 2
    }
    assert len(capabilities) > 5
    folders = tuple(f"reports.{name}." for name in capabilities)
    second = {name for name in modules if name.startswith("reports.rejudge.") or name.endswith(".again")}
    first = {name for name in modules if name.startswith(folders)} - second
    assert {f"reports.{name}.again" for name in capabilities} <= second
    assert not [(name, each) for name in second for each in modules[name] if each.startswith(folders)]
    assert not [(name, each) for name in first for each in modules[name] if each in second]


def test_what_measures_on_a_bench_knows_none_of_its_own(modules: dict[str, set[str]]) -> None:
    """Keywords and commands open it; others take what hw/open_bench.py says of it."""
    users = {name for name, names in modules.items() if "hw.session" in names and not name.startswith("hw.")}
    commands = {"resources.experiment.__main__", "resources.accept.__main__"}
    assert users == {"resources.keywords.bench", *commands}


def test_a_cycle_under_type_checking_is_one(tmp_path: Path) -> None:
    (tmp_path / "hw").mkdir()
    (tmp_path / "hw" / "one.py").write_text(
        "import typing\nif typing.TYPE_CHECKING:\n    from hw.two import B\n"
    )
    (tmp_path / "hw" / "two.py").write_text("from hw.one import A\n")
    files = sorted((tmp_path / "hw").glob("*.py"))
    graph = {module_of(path, tmp_path): set(imported(path, tmp_path)) for path in files}
    assert graph == {"hw.one": {"hw.two"}, "hw.two": {"hw.one"}}
    assert set(cycle_in(graph)) == {"hw.one", "hw.two"}
