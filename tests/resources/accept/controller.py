# SPDX-License-Identifier: Apache-2.0
"""A controller whose parts are made up: `controller.py run|resume FOLDER PLAN OUTCOMES PAUSE_S`.

OUTCOMES has those of the parts by comma, each with an exit code behind a colon where it is another. It is a
program of its own, so that it can be killed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from hw.errors import BenchwrightError  # noqa: E402 - it is started as a program
from resources.accept.__main__ import go_on  # noqa: E402
from resources.accept.folder import AcceptanceFolder  # noqa: E402
from resources.accept.plan_file import Part  # noqa: E402
from resources.accept.run import Controller  # noqa: E402

PROGRAM = Path(__file__).with_name("made_up_part.py")


def main() -> int:
    """Run or resume."""
    verb, folder, plan, outcomes, pause = sys.argv[1:6]

    def command(part: Part, _profile: str, runs: Path) -> Sequence[str]:
        outcome, _, code = outcomes.split(",")[(part.number - 1) % len(outcomes.split(","))].partition(":")
        words = [
            sys.executable,
            str(PROGRAM),
            str(runs),
            str(part.number),
            outcome,
            pause,
            *filter(None, [code]),
        ]
        return ["setpriv", "--pdeathsig", "KILL", *words]

    def undo(bench: Path) -> None:
        print(f"undone {bench.name}", flush=True)

    try:
        found = (
            AcceptanceFolder.create(Path(folder), Path(plan))
            if verb == "run"
            else AcceptanceFolder.reopen(Path(folder))
        )
        return go_on(Controller(found, lambda line: print(line, flush=True), undo, command), found)
    except BenchwrightError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
