# SPDX-License-Identifier: Apache-2.0
"""Requirements files: the project's own and older ones are read whole; wrong ones are refused by field."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from reports.errors import RequirementsError
from reports.quantities import AXES
from reports.record.measurement import Limit
from reports.requirement_forms import KEPT, SCHEMA, read_set, sets_of_run
from reports.requirements import RequirementSet, merged, requirements_for
from tests.reports.dossier.sample import ROOT, requirements_text

FILES = sorted((ROOT / "robot").glob("*/requirements/*.toml"))
GOOD = requirements_text("DAQ-031", "DAQ-032")
LIMITS = {
    "upper_us": 1000,
    "upper_ns": 1,
    "upper_facts": 1,
    "lower_producers": 1,
    "upper_ppm": 1,
    "upper_ppb": 1,
    "upper_ratio": 1,
    "upper_percent": 1,
    "lower_bytes_per_s": 1,
    "upper_bytes": 1,
    "upper_segments": 1,
}
LATENCY = "one_way_latency max stream=31 upper_us=50_000 lost=2"
LARGEST = "largest_pattern max lower_producers=4"
CLOCK = "sync_offset max_abs clock='chrony' upper_ns=40_000 lock_within_s=60"
MASKED = f"{CLOCK} mask='g8272-prtc-a' mask_from_tau_s=1 mask_to_tau_s=100"
EDGES_OF_CLOCK = "sync_offset mean clock='chrony' upper_ns=40_000 samples=500"
EDGES = "edge_delay standard_deviation method='tgpio-latch' upper_ns=50 samples=1000 lost_percent=0.5"
READS = "clock_read_latency max clock='realtime' upper_ns=4440 samples=1_000_000"
PROVISIONED = "provisioning_difference max method='restore' upper_facts=0"
STACKS = "stack_latency_difference p99 under='lossy' upper_us=50 samples=1000"
OVER_BUDGET = "stack_over_budget_difference share under='idle' upper_percent=0.1 samples=1000"
OF_A_SITE = "beauty p99 method='brush' lower_producers=0 lost=1"


def text_of(*requirements: str, schema: str = SCHEMA) -> str:
    """Return a file with requirements A, B, …, each `quantity statistic key=value …`."""
    lines = ["[requirements]", f'schema = "{schema}"', 'name = "site"']
    lines += ['pattern = "daq12"'] if any("one_way" in each for each in requirements) else []
    for name, each in zip("ABC", requirements, strict=False):
        quantity, statistic, *keys = each.split()
        lines += [
            "[[requirement]]",
            f'id = "{name}"',
            f'quantity = "{quantity}"',
            f'statistic = "{statistic}"',
        ]
        lines += ['source = "a source"', *keys]
    return "\n".join(lines) + "\n"


def read(text: str) -> RequirementSet:
    return read_set(text.encode(), "site.toml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_projects_own_files_are_read_whole(file: Path):
    found = read_set(file.read_bytes(), file.name)
    document = tomllib.loads(file.read_text())
    assert (found.schema, found.name) == (SCHEMA, document["requirements"]["name"])
    for requirement, table in zip(found.requirements, document["requirement"], strict=True):
        for key in ("id", "quantity", "statistic"):
            assert getattr(requirement, key) == table[key]
        [limit] = [table[key] * factor for key, factor in LIMITS.items() if key in table]
        upper_lower = (
            (None, limit) if {"lower_producers", "lower_bytes_per_s"} & set(table) else (limit, None)
        )
        assert requirement.limit == Limit(*upper_lower, table["source"])
        assert (requirement.parts[0].upper, requirement.parts[0].lower) == upper_lower
        assert ("at most 0 facts" in requirement.text) == ("upper_facts" in table)
        subjects = [(key, str(table[key])) for key in AXES if key in table]
        assert [requirement.subject or ()] == (subjects or [()])
        for key in ("samples", "lost", "lost_percent", "lock_within_s", "mask"):
            assert getattr(requirement, key) == table.get(key, getattr(requirement, key))
        names = {name for each in requirement.parts for name in each.quantities}
        is_steered = table.get("clock") != "as-found"
        assert ("lock_time" in names) == ("lock_within_s" in table and is_steered)
        assert ("mtie" in names) == ("mask" in table)


@pytest.mark.parametrize(
    ("schema", "text", "renamed"),
    [
        ("requirements/1", LATENCY, {"lost": "allowed_lost"}),
        ("largest_pattern_requirements/1", LARGEST, {}),
        ("clock_requirements/1", MASKED, {"upper_ns": "limit_ns"}),
        ("read_latency_requirements/1", READS, {"upper_ns": "limit_ns", "samples": "reads_min"}),
        (
            "timed_edge_requirements/1",
            EDGES,
            {"upper_ns": "limit_ns", "samples": "n_required", "lost_percent": "lost_percent_max"},
        ),
        ("provisioning_requirements/1", PROVISIONED, {}),
    ],
)
def test_an_older_file_asks_the_same(schema: str, text: str, renamed: dict[str, str]):
    old = text
    for name, before in renamed.items():
        old = old.replace(f"{name}=", f"{before}=")
    found = read(text_of(old, schema=f"benchwright.{schema}"))
    assert found.requirements == read(text_of(text)).requirements
    for name, before in renamed.items():
        with pytest.raises(RequirementsError, match=rf"requirement\[1\]\.(\w+: missing|{before}: unknown)"):
            read(text_of(old))
        both = f"{text} {before}=1"
        with pytest.raises(RequirementsError, match=rf"{before}: {name} stands twice, by two names"):
            read(text_of(both, schema=f"benchwright.{schema}"))


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (LATENCY, "one way latency, max, of stream 31: at most 50 ms, at most 2 lost"),
        (CLOCK, "sync offset, max abs, of clock chrony: at most 40 µs, locked within 60 s"),
        (EDGES_OF_CLOCK, "sync offset, mean, of clock chrony: at most 40 µs, from 500 samples"),
        (STACKS, "stack latency difference, p99, of under lossy: at most 50 µs, from 1000 samples"),
        (OF_A_SITE, "beauty, p99, of method brush: at least 0 producers, at most 1 lost"),
    ],
)
def test_a_requirement_in_words(text: str, spoken: str):
    assert read(text_of(text)).requirements[0].text == spoken


def test_a_share_that_may_be_lost():
    [edges] = read(text_of(EDGES)).requirements
    [of_clock] = read(text_of(EDGES_OF_CLOCK)).requirements
    assert [one.lost_of(1999) for one in (edges, of_clock)] == [9, 0]


def test_what_a_run_keeps_is_where_it_is_looked_for(tmp_path: Path):
    folder = tmp_path / KEPT
    folder.mkdir(parents=True)
    (folder / "site.toml").write_text(GOOD)
    found = sets_of_run(tmp_path, "run-1")
    assert [(each.path, each.run_ids) for each in found] == [("evidence/requirements/site.toml", ("run-1",))]
    again = merged([*found, *sets_of_run(tmp_path, "run-2")])
    assert [each.run_ids for each in again] == [("run-1", "run-2")]


def test_a_target_is_asked_what_its_own_runs_kept_and_what_is_named():
    kept = merged([read(GOOD)])
    assert [each.id for _file, each in requirements_for(kept, [])] == ["DAQ-031", "DAQ-032"]


HEADS = [
    ("[requirements]", "[other]", "other: unknown table; known here: requirements, requirement"),
    ("[[requirement]]", "[[other]]", "other: unknown table"),
    (GOOD[GOOD.index("[[") :], "", "requirement: there must be at least one, [[requirement]]"),
    (GOOD[GOOD.index("[[") :], "[requirement]", "requirement: there must be at least one, [[requirement]]"),
    ('name = "site"', "name = 1", "requirements.name: must be a text that is not empty, found 1"),
    ('name = "site"', "", "requirements.name: missing"),
    ('pattern = "site"', "", "requirements.pattern: missing"),
    ('pattern = "site"', 'patter = "site"', "requirements.pattern: missing"),
    ("pattern =", 'role = "both"\npattern =', "requirements.role: must be one of consumer, producer, found"),
    ("pattern =", 'producers = "some"\npattern =', "requirements.producers: must be one of all, required"),
    ("requirements/2", "requirements/3", "requirements.schema: must be benchwright.requirements/2, found"),
    ("stream = 31", "stream = = 31", ""),
    ('id = "DAQ-031"', 'id = ""', "requirement[1].id: must be a text that is not empty, found ''"),
    ('"DAQ-032"', '"DAQ-031"', "requirement[2].id: 'DAQ-031' stands twice"),
    ("stream = 32", "stream = 31", "requirement[2].stream: max of 31 has a requirement already, DAQ-031"),
]


@pytest.mark.parametrize(("old", "new", "said"), HEADS)
def test_a_wrong_file_is_refused(old: str, new: str, said: str):
    assert old in GOOD
    with pytest.raises(RequirementsError) as caught:
        read(GOOD.replace(old, new, 1 if "[[" not in old else -1))
    assert str(caught.value).startswith(f"site.toml: {said}")


@pytest.mark.parametrize(
    ("good", "old", "new", "said"),
    [
        (LATENCY, "=31", "=9", "stream: must be a whole number in 10..6559, found 9"),
        (LATENCY, "=31", "='33'", "stream: must be a whole number in 10..6559, found '33'"),
        (LATENCY, "50_000", "0", "upper_us: must be a whole number in 1..3600000000, found 0"),
        (LATENCY, "us=50_000", "ns=999", "upper_ns: must be a whole number in 1000..3600000000000"),
        (LATENCY, "upper_us", "upper_ms", "upper_ms: unknown key; known here: id, lost, "),
        (LATENCY, "upper_us=50_000", "", "upper_us or upper_ns: missing"),
        (LATENCY, " lost", " upper_ns=5000 lost", "upper_ns: cannot stand beside upper_us"),
        (LATENCY, " lost=2", "", "lost: missing"),
        (LATENCY, "lost=2", "lost=-1", "lost: must be a whole number in 0..1000000000, found -1"),
        (LATENCY, "lost=2", "lost=true", "lost: must be a whole number in 0.."),
        (LATENCY, " max ", " p99 ", "statistic: must be one of max, found 'p99'"),
        (LARGEST, "=4", "=656", "lower_producers: must be a whole number in 0..655, found 656"),
        (LARGEST, "lower_producers=4", "", "lower_producers: missing"),
        (LARGEST, "max", "mean", "statistic: must be one of max, found 'mean'"),
        (CLOCK, "40_000", "0", "upper_ns: must be a whole number in 1..1000000000, found 0"),
        (CLOCK, "upper_ns=40_000", "", "upper_us or upper_ns: missing"),
        (CLOCK, "lock_within_s=60", "", "lock_within_s: missing"),
        (CLOCK, "=60", "=86_401", "lock_within_s: must be a whole number in 1..86400, found 86401"),
        (CLOCK, "max_abs", "mean", "statistic: must be one of max_abs, found 'mean'"),
        (CLOCK, "=60", "=60 mask=40", "mask: must be a text that is not empty, found 40"),
        (CLOCK, "=60", "=60 mask=''", "mask: must be a text that is not empty, found ''"),
        (CLOCK, "=60", "=60 mask_to_tau_s=4", "mask: missing; mask_from_tau_s and mask_to_tau_s are of"),
        (MASKED, "=100", "=-1", "mask_to_tau_s: must be a number in 0..1e+06, found -1"),
        (MASKED, "=100", "=0.5", "mask_to_tau_s: must be above mask_from_tau_s = 1, found 0.5"),
        (EDGES_OF_CLOCK, "mean", "peak_to_peak", "statistic: must be one of mean, max_abs, found"),
        (EDGES, "tgpio-latch", "sundial", "method: must be one of gettime-software, "),
        (EDGES, "standard_deviation", "max_abs", "statistic: must be one of mean, standard_deviation, "),
        (EDGES, "samples", "clock='chrony' samples", "clock: unknown key; known here: "),
        (EDGES, "=1000", "=3", "samples: must be a whole number in 4..1000000000, found 3"),
        (EDGES, "=0.5", "=101", "lost_percent: must be a number in 0..100, found 101"),
        (EDGES, "=0.5", "=nan", "lost_percent: must be a number in 0..100, found nan"),
        (READS, "realtime", "sundial", "clock: must be one of realtime, "),
        (READS, " max ", " p99 ", "statistic: must be one of mean, max, found 'p99'"),
        (READS, "samples=1_000_000", "", "samples: missing"),
        (PROVISIONED, "restore", "again", "method: must be one of twice, restore, power-cut, restart, "),
        (PROVISIONED, "=0", "=-1", "upper_facts: must be a whole number in 0..1000000, found -1"),
        (PROVISIONED, "upper_facts", "upper_ns", "upper_facts: missing"),
        (OF_A_SITE, "lost", "clock='c' lost", "method: cannot stand beside clock"),
        (
            OF_A_SITE,
            "lower_producers=0",
            "",
            "upper_us or upper_ns or upper_facts or lower_producers",
        ),
        (STACKS, "p99", "max", "statistic: must be one of median, p99, found 'max'"),
        (STACKS, "under='lossy'", "", "under: missing"),
        (STACKS, "=50", "=0", "upper_us: must be a whole number in 1..1000000, found 0"),
        (OVER_BUDGET, "=0.1", "=0", "upper_percent: must be a number in 0.001..100, found 0"),
        (OVER_BUDGET, "share", "p99", "statistic: must be one of share, found 'p99'"),
        (OF_A_SITE, "lost", "loss", "loss: unknown key; known here: beside, clock, device, id, "),
    ],
)
def test_a_wrong_requirement_is_refused_by_field_and_range(good: str, old: str, new: str, said: str):
    assert old in good
    read(text_of(good))
    with pytest.raises(RequirementsError) as caught:
        read(text_of(LARGEST if "largest" not in good else OF_A_SITE, good.replace(old, new, 1)))
    assert str(caught.value).startswith(f"site.toml: requirement[2].{said}")


def test_nothing_is_asked_twice_but_of_what_the_table_does_not_know():
    assert len(read(text_of(OF_A_SITE, OF_A_SITE)).requirements) == 2
    assert len(read(text_of(EDGES, EDGES.replace("standard_deviation", "mean"))).requirements) == 2
    for twice, said in (
        (CLOCK, "requirement[2].clock: max_abs of chrony has a requirement already, A"),
        (LARGEST, "requirement[2].quantity: max of largest_pattern has a requirement already, A"),
    ):
        with pytest.raises(RequirementsError) as caught:
            read(text_of(twice, twice))
        assert str(caught.value) == f"site.toml: {said}"


def test_a_byte_order_mark_is_no_content() -> None:
    text = text_of(CLOCK)
    assert read_set(text.encode("utf-8-sig"), "site.toml").requirements == read(text).requirements


def test_a_clock_that_nothing_steers_has_no_lock_to_wait_for() -> None:
    """So that it lacks none in a dossier, also where an older file names a deadline."""
    [requirement] = read(text_of(CLOCK.replace("chrony", "as-found"))).requirements
    assert [part.name for part in requirement.parts] == ["sync_offset max_abs"]
    assert "locked" not in requirement.text
