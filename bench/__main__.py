# SPDX-License-Identifier: Apache-2.0
"""Run a benchmark by its name; an error of bench or machine ends it with its exit code (docs/exit-codes.md).

    python -m bench NAME [OPTION...]    # without a name: print all names
    python -m bench NAME --help         # what it compares, and its options

What is missing here (3) is told from what is broken, also by a benchmark that lets such errors through.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from bench.lab.catalogue import benchmark_files
from bench.lab.report import REPOSITORY
from hw.errors import BenchwrightError, ConfigError


def run(module: str, options: Sequence[str] = ()) -> int:
    """Call a module's `main`; return its exit code, or that of the error that it has let through."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what it has opened is closed then, too
    sys.argv = [module.rpartition(".")[2], *options]
    try:
        return import_module(module).main()
    except BenchwrightError as error:
        return _say(error)


def main() -> int:
    """Run the benchmark of the command line; return its exit code."""
    files = benchmark_files(REPOSITORY)
    name, *options = sys.argv[1:] or [""]
    if name in ("-h", "--help"):
        print(__doc__)
    if name in ("", "-h", "--help"):
        print("\n".join(files))
        return 0
    name = name.replace("_", "-")
    if name not in files:
        return _say(ConfigError(f"bench: no benchmark {name!r}; allowed: {' '.join(files)}"))
    return run(".".join(files[name].relative_to(REPOSITORY).with_suffix("").parts), options)


def _say(error: BenchwrightError) -> int:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
