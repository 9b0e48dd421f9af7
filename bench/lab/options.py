# SPDX-License-Identifier: Apache-2.0
"""The options of a benchmark, a line each: `@takes(runs=(5, "turns of each stack"))` before its `main`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

More = ParamSpec("More")
Options = argparse.Namespace
Option = tuple[int | float | str | Path, str] | Mapping[str, Any]
"""Default, whose type is the option's (False: a switch), and what it is; or what `add_argument` takes."""
Main = Callable[Concatenate[Options, More], int]


def takes(**options: Option) -> Callable[[Main[More]], Callable[More, int]]:
    """Have a `main` called with the options of the command line; its module's docstring is the help.

    Args:
        options: By name, as it is in what `main` gets.
    """

    def decorate(main: Main[More]) -> Callable[More, int]:
        @wraps(main)
        def run(*more: More.args, **by_name: More.kwargs) -> int:
            parser = argparse.ArgumentParser(
                description=main.__globals__["__doc__"], formatter_class=argparse.RawDescriptionHelpFormatter
            )
            for name, option in options.items():
                parser.add_argument(f"--{name.replace('_', '-')}", **_argument(option))
            return main(parser.parse_args(), *more, **by_name)

        return run

    return decorate


def _argument(option: Option) -> dict[str, Any]:
    if isinstance(option, Mapping):
        return dict(option)
    default, about = option
    if default is False:
        return {"action": "store_true", "help": about}
    return {"type": type(default), "default": default, "help": f"{about} (default %(default)s)".lstrip()}
