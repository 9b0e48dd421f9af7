# SPDX-License-Identifier: Apache-2.0
"""A capability that does not exist: three rows, a template, and everything made of a run that has it.

The rows are an axis of its own, a series and a quantity.

    python -m tests.made_up_capability FOLDER

Writes the pages, the dossier's page, the trends page, the points of the store and Grafana's dashboards into
FOLDER. The rows come first, then whatever reads the tables: a capability of the tree has them in the tables.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports import quantities

quantities.AXES["valve"] = "valve"
quantities.SERIES["valves"] = quantities.Series("Valves", "How late a valve opens.", "valve")
quantities.QUANTITIES["valve_delay"] = quantities.Quantity(series="valves", has_distribution=True)

from reports import sections  # noqa: E402
from reports.record.measurement import AxisValue, Evidence, Measurement, NumberedCondition  # noqa: E402
from reports.section import PrintFigure, SampleReader, Samples, Section, TargetData, TargetView  # noqa: E402

DELAYS_NS = (*range(10_000, 20_000), 31_000)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" id="valve"><title>Valve figure</title></svg>'
TEMPLATE = """
{% macro tiles(every) %}<li>Valves: {{ every | length }}</li>{% endmacro %}
{% macro over_targets(rows) %}<h3>Valves of {{ rows | length }} targets</h3>{% endmacro %}
{% macro section(shown) %}
<h2 id="valves">Valves</h2>
{% for r in shown.records %}<p>{{ r.requirement }}: {{ r.value | measured(r.unit) }}</p>{% endfor %}
{% endmacro %}
"""
REQUIREMENTS = """
[requirements]
schema = "benchwright.requirements/2"
name = "valves"

[[requirement]]
id = "VALVE-1"
quantity = "valve_delay"
statistic = "max"
valve = "solenoid"
upper_ns = 50000
source = "nobody"
"""


@dataclass(frozen=True)
class Valves(TargetView):
    """What the section shows."""

    found: tuple[Measurement, ...]

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records."""
        return self.found

    @property
    def print_figures(self) -> Sequence[PrintFigure]:
        """Return a figure."""
        return (PrintFigure(SVG, "How late the valve opened.", "half"),)


def gather(measured: TargetData) -> Valves | None:
    """Return what a run has on valves."""
    found = tuple(record for record in measured.records if record.quantity == "valve_delay")
    return Valves(found) if found else None


def samples(run: Path) -> SampleReader:
    """Return the reader of delays."""

    def read(record: Measurement) -> Samples | None:
        if record.quantity != "valve_delay":
            return None
        delays = json.loads((run / record.evidence[0].path).read_text())
        buckets = tuple((delay, 1, 1) for delay in delays)
        return Samples(
            "opened - told to", len(delays), delays[0], sum(delays) / len(delays), delays[-1], buckets, False
        )

    return read


def main(folder: Path) -> None:
    """Make everything."""
    template = folder / "valves.html.j2"
    template.write_text(TEMPLATE)
    section = Section((("valves", "Valves"),), str(template), gather, samples)
    sections.SECTIONS = (*sections.SECTIONS, section)

    from dashboards.grafana.files import files
    from dashboards.points import run_points
    from dashboards.regressions.watched import watched
    from dashboards.store import Store
    from dashboards.trends.page import render as render_trends
    from dashboards.trends.selection import Selection
    from reports.dossier.figures import draw_figures
    from reports.dossier.gather import gather as gather_dossier
    from reports.dossier.page import dossier_page
    from reports.page.render import render_pages
    from reports.run.folder import RunFolder
    from tests.dashboards.runs import record
    from tests.reports.dossier.sample import INSTRUMENTS, add_bench_facts
    from tests.reports.sample_run import ask

    run = RunFolder.create(folder / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    kept = run.evidence_folder("requirements") / "valves.toml"
    kept.write_text(REQUIREMENTS)
    for target in ("linux-rt", "windows"):
        ask(run, target, "valves", kept)
        run.update(target={target: {"hostname": target, "kernel": {"release": "6.12"}}})
        place = run.evidence_folder("valves", target) / "delays.json"
        place.write_text(json.dumps(DELAYS_NS))
        one = record(quantity="valve_delay", requirement="VALVE-1", value=DELAYS_NS[-1], upper=50_000)
        subject = dataclasses.replace(
            one.subject, target=target, stream=None, axes=(AxisValue("valve", "solenoid"),)
        )
        conditions = dataclasses.replace(one.conditions, numbers=(NumberedCondition("pressure_kpa", 250),))
        evidence: tuple[Evidence, ...] = (run.evidence(place),)
        run.append(
            dataclasses.replace(
                one, run_id=run.run_id, subject=subject, conditions=conditions, evidence=evidence
            )
        )
    add_bench_facts(run, INSTRUMENTS, None)
    run.close()
    for name, text in render_pages(run.path).items():
        (folder / name).write_text(text)
        (run.path / name).write_text(text)
    run.finalise()
    dossier = gather_dossier([run.path])
    (folder / "dossier.html").write_text(dossier_page(dossier, draw_figures(dossier, {run.run_id: run.path})))
    points = run_points(run, "main")
    followed = [each for point in points.points for each in watched(point.measurement, point.tags)]
    (folder / "followed.json").write_text(
        json.dumps([[each.measurement, each.field, each.tags["quantity"]] for each in followed])
    )
    with Store(folder / "store.sqlite") as store:
        store.add_run(points)
        (folder / "trends.html").write_text(render_trends(store, Selection()))
    for name, text in files().items():
        (folder / Path(name).name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
