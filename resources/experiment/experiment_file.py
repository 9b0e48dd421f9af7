# SPDX-License-Identifier: Apache-2.0
"""The file of an experiment as it is written: includes, parameters, nodes by name; nothing is done here.

What comes out is *resolved*: one table that says everything, and reads again to the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hw.bench import BenchSpec, load_bench
from hw.errors import ConfigError
from hw.fields import FieldError, Fields
from hw.toml_file import read_toml
from resources.experiment.component_file import read_experiment, read_nodes
from resources.experiment.components import BROUGHT, ExperimentNode, ExperimentSpec
from resources.experiment.points import Point, points_of
from resources.experiment.substitution import Scalar, is_scalar, substituted, text_of, unescaped
from resources.experiment.toml_text import line_of, toml_text

SCHEMA = "benchwright.experiment/1"
INCLUDES_MAX = 100
MERGED = ("parameters", "nodes", "components", "axes")
"""Tables that several files add to."""
COMMANDS = ("command", "arguments")
BRING = "bring"


@dataclass(frozen=True)
class ExperimentFile:
    """An experiment that was read, checked at each of its points, and nothing else.

    Attributes:
        table: Resolved, as `toml_text` writes it.
        bench: As its file describes it.
        points: In the order in which they are measured.
        folder: Its own: files that commands bring to nodes are named from there.
    """

    table: Mapping[str, Any]
    bench: BenchSpec
    points: tuple[Point, ...]
    folder: Path

    @property
    def name(self) -> str:
        """Return what it is called."""
        return str(self.table["name"])

    def text(self) -> str:
        """Return the resolved file, as it lies beside its folder `files`."""
        components = {
            name: {key: _beside(key, value) for key, value in each.items()}
            for name, each in cast("dict[str, dict[str, Any]]", self.table["components"]).items()
        }
        nodes = {name: {"node": each.node, **_wanted(each)} for name, each in self.as_written().nodes.items()}
        return toml_text({**self.table, "nodes": nodes, "components": components})

    def at(self, point: Point) -> ExperimentSpec:
        """Return what is done at a point: every name is replaced."""
        return _at(self.table, self.bench, point)

    def as_written(self) -> ExperimentSpec:
        """Return what is done at the first point."""
        return self.at(self.points[0])

    def commands(self) -> dict[str, tuple[str, ...]]:
        """Return the words of each program's command; names of axes stand in them."""
        addresses = _addresses(self.table, self.bench, "")
        components = substituted(self.table["components"], addresses, lambda _name: True)
        return {
            name: tuple(map(text_of, each[key]))
            for name, each in components.items()
            for key in COMMANDS
            if key in each
        }


def _beside(key: str, words: Any) -> Any:
    """Return what a component says, its files in `files`."""
    if key == BRING:
        return [f"files/{Path(word).name}" for word in words]
    if key not in COMMANDS:
        return words
    return [
        f"{BROUGHT}files/{Path(word.removeprefix(BROUGHT)).name}"
        if isinstance(word, str) and word.startswith(BROUGHT)
        else word
        for word in words
    ]


def _wanted(node: ExperimentNode) -> dict[str, Any]:
    """Return what a node must have."""
    kernel = {"kernel": node.kernel} if node.kernel else {}
    return kernel | ({"tools": list(node.tools)} if node.tools else {})


def read_experiment_file(
    path: Path,
    bench: Path | BenchSpec | None = None,
    parameters: Mapping[str, Scalar] | None = None,
    nodes: Mapping[str, str] | None = None,
) -> ExperimentFile:
    """Read an experiment and check it at each of its points.

    Args:
        path: The file.
        bench: A bench or its file; None: as the experiment says.
        parameters: Besides those of the file, or in their place.
        nodes: The bench's names of nodes that the file does not say.

    Raises:
        ConfigError: Names file, line, key and what is allowed.
    """
    sources: dict[Path, str] = {}
    try:
        whole = _merged(path, sources, ())
        if parameters:
            _add(whole, {"parameters": dict(parameters)})
        if nodes:
            _add(whole, {"nodes": {name: {"node": node} for name, node in nodes.items()}})
        table = _resolved(whole, path, bench.path if isinstance(bench, BenchSpec) else bench)
        spec = bench if isinstance(bench, BenchSpec) else load_bench(Path(str(table["bench"])))
        points = points_of(Fields(table, str(path), ""))
        for point in points:
            _at(table, spec, point, str(path))
    except ConfigError as error:
        raise _with_line(error, sources, path) from error
    return ExperimentFile(table, spec, points, path.parent)


def _with_line(error: ConfigError, sources: Mapping[Path, str], path: Path) -> ConfigError:
    """Return the error with the line of the key that it names, in whichever file that is."""
    if isinstance(error, FieldError):
        is_of_any = error.file in ("", str(path))  # what files include counts as theirs
        for file, text in sources.items():
            is_its = is_of_any or error.file == str(file)
            if is_its and (line := line_of(text, error.key)) is not None:
                return ConfigError(f"{file}:{line}: {error.key}: {error.said}")
    words = str(error)
    return error if words.startswith(str(path)) else ConfigError(f"{path}: {words}")


def _merged(path: Path, sources: dict[Path, str], above: tuple[Path, ...]) -> dict[str, Any]:
    """Return a file's table with those that it includes; what it says itself comes last and counts."""
    if path.resolve() in {each.resolve() for each in above}:
        way = " includes ".join(map(str, (*above, path)))
        raise FieldError("", "include", f"must not come back to a file: {way}")
    table = read_toml(path)
    sources[path] = path.read_text(encoding="utf-8-sig")
    if len(sources) > INCLUDES_MAX:
        raise FieldError("", "include", f"must be {INCLUDES_MAX} files at most")
    _name_files(table, path.parent)
    names = table.pop("include", [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in cast("list[object]", names)):
        raise FieldError(str(path), "include", f"must be a list of texts, found {names!r}")
    whole: dict[str, Any] = {}
    for name in cast("list[str]", names):
        file = path.parent / name
        if not file.is_file():
            raise FieldError(str(path), "include", f"must name files, found {name!r}")
        _add(whole, _merged(file, sources, (*above, path)))
    _add(whole, table)
    return whole


def _name_files(table: Mapping[str, Any], folder: Path) -> None:
    """Name the files that components bring to nodes from where they lie: beside the file that names them."""
    components: Any = table.get("components")
    if not isinstance(components, dict):
        return
    for component in cast("dict[str, Any]", components).values():
        if not isinstance(component, dict):
            continue
        for key, begin in ((BRING, ""), *((key, BROUGHT) for key in COMMANDS)):
            words: Any = cast("dict[str, Any]", component).get(key)
            if isinstance(words, list):
                component[key] = [_from(folder, word, begin) for word in cast("list[Any]", words)]


def _from(folder: Path, word: Any, begin: str) -> Any:
    if not isinstance(word, str) or not word.startswith(begin) or "${" in word or word == begin:
        return word
    return f"{begin}{folder.absolute() / word.removeprefix(begin)}"


def _add(whole: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        before = whole.get(key)
        if key in MERGED and isinstance(before, Mapping) and isinstance(value, Mapping):
            whole[key] = {**cast("Mapping[str, Any]", before), **cast("Mapping[str, Any]", value)}
        else:
            whole[key] = value


def _resolved(table: dict[str, Any], path: Path, bench: Path | None) -> dict[str, Any]:
    """Return the table with its parameters replaced and its bench named."""
    parameters: dict[str, Scalar] = {}
    for name, value in _table(table, "parameters", path).items():
        if not is_scalar(value) or (isinstance(value, str) and "${" in value):
            raise FieldError(
                str(path),
                f"parameters.{name}",
                f"must be a text without names, a number, true or false, found {value!r}",
            )
        parameters[name] = value
    axes = _table(table, "axes", path)
    nodes = _table(table, "nodes", path)
    both = sorted(parameters.keys() & axes.keys())
    if both:
        raise FieldError(str(path), f"axes.{both[0]}", "must be another name than a parameter's")

    def is_later(name: str) -> bool:
        return name in axes or name == "repeat" or name.partition(".")[0] in nodes

    rest = {key: value for key, value in table.items() if key != "parameters"}
    found = cast("dict[str, Any]", substituted(rest, parameters, is_later))
    if bench is not None:
        found["bench"] = str(bench)
    top = Fields(found, str(path), "")
    top.text("schema", choices=[SCHEMA])
    top.name("name")
    top.text_that_says("bench")
    return found


def _table(table: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise FieldError(str(path), key, f"must be a table, found {value!r}")
    return cast("Mapping[str, Any]", value)


def _at(table: Mapping[str, Any], bench: BenchSpec, point: Point, file: str = "") -> ExperimentSpec:
    names = {**point.values, "repeat": point.repeat, **_addresses(table, bench, file)}
    found = unescaped(substituted(table, names, lambda _name: False))
    return read_experiment(Fields(found, file, ""), bench)


def _addresses(table: Mapping[str, Any], bench: BenchSpec, file: str) -> dict[str, Scalar]:
    """Return `NAME.node` and `NAME.address` of each node: what the bench calls it, its test address."""
    found: dict[str, Scalar] = {}
    for name, node in read_nodes(Fields(table, file, ""), bench).items():
        found[f"{name}.node"] = node.node
        if node.address:
            found[f"{name}.address"] = node.address
    return found
