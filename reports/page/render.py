# SPDX-License-Identifier: Apache-2.0
"""The qualification page: one self-contained HTML file, made from the run folder alone.

A run with several targets has one over all of them, with the matrix of requirements, and one for each target.

The same run folder gives the same bytes, at any time and on any machine with the same packages: nothing is
read from the clock, the environment or the network.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment

from reports.durable import replace_file
from reports.page.facts import FactGroup, fact_groups
from reports.page.margins import figures_margins
from reports.page.model import Report, RunReport, gather_run
from reports.page.not_passed import NO_RECORD, not_passed
from reports.page.overview import overview_of
from reports.quantities import PART_MEANINGS
from reports.record.measurement import Measurement, Number, Outcome
from reports.run.files import PAGE, pages_of
from reports.run.folder import RunFolder
from reports.run.manifest import Manifest
from reports.run.outcome import GLOSSARY, NEXT_STEPS
from reports.run.selected import unmeasured
from reports.run.targets import page_names, targets_of
from reports.templating import template_environment
from reports.units import NO_VALUE, digits_to_tell, exact_value, format_bytes, format_measured, format_value

NOT_PASSED_SHOWN_MAX = 12
"""So many of what did not pass stand under the verdict; the others are folded away."""
_PART_NS_MIN = 0.001

SYMBOLS: dict[Outcome, str] = {"pass": "✔", "fail": "✖", "inconclusive": "◐", "unset": "○", "error": "⚠"}


def render(path: Path, added: Mapping[str, bytes] | None = None) -> str:
    """Return the page of a run folder, over all its targets; see `render_pages`."""
    found = gather_run(path, added)
    return _render_run(path, found, _pages_of_targets(PAGE, found), PAGE)


def render_pages(
    path: Path, added: Mapping[str, bytes] | None = None, page: str = PAGE, *, as_it_is: bool = False
) -> dict[str, str]:
    """Return the pages of a run folder by the names of their files, that of the run first.

    Args:
        path: The run folder.
        added: Files that are about to be added to it, by their name.
        page: Name of the run's page; those of its targets, where it has several, are named after it.
        as_it_is: That its sums are missing counts; else the page is the one it has, or gets, with its sums.

    Raises:
        RunFolderError: It cannot be read.
    """
    found = gather_run(path, added, as_it_is=as_it_is)
    names = _pages_of_targets(page, found)
    pages = {page: _render_run(path, found, names, page)}
    known = found.whole.manifest.target
    for report in found.targets:
        facts = _target_facts({report.target: known.get(report.target, {})})
        pages[names[report.target]] = _render_report(report, facts, page)
    return pages


def _pages_of_targets(page: str, found: RunReport) -> dict[str, str]:
    return page_names(page, [report.target for report in found.targets])


def _render_run(path: Path, found: RunReport, names: Mapping[str, str], page: str) -> str:
    """Render the page of a run: of several targets the one before theirs, `names`."""
    manifest = found.whole.manifest
    if not found.targets:
        return _render_report(found.whole, _facts(manifest), "")
    overview = overview_of(path, found, names)
    template = _environment().get_template("overview.html.j2")
    return template.render(
        report=found.whole,
        overview=overview,
        margins=figures_margins(found.targets),
        not_passed=not_passed(found.targets, names),
        run_page=page,
        symbols=SYMBOLS,
        headline=f"{overview.says} {headline(found.whole)}",
        facts=_host_facts(manifest),
    )


def page_files(path: Path) -> tuple[str, ...]:
    """Return the names of the pages of a run folder, that of the run first; raises RunFolderError."""
    run = RunFolder.open(path)
    targets = targets_of(run.path, run.manifest, run.records().measurements)
    return pages_of(targets)


def _render_report(report: Report, facts: list[FactGroup], run_page: str) -> str:
    """Render the page of one target; `run_page`: name of the page over all targets, empty: there is none."""
    return (
        _environment()
        .get_template("qualification.html.j2")
        .render(
            report=report,
            overview=None,
            margins=figures_margins((report,)),
            not_passed=not_passed((report,), {}),
            run_page=run_page,
            symbols=SYMBOLS,
            meanings=PART_MEANINGS,
            headline=headline(report),
            facts=facts,
        )
    )


@functools.cache
def _environment() -> Environment:
    """Return the templates' environment: each is compiled once in a process."""
    environment = template_environment(
        "reports.page.render",
        {
            "value": format_value,
            "measured": format_measured,
            "digits_to_tell": _digits_of,
            "exact": exact_value,
            "size": format_bytes,
            "percent": format_percent,
            "part_value": format_part,
            "utc": format_utc,
        },
    )
    cast("dict[str, object]", environment.globals).update(
        next_steps=NEXT_STEPS, glossary=GLOSSARY, shown_max=NOT_PASSED_SHOWN_MAX, no_record=NO_RECORD
    )
    return environment


def _facts(manifest: Manifest) -> list[FactGroup]:
    """Return the facts of targets, host and tools; long lists come last."""
    groups = _target_facts(manifest.target) + _host_facts(manifest)
    return sorted(groups, key=lambda group: group.folded)


def _target_facts(found: Mapping[str, Any]) -> list[FactGroup]:
    groups: list[FactGroup] = []
    plain = {key: value for key, value in found.items() if not isinstance(value, dict)}
    if plain or not found:
        groups += fact_groups("Target", plain)
    for kind, facts in found.items():
        if isinstance(facts, dict):
            groups += fact_groups(f"Target {kind}", cast("dict[str, Any]", facts))
    return sorted(groups, key=lambda group: group.folded)


def _host_facts(manifest: Manifest) -> list[FactGroup]:
    groups = fact_groups("Host", manifest.host) + fact_groups("Tools", manifest.tools)
    return sorted(groups, key=lambda group: group.folded)


def write_page(path: Path) -> Path:
    """Render the pages of a run folder that is being finalised into it; return the run's.

    Raises:
        RunFolderError: It cannot be read or written.
    """
    for name, text in render_pages(path).items():
        replace_file(path / name, text.encode())
    return path / PAGE


BEYOND = "beyond the limit by more than the uncertainty, or more loss than allowed"


def headline(report: Report) -> str:
    """Return the verdict in one sentence, and how much less was measured than asked in another."""
    less = unmeasured(report.states)
    return f"{_verdict_sentence(report)} Requirements: {less}." if less else _verdict_sentence(report)


def _verdict_sentence(report: Report) -> str:
    total = len(report.records)
    counts = report.counts
    if total == counts.get("unset", 0):
        return "Nothing was measured."
    alone = total == 1
    many_meet = f"All {total} measured values meet their limits"
    all_meet = "The only measured value meets its limit" if alone else many_meet
    unproven = [check for check in report.checks if check.outcome != "pass"]
    if unproven and counts["pass"] == total:
        return f"{all_meet}, but the bench did not pass its own check."
    if report.outcome == "pass":
        return f"{all_meet} with the whole guard band U."
    words = {
        "fail": f"{'fails' if alone else 'fail'} ({BEYOND})",
        "error": "could not be judged",
        "inconclusive": "could not be decided",
        "unset": "have no value",
    }
    parts = [f"{counts[outcome]} {text}" for outcome, text in words.items() if counts.get(outcome)]
    if not parts:
        but = "a test failed" if report.outcome == "fail" else "not everything was measured"
        return f"{all_meet}, but {but}."
    if alone:
        return f"The only measured value {next(words[each] for each in words if counts.get(each))}."
    return f"Of {total} measured values, {', '.join(parts)} and {counts['pass']} pass."


def _digits_of(record: Measurement) -> int:
    """Return with how many digits the value of a record does not look like a limit that it is not."""
    return digits_to_tell(record.value, (record.limit.upper, record.limit.lower), record.unit)


def format_percent(share: Number | None, digits: int = 3) -> str:
    """Return a share as per cent."""
    return NO_VALUE if share is None else f"{format_measured(100 * float(share), '', digits)} %"


def format_part(value: Number, unit: str) -> str:
    """Return a part of an uncertainty; what is under a picosecond says so in place of its digits."""
    return "< 0.001 ns" if unit == "ns" and 0 < value < _PART_NS_MIN else format_value(value, unit)


def format_utc(time_utc: str | None) -> str:
    """Return an RFC 3339 time as a reader wants it, to the second."""
    return NO_VALUE if time_utc is None else f"{time_utc[:10]} {time_utc[11:19]} UTC"
