# SPDX-License-Identifier: Apache-2.0
"""Run a benchmark so that an error of bench or machine ends it with its exit code (docs/exit-codes.md).

    python -m tests.night.benchmark MODULE

What is missing here (3) is told from what is broken, also by a benchmark that lets such errors through.
"""

from __future__ import annotations

import runpy
import sys

from hw.errors import BenchwrightError


def main() -> int:
    """Run the module as a program; return the exit code of the error that it has let through."""
    (module,) = sys.argv[1:]
    sys.argv = [module]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except BenchwrightError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
