# SPDX-License-Identifier: Apache-2.0
"""`python -m dashboards`: import runs into the local store, deliver them to InfluxDB, show how it stands.

Exit codes: 0 done; 1 rows were set aside, or wait behind another delivery; 2 bad input; 5 the store cannot be
written, or the server takes nothing (the points wait on).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from dashboards.branch import CLASSES, branch_class
from dashboards.delivery import Endpoint, Pace, deliver, load_endpoint
from dashboards.delivery.endpoint import ENDPOINT_VARIABLE
from dashboards.errors import DeliveryError, StoreError
from dashboards.grafana.command import add_grafana
from dashboards.points import unix_ns
from dashboards.regressions.command import add_command as add_advise
from dashboards.run_import import import_path
from dashboards.runs_command import add_runs
from dashboards.store import DEFAULT_STORE, Status, Store
from dashboards.trends.command import add_trends
from hw.errors import BenchwrightError, ConfigError
from reports.errors import RecordError
from reports.units import NS_PER_S

DONE, LEFT_OVER = 0, 1
_FOLLOW_S = 5.0
_FOLLOW_MAX_S = 300.0
"""Between two tries of a service whose last ones had an answer that stays the same."""
_ASKED_MAX_S = 86_400.0
"""A service is not held off for longer by a server's wrong date."""
_SHOWN_S = 10.0
_PROVE_S = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except BenchwrightError as error:
        print(f"dashboards: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return DONE if options.action is _deliver and options.follow else LEFT_OVER


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    imports = commands.add_parser(
        "import", help="put run folders, or RTC-Testbench's statistics, into the store"
    )
    imports.add_argument(
        "paths", nargs="+", type=Path, metavar="RUN", help="run folder, or file of statistics"
    )
    imports.add_argument(
        "--branch", choices=CLASSES, help="class of the branch (default: as stored, or adhoc)"
    )
    imports.add_argument(
        "--branch-of-job", action="store_true", help="class of the branch from this job's environment"
    )
    imports.add_argument(
        "--time", help="start of the run, for statistics without a time: 2026-01-31T12:00:00Z"
    )
    imports.add_argument("--utc", action="store_true", help="times of statistics are UTC, not TAI")
    imports.set_defaults(action=_import)
    delivers = commands.add_parser("deliver", help="send what waits to InfluxDB")
    delivers.add_argument("--endpoint", type=Path, help=f"endpoint file (default: ${ENDPOINT_VARIABLE})")
    delivers.add_argument(
        "--give-up-s", type=float, default=60.0, help="end after so long without an acceptance (default 60)"
    )
    delivers.add_argument(
        "--lines", type=int, default=Pace().lines_max, help="points a request (default 5000)"
    )
    delivers.add_argument("--follow", action="store_true", help="go on for ever, as a service")
    delivers.add_argument("--rejected", action="store_true", help="try rows once more that were set aside")
    delivers.add_argument(
        "--check-all", action="store_true", help="read back everything, not only the last 30 days' deliveries"
    )
    delivers.add_argument("--again", action="store_true", help="send everything once more, to a new server")
    delivers.set_defaults(action=_deliver)
    status = commands.add_parser("status", help="show what is stored, waits, and was set aside and why")
    status.add_argument("--json", action="store_true", help="as one JSON object")
    status.set_defaults(action=_status)
    advises = add_advise(commands)
    for command in (imports, delivers, status, advises, add_runs(commands)):
        command.add_argument(
            "--store", type=Path, default=DEFAULT_STORE, help=f"the store's file (default {DEFAULT_STORE})"
        )
    add_grafana(commands)
    add_trends(commands)
    return parser


def _import(options: argparse.Namespace) -> int:
    branch: str | None = branch_class(os.environ) if options.branch_of_job else options.branch
    start_ns = None
    if options.time is not None:
        try:
            start_ns = unix_ns(options.time)
        except RecordError as error:
            raise ConfigError(f"--time: {error}") from error
    with Store(options.store) as store:
        for path in options.paths:
            run, change = import_path(store, path, branch, start_ns=start_ns, tai=not options.utc)
            print(f"{change:<9} {run.run_id}  {run.outcome}  {len(run.points)} points  {path}")
    return DONE


def _deliver(options: argparse.Namespace) -> int:
    name: str | None = options.endpoint or os.environ.get(ENDPOINT_VARIABLE)
    if not name:
        raise ConfigError(
            f"deliver: which server? --endpoint FILE or ${ENDPOINT_VARIABLE}; see docs/store.md"
        )
    endpoint = load_endpoint(Path(name), os.environ)
    if options.lines < 1 or options.give_up_s < 0:
        raise ConfigError("deliver: need --lines >= 1 and --give-up-s >= 0")
    pace = Pace(
        lines_max=options.lines,
        give_up_s=options.give_up_s,
        read_back_days=None if options.check_all else Pace().read_back_days,
    )
    with Store(options.store, create=False) as store:
        if options.rejected or options.again:
            store.wait_again(rejected=options.rejected, delivered=options.again)
        rejected = (
            _deliver_for_ever(store, endpoint, pace) if options.follow else _once(store, endpoint, pace)
        )
    return LEFT_OVER if rejected else DONE


def _once(store: Store, endpoint: Endpoint, pace: Pace) -> int:
    done = deliver(store, endpoint, pace, _sparing())
    words = [f"{done.delivered} points delivered to {endpoint.name}"]
    if done.rejected:
        words.append(f"{done.rejected} rows set aside, see `status`")
    if done.lost:
        words.append(f"{done.lost} that it had lost sent again")
    if done.unproven:
        words.append(f"could not be read back: {done.unproven}")
    print("; ".join(words))
    return done.rejected


def _deliver_for_ever(store: Store, endpoint: Endpoint, pace: Pace) -> NoReturn:
    say = _sparing()
    proven_at = time.monotonic() - _PROVE_S
    again_s = _FOLLOW_S
    while True:
        pause_s = _FOLLOW_S
        try:
            if store.status().waiting or time.monotonic() - proven_at >= _PROVE_S:
                _once(store, endpoint, pace)
                proven_at = time.monotonic()
            again_s = _FOLLOW_S
        except (DeliveryError, StoreError) as error:
            if isinstance(error, StoreError) and not error.may_pass:
                raise
            if isinstance(error, StoreError) or error.is_final:
                pause_s, again_s = again_s, min(2 * again_s, _FOLLOW_MAX_S)
            if isinstance(error, DeliveryError):
                pause_s = max(pause_s, min(error.retry_after_s, _ASKED_MAX_S))
            say(f"{error}; once more in {pause_s:.0f} s")
        time.sleep(pause_s)


def _sparing() -> Callable[[str], None]:
    """Return a way to say failures on stderr, not more often than every ten seconds."""
    said_at = [-_SHOWN_S]

    def say(text: str) -> None:
        if time.monotonic() - said_at[0] >= _SHOWN_S:
            said_at[0] = time.monotonic()
            print(f"dashboards: {text}", file=sys.stderr, flush=True)

    return say


def _status(options: argparse.Namespace) -> int:
    with Store(options.store, create=False) as store:
        status, changed = store.status(), store.changed_runs()
    if options.json:
        print(json.dumps({**asdict(status), "changed": changed}))
    else:
        print(_status_text(status, changed, options.store))
    return DONE


def _status_text(status: Status, changed: Sequence[str], path: Path) -> str:
    lines = [
        f"{path}: {status.runs} runs",
        f"  {status.waiting:>9} points wait",
        f"  {status.delivered:>9} delivered",
        f"  {status.rejected:>9} set aside",
    ]
    if status.oldest_waiting_ns is not None:
        oldest = datetime.fromtimestamp(status.oldest_waiting_ns / NS_PER_S, UTC)
        lines[1] += f", the oldest since {oldest.isoformat(timespec='seconds').replace('+00:00', 'Z')}"
    lines += [f"  {count:>9} times: {reason}" for reason, count in status.reasons]
    lines += [f"  run {run_id}: its points were changed in the file; import it again" for run_id in changed]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
