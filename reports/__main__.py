# SPDX-License-Identifier: Apache-2.0
"""`python -m reports`: render, finish, verify and show run folders, and make dossiers of them.

Exit codes: 0 done; 1 `verify` found a difference, `stall` another reason, `clock-log` no offset, a
run of a dossier has changed; 2 bad input (one line on stderr); 3 what an
export needs is missing; 4 a run of a dossier did not come to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reports.clock_sync.log_command import add_clock_log
from reports.daq_replay.why_command import add_why
from reports.dossier.command import add_dossier, add_seals, trusted_seals
from reports.dossier.errors import DossierError
from reports.dossier.sign_command import add_sign
from reports.dossier.verify import differences, is_accepted, is_dossier, signatures
from reports.durable import replace_file
from reports.errors import MissingCapabilityError, ReportError, RunFolderError
from reports.page.compared import pages_differ
from reports.page.model import gather_run
from reports.page.not_passed import not_passed
from reports.page.overview import Overview, overview_of
from reports.page.render import PAGE, render_pages, write_page
from reports.page.renewal import renew
from reports.page.stalled import discrepancies
from reports.patterns.command import add_patterns
from reports.patterns.kept import keep_patterns, patterns_differ
from reports.record.measurement import measurement_schema
from reports.rejudge.run import rejudge
from reports.rejudge.seal import sealed_by
from reports.run.benches import BENCHES, TrustedSeals
from reports.run.files import write_file_list
from reports.run.folder import MANIFEST, RunFolder, named_run, newer_words
from reports.run.integrity import SUMS, changed_files, read_sums, sha256_file
from reports.run.outcome import BAD_INPUT, NEXT_STEPS, outcome_of
from reports.run.seal import SEAL, bench_key, fingerprint, key_file
from reports.run.selected import SKIPPED, State
from reports.timeline.export_command import add_timeline
from reports.units import format_value

BROKEN_OFF = 4
PIPE_CLOSED = 128 + 13
"""As of a program that SIGPIPE has ended."""
SCHEMA_FILE = Path(__file__).with_name("measurement.schema.json")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m reports", description="Reports made from run folders.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("render", help="write the report from the run folder alone")
    one.add_argument("run", type=named_run)
    one.add_argument(
        "--output",
        type=Path,
        help="write the page here instead of into the run folder, those of several targets beside it",
    )
    one.set_defaults(action=_render)
    check = commands.add_parser(
        "verify",
        help="find any changed byte of finalised run folders, and judge them again; of dossiers too",
    )
    check.add_argument("path", type=named_run, nargs="+", help="a run folder, or a dossier")
    check.add_argument(
        "--runs", type=named_run, nargs="+", default=[], metavar="RUN", help="run folders of the dossiers"
    )
    check.add_argument(
        "--trust",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="certificates, PEM: the dossiers have to be signed, by what leads to one of these",
    )
    add_seals(check)
    check.set_defaults(action=_verify)
    finish = commands.add_parser(
        "finish", help="write page and sums of a run whose process has died; it has no seal"
    )
    finish.add_argument("run", type=named_run)
    finish.set_defaults(action=_finish)
    key = commands.add_parser("key", help="print the fingerprint of the key by which this bench seals runs")
    key.set_defaults(action=_key)
    for name, action, text in (
        ("show", _show, "print the verdict and what did not pass"),
        (
            "stalled",
            _stalled,
            "tell whether only the stall of a simulated bench's machine left no verdict",
        ),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("run", type=named_run)
        command.set_defaults(action=action)
    add_dossier(commands)
    add_sign(commands)
    add_clock_log(commands)
    add_why(commands)
    add_timeline(commands)
    add_patterns(commands)
    schema = commands.add_parser("schema", help="write measurement.schema.json from the dataclasses")
    schema.set_defaults(action=_schema)
    options = parser.parse_args(arguments)
    try:
        if options.action is not _show:  # which says it where it says the rest
            _say_newer(options)
        code = int(options.action(options))
        print(end="", flush=True)  # to nobody, where there is no such descriptor
        return code
    except BrokenPipeError:  # the reader has seen enough: `python -m reports show | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (ReportError, OSError) as error:
        return _refused(error)
    except KeyboardInterrupt:
        print("reports: broken off", file=sys.stderr)
        return BROKEN_OFF


def _say_newer(options: argparse.Namespace) -> None:
    """Say on stderr which runs are newer than `results/latest`, where that is what a command is given."""
    for name in ("run", "path", "runs"):
        given: Path | list[Path] = getattr(options, name, [])
        for path in given if isinstance(given, list) else [given]:
            for line in newer_words(path):
                print(f"reports: {line}", file=sys.stderr)


def _refused(error: ReportError | OSError, where: str = "") -> int:
    """Say why something could not be read or written, with its path; return the exit code."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    print(f"reports: {text if where in text else f'{where}: {text}'}", file=sys.stderr)
    return error.exit_code if isinstance(error, DossierError | MissingCapabilityError) else BAD_INPUT


def _render(options: argparse.Namespace) -> int:
    """Render the pages; of a finalised run only their own lines of the sums are renewed."""
    run: Path = options.run
    if options.output is not None:
        for name, text in render_pages(run, page=options.output.name, as_it_is=True).items():
            replace_file(options.output.with_name(name), text.encode())
        print(options.output)
        return 0
    renew(run)
    print(run.resolve() / PAGE)
    return 0


def _finish(options: argparse.Namespace) -> int:
    """Finish what a kill has left; only the process that measured could vouch for it by the bench's seal."""
    run = RunFolder.open(options.run)
    if run.finalised:
        print(f"{options.run}: finalised already")
        return 0
    run.hold()
    if run.fix() is not None:
        run.add_problem("the run was killed while it wrote a record; its torn line is kept")
    run.close_afterwards()
    run.update(outcome=outcome_of(run, finalising=True).outcome)
    (run.path / SEAL).unlink(missing_ok=True)
    if why := keep_patterns(run.path, run.manifest.profile):
        print(f"reports: patterns were not searched: {why}", file=sys.stderr)
    write_file_list(run)
    write_page(run.path)
    run.finish()
    print(f"{run.path / PAGE}: written afterwards; the run has its sums, and no seal")
    return 0


def _verify(options: argparse.Namespace) -> int:
    paths: list[Path] = options.path
    dossiers = [path for path in paths if is_dossier(path)]
    if bool(dossiers) != bool(options.runs):
        raise DossierError(
            "verify: a dossier needs its run folders: --runs RUN…; run folders alone need none"
        )
    seals = trusted_seals(options)
    results: list[int] = []
    for path in paths:
        try:
            results.append(
                _verify_dossier(path, options.runs, options.trust, seals)
                if path in dossiers
                else _verify_run(path, len(paths) > 1, seals)
            )
        except BrokenPipeError:
            raise
        except (ReportError, OSError) as error:  # the others are looked at all the same
            results.append(_refused(error, str(path)))
    return max(results)


def _verify_run(run: Path, named: bool, seals: TrustedSeals | None) -> int:
    problems = changed_files(run)
    if not problems:
        RunFolder.open(run).records()
        found = rejudge(run)
        problems = list(found.problems)
        manifest = RunFolder.open(run).manifest
        discrepancy = seals.discrepancy(run, manifest) if seals is not None else ""
        if discrepancy and discrepancy not in problems:
            problems.append(discrepancy)
        pages = ""
        if not problems:
            problems, pages = pages_differ(run)
        if not problems and not pages:  # made by this installation
            problems = patterns_differ(run, manifest)
        if not problems:
            print(f"{run}: {len(read_sums(run))} files unchanged; {SUMS} is {sha256_file(run / SUMS)}")
            print(
                f"  {found.records} records are consistent; {found.worked_out} worked out again from raw data"
            )
            key = sealed_by(run)
            print(f"  {_seal_words(key, seals.bench_of(key, manifest) if seals else '')}")
            print(f"  {pages or 'pages rendered again: the same bytes'}")
            if manifest.file_sizes_bytes is None:
                print(f"  its files are not listed in {MANIFEST}: of a version before the list")
            return 0
    for problem in problems:
        print(f"{run}: {problem}" if named else problem)
    return 1


def _key(_options: argparse.Namespace) -> int:
    print(fingerprint(bench_key(key_file())))
    return 0


def _seal_words(found: str, bench: str) -> str:
    """Say who has sealed a run: a bench of the list, this one, or one whose fingerprint is to be compared."""
    if bench:
        return f"sealed by {bench}, of the list of benches: {found}"
    if not found:
        return "not sealed: what the raw data says once could have been changed"
    path = key_file()
    try:
        own = path.exists() and found == fingerprint(bench_key(path))
    except RunFolderError:
        own = False
    return f"sealed by {'this bench' if own else 'another bench; compare its fingerprint'}: {found}"


def _verify_dossier(path: Path, runs: list[Path], trust: list[Path], seals: TrustedSeals | None) -> int:
    problems = differences(path, runs, trust, seals)
    for problem in problems:
        print(f"{path}: {problem}")
    if not problems:
        count = "1 run gives" if len(runs) == 1 else f"{len(runs)} runs give"
        print(f"{path}: what its {count}, byte for byte; SHA-256 {sha256_file(path)}")
        for one in signatures(path, trust):
            known = (
                "its certificate is trusted" if one.trusted else "whose certificate it is was not looked at"
            )
            print(f"  signed by {one.signer}, {one.time}; {known}: SHA-256 {one.certificate_sha256}")
            for remark in one.remarks:
                print(f"    {remark}")
    if problems:
        return 1
    if seals is not None:
        print("  each run has the seal of a bench that was named or listed")
        return 0
    print("  seals: unchecked")
    if is_accepted(path):
        beside = key_file().with_name(BENCHES)
        raise DossierError(
            f"{path}: it reads accepted, and its list of benches is its writer's: name the key of the bench"
            f" (--sealed-by FINGERPRINT) or your own list (--benches FILE, default {beside})"
        )
    return 0


def _show(options: argparse.Namespace) -> int:
    for line in newer_words(options.run):
        print(line)
    found = gather_run(options.run, as_it_is=True)
    report = found.whole
    manifest = report.manifest
    simulated = "  SIMULATED" if report.simulated else ""
    print(f"{report.outcome.upper()}{simulated}  {manifest.run_id}  {manifest.bench}  {manifest.profile}")
    print("  values: " + (_counted(report.counts) or "none"))
    print("  requirements: " + (_counted(report.states) or "none"))
    if report.worst is not None:
        r = report.worst
        of = f"stream {r.subject.stream}" if r.subject.stream else r.quantity.replace("_", " ")
        what = ", ".join(filter(None, (r.requirement, of, r.subject.target if found.targets else "")))
        print(f"  worst margin {format_value(r.margin, r.unit)}: {what}")
    if found.targets:
        _show_targets(overview_of(options.run, found, {each.target: "" for each in found.targets}))
    of_targets = found.targets or (report,)
    rows = [
        _Row(
            missed.state,
            missed.target,
            missed.requirement,
            "; ".join(filter(None, (missed.reason, missed.cause))),
        )
        for missed in not_passed(of_targets, {})
    ]
    rows += [
        _Row(standing.state, each.target, name, standing.reason)
        for each in of_targets
        for name, standing in each.unmeasured
        if standing.state == SKIPPED
    ]
    _show_rows(rows)
    for problem in report.problems:
        print(f"  problem      {problem}")
    if report.outcome != "pass":
        print(f"  what now?    {NEXT_STEPS}")
    return 0


class _Row(NamedTuple):
    """A requirement without a pass; which state, of which target, and why."""

    state: State
    target: str
    requirement: str
    why: str


def _show_rows(rows: Sequence[_Row]) -> None:
    """Print a line for each reason, where its first requirement stands, and how many more have the same."""
    by_reason: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        key = (row.state, row.target, row.why or f"of {row.requirement}")
        by_reason.setdefault((*key, row.why), []).append(row.requirement)
    for (state, target, _key, why), names in by_reason.items():
        of = f"{target}  " if target else ""
        further = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print(f"  {state:<12} {of}{names[0]}{further}  {why}")


def _counted(counts: Mapping[Any, int]) -> str:
    """Return counts by state in words, without states of none."""
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _show_targets(overview: Overview) -> None:
    """Print a line for each target: verdict, counts, worst margin."""
    for row in overview.targets:
        report = row.report
        words = [_counted(report.counts)] if report.records else []
        words += [f"requirements: {_counted(report.states)}"] if report.states else []
        if report.worst is not None and report.worst_share is not None:
            share = f"{100 * report.worst_share:.3g} % {report.worst.requirement}"
            words.append(f"worst margin {share}")
        said = "; ".join(words) or "nothing was measured"
        print(f"  {report.outcome:<12} target {report.target}: {said}")


def _stalled(options: argparse.Namespace) -> int:
    found = discrepancies(options.run)
    for line in found:
        print(line)
    if not found:
        print(f"{options.run}: nothing but the stall of its machine kept this run from a verdict")
    return 1 if found else 0


def _schema(_options: argparse.Namespace) -> int:
    text = json.dumps(measurement_schema(), indent=1) + "\n"
    replace_file(SCHEMA_FILE, text.encode())
    print(SCHEMA_FILE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
