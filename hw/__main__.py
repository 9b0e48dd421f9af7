# SPDX-License-Identifier: Apache-2.0
"""The commands of the bench: `python -m hw COMMAND`. Exit codes: docs/exit-codes.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hw import clean, doctor
from hw.errors import BenchwrightError


@dataclass(frozen=True)
class Command:
    """A subcommand: its name, its help, how it declares arguments and how it runs."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = (
    Command("doctor", "list what this machine and a bench can measure", doctor.add_arguments, doctor.run),
    Command("clean", "undo what a killed run has left on this machine", clean.add_arguments, clean.run),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m hw", description="Commands of the bench.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = commands.add_parser(command.name, help=command.help, description=command.help)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    arguments = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough: `python -m hw doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BenchwrightError as error:
        print(f"{parser.prog} {arguments.command}: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
