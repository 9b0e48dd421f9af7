# SPDX-License-Identifier: Apache-2.0
"""The environment of all templates: what is unknown is an error, and text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined

_REPORTS = Path(__file__).resolve().parent


def template_environment(package: str, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """Return an environment for the templates of a package, and for those of sections by their paths."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), FunctionLoader(_at_path)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cast("dict[str, object]", environment.filters).update(filters)
    return environment


def _at_path(name: str) -> str | None:
    """Return the template at a path from `reports/`, or at an absolute one."""
    path = _REPORTS / name
    return path.read_text(encoding="utf-8") if path.is_file() else None
