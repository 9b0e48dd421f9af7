# SPDX-License-Identifier: Apache-2.0
"""YAML in which a key stands once: the parser's own loader silently keeps the last of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml

from hw.errors import ConfigError


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _value in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    problem = f"{key_node.value}: the key stands twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a file whose top is a table.

    Raises:
        ConfigError: It cannot be read, is not YAML, or has a key twice; the text names file and line.
    """
    try:
        document: object = yaml.load(path.read_text(), _Loader)  # noqa: S506 - a safe loader
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
