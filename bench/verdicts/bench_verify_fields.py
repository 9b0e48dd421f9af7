# SPDX-License-Identifier: Apache-2.0
"""How many changes of a capability's own evidence `verify` names without the bench's key.

    python -m bench verify_fields RUN…

Tables in `fields/`, written from the documents, say of each field which other evidence in a run holds it;
where nothing is said, its writer alone knows it. Each field that a run has is halved, doubled, negated, moved
by a year, exchanged with its like, removed; each by a hand that makes list of files, hashes and seal
anew. What is not named is listed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.lab.report import REPOSITORY, Bar, publish, say
from bench.verdicts.bench_verify import Way, all_ways, alter, form_of, hash_anew, is_named, list_anew

FIELDS = Path(__file__).parent / "fields"
YEAR_NS = 365 * 86_400 * 1_000_000_000
FOLDERS = {
    "known_delay": "daq_replay",
    "software_latency": "software_latency",
    "single_messages": "realtime_ethernet",
    "time_service": "clock_sync",
}
"""Of each capability's evidence in a run."""


@dataclass(frozen=True)
class Field:
    """A field of evidence; `held_by` is empty where its writer alone knows it."""

    capability: str
    file: str
    key: str
    held_by: str


@dataclass(frozen=True)
class FieldChange:
    """A change of a field, and what makes it in a run folder."""

    field: Field
    what: str
    make: Callable[[Path], None]


def load_fields() -> list[Field]:
    """Return the fields of all capabilities."""
    return [
        Field(table.stem, each["file"], each["key"], each.get("held_by", ""))
        for table in sorted(FIELDS.glob("*.toml"))
        for each in tomllib.loads(table.read_text("utf-8"))["field"]
    ]


def ways_of_key(document: Any, key: str) -> list[Way]:
    """Return the ways to the values of a dotted key; `*` stands for each of a list."""
    steps = key.split(".")
    return [way for way in all_ways(document) if _is_of(way, steps)]


def _is_of(way: Way, steps: list[str]) -> bool:
    return len(way) == len(steps) and all(
        isinstance(own, int) if step == "*" else str(own) == step
        for own, step in zip(way, steps, strict=True)
    )


def value_at(document: Any, way: Way) -> Any:
    """Return what stands at a way."""
    for step in way:
        document = document[step]
    return document


def changes_of_fields(run: Path, rng: random.Random) -> Iterator[FieldChange]:
    """Yield the changes of each field that a run has, in a file and a place drawn from those that have it."""
    for field in load_fields():
        having: list[tuple[str, Way, list[Any]]] = []
        for path in sorted((run / "evidence" / FOLDERS[field.capability]).rglob(field.file)):
            document = _read(path)[1]
            ways = ways_of_key(document, field.key)
            values = [value_at(document, way) for way in ways]
            having += [(path.relative_to(run).as_posix(), way, values) for way in ways]
        if having:
            yield from _changes(field, *rng.choice(having))


def _changes(field: Field, name: str, way: Way, values: list[Any]) -> Iterator[FieldChange]:
    def change(what: str, new: Callable[[Any], Any] | None) -> FieldChange:
        place = f"{name}: {'.'.join(map(str, way))} {what}"
        return FieldChange(field, place, lambda run: change_document(run / name, way, new))

    is_time = "tai" in field.key
    yield change("removed", None)
    others = [value for value in values if type(value) is str]
    if others:
        yield change("another word", lambda value: f"{value}x")
        yield change("exchanged", lambda value: next((each for each in others if each != value), f"{value}y"))
        return
    yield change("halved", lambda value: value // 2 if isinstance(value, int) else value / 2)
    yield change("doubled", lambda value: value * 2)
    yield change("negated", lambda value: -value)
    if is_time:
        yield change("a year later", lambda value: value + YEAR_NS)


def _read(path: Path) -> tuple[list[str], Any]:
    """Return what comes before the last document of a file, and that."""
    lines = path.read_text("utf-8").splitlines() if path.suffix != ".json" else [path.read_text("utf-8")]
    return lines[:-1], json.loads(lines[-1])


def change_document(path: Path, way: Way, new: Callable[[Any], Any] | None) -> None:
    """Change or remove a value of the last document of a file; its form stays."""
    before, document = _read(path)
    last = path.read_text("utf-8")
    last = last if path.suffix == ".json" else last.splitlines()[-1]
    write = form_of(last, document)
    alter(document, way, new)
    end = "" if path.suffix == ".json" else "\n"
    path.write_text("".join(f"{line}\n" for line in before) + write(document) + end, "utf-8")


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="*", default=[REPOSITORY / "results" / "latest"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    key = Ed25519PrivateKey.generate()
    made: Counter[str] = Counter()
    named: Counter[str] = Counter()
    unnamed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bw-verify-") as folder:
        work, sound = Path(folder, "run"), Path(folder, "sound", "run")
        for run in options.runs:
            shutil.rmtree(sound, ignore_errors=True)
            shutil.copytree(run.resolve(), sound)
            list_anew(sound)
            hash_anew(sound, key, "")
            if is_named(sound, None, pages=False):
                say(f"{run}: named as it is")
                return 1
            for change in changes_of_fields(sound, random.Random(options.seed)):
                shutil.rmtree(work, ignore_errors=True)
                shutil.copytree(sound, work)
                before = {path: path.read_bytes() for path in work.rglob("evidence/**/*") if path.is_file()}
                change.make(work)
                if all(path.read_bytes() == text for path, text in before.items()):
                    continue  # half of nothing is nothing
                list_anew(work)
                hash_anew(work, key, "")
                kind = "held" if change.field.held_by else "single"
                name = f"{change.field.capability}_{kind}"
                made[name] += 1
                is_so = is_named(work, None, pages=False)
                named[name] += is_so
                if not is_so:
                    unnamed.append(f"{name}: {change.what}")
                    say(f"not named: {unnamed[-1]}")
    figures = {f"{name}_share": named[name] / count for name, count in sorted(made.items())}
    figures |= {f"{name}_changes": float(count) for name, count in sorted(made.items())}
    bars = {name: Bar(0.9, at_least=True) for name in figures if name.endswith("_held_share")}
    return publish("verify_fields", figures, bars, {"unnamed": unnamed})
