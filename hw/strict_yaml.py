# SPDX-License-Identifier: Apache-2.0
"""YAML in which a key stands once: the parser's own loader silently keeps the last of two.

A number as a key is written as it is read: to the parser `010` is 8.

`!template TEXT` is labgrid's: `$LG_NAME` in it stands for a variable of the environment, `$BASE` for the
folder of the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from string import Template
from typing import Any, cast

import yaml

from hw.errors import ConfigError

BYTES_MAX = 1 << 20
NODES_MAX = 100_000
"""With every `*alias` written out: a few of them can stand for more than a memory holds."""

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _value in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                text: str = key_node.value
                key: object = text if key_node.tag == _MERGE else cast("Any", self).construct_object(key_node)
                problem = ""
                if text in seen or key in seen:
                    problem = f"{text}: the key stands twice"
                elif isinstance(key, int) and not isinstance(key, bool) and str(key) != text:
                    problem = f"{text}: must be written {key}, or in quotes: so it is read"
                if problem:
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
                seen |= {text, key}
        return super().construct_mapping(node, deep)


def _template(loader: Any, node: Any) -> str:
    """Return a template's text with the values of its variables, of which labgrid knows LG_… and BASE."""
    known = {name: value for name, value in os.environ.items() if name.startswith("LG_")}
    try:
        template = Template(str(loader.construct_scalar(node)))
        return template.substitute(known, BASE=str(Path(loader.name).resolve().parent))
    except KeyError as error:
        problem = (
            f"!template: ${error.args[0]} is not set in the environment; must be $BASE or a $LG_… that is set"
        )
    except ValueError as error:
        problem = f"!template: {error}; a dollar sign itself is $$"
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


_Loader.add_constructor("!template", _template)


def _size(node: Any, known: dict[int, int], path: Path) -> int:
    """Return how many values a node stands for, all aliases written out; raises ConfigError."""
    line = 1 if node is None else node.start_mark.line + 1
    if id(node) not in known:
        known[id(node)] = NODES_MAX  # while it is counted: it must not be in itself
        parts: list[Any] = []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        known[id(node)] = 1 + sum(_size(part, known, path) for part in parts)
    if known[id(node)] >= NODES_MAX:
        raise ConfigError(f"{path}:{line}: must stand for {NODES_MAX} values at most, aliases written out")
    return known[id(node)]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a file whose top is a table.

    Raises:
        ConfigError: It cannot be read, is not YAML, is larger than a bench can be, or has a key twice, or
            a number as a key that is not written as it is read; names file and line.
    """
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ConfigError(f"{path}: must have {BYTES_MAX} bytes at most")
        loader: Any = _Loader(path.read_text(encoding="utf-8"))
        loader.name = str(path)
        node: Any = loader.get_single_node()
        _size(node, {}, path)
        document: object = None if node is None else loader.construct_document(node)
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deep") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be a table of keys, found {type(document).__name__}")
    return cast("dict[str, Any]", document)
