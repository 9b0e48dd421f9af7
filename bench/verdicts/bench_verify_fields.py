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
    "clock_sync": "clock_sync",
    "known_delay": "daq_replay",
    "provisioning": "provisioning",
    "software_latency": "software_latency",
    "single_messages": "realtime_ethernet",
    "time_service": "clock_sync",
    "timed_edges": "timed_edges",
}
"""Of each capability's evidence in a run."""


@dataclass(frozen=True)
class Field:
    """A field of evidence; `held_by` is empty where its writer alone knows it."""

    capability: str
    file: str
    key: str
    held_by: str
    line: str = ""
    """Type of the lines that have it; empty: the last of the file."""


@dataclass(frozen=True)
class FieldChange:
    """A change of a field, and what makes it in a run folder."""

    field: Field
    what: str
    make: Callable[[Path], None]


def load_fields() -> list[Field]:
    """Return the fields of all capabilities."""
    return [
        Field(table.stem, each["file"], each["key"], each.get("held_by", ""), each.get("line", ""))
        for table in sorted(FIELDS.glob("*.toml"))
        for each in tomllib.loads(table.read_text("utf-8"))["field"]
    ]


def ways_of_key(document: Any, key: str) -> list[Way]:
    """Return the ways to the values of a dotted key; `*` stands for each of a list or table."""
    steps = key.split(".")
    return [way for way in all_ways(document) if _is_of(way, steps)]


def _is_of(way: Way, steps: list[str]) -> bool:
    return len(way) == len(steps) and all(
        step in ("*", str(own)) for own, step in zip(way, steps, strict=True)
    )


def value_at(document: Any, way: Way) -> Any:
    """Return what stands at a way."""
    for step in way:
        document = document[step]
    return document


def changes_of_fields(run: Path, rng: random.Random) -> Iterator[FieldChange]:
    """Yield the changes of each field that a run has, in a file and a place drawn from those that have it."""
    for field in load_fields():
        having: list[_Place] = []
        for path in sorted((run / "evidence" / FOLDERS[field.capability]).rglob(field.file)):
            in_file = [
                (number, way, value_at(document, way))
                for number, document in _documents(path, field.line)
                for way in ways_of_key(document, field.key)
            ]
            name, values = path.relative_to(run).as_posix(), [value for _, _, value in in_file]
            having += [_Place(name, number, way, value, values) for number, way, value in in_file]
        if having:
            yield from _changes(field, rng.choice(having))


@dataclass(frozen=True)
class _Place:
    """Where a field stands: file, line, way; its value, and those of its like in that file."""

    name: str
    number: int
    way: Way
    value: Any
    values: list[Any]


def _changes(field: Field, at: _Place) -> Iterator[FieldChange]:
    def change(what: str, new: Callable[[Any], Any] | None) -> FieldChange:
        place = f"{at.name}: {'.'.join(map(str, at.way))} {what}"
        return FieldChange(field, place, lambda run: change_document(run / at.name, at.way, new, at.number))

    is_time = "tai" in field.key
    yield change("removed", None)
    others = [value for value in at.values if type(value) is str]
    if at.value is None:
        return
    if isinstance(at.value, bool):
        yield change("turned over", lambda value: not value)
        return
    if isinstance(at.value, str):
        yield change("another word", lambda value: f"{value}x")
        yield change("exchanged", lambda value: next((each for each in others if each != value), f"{value}y"))
        return
    yield change("halved", lambda value: value // 2 if isinstance(value, int) else value / 2)
    yield change("doubled", lambda value: value * 2)
    yield change("negated", lambda value: -value)
    if is_time:
        yield change("a year later", lambda value: value + YEAR_NS)


def _texts(path: Path) -> list[str]:
    """Return the documents of a file: its lines, or all of it."""
    text = path.read_text("utf-8")
    return [text] if path.suffix == ".json" else text.splitlines()


def _documents(path: Path, line: str) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a type, with their numbers; without one the last."""
    texts = _texts(path)
    for number, text in enumerate(texts) if line else [(len(texts) - 1, texts[-1])]:
        document = json.loads(text)
        if not line or document.get("type") == line:
            yield number, document


def change_document(path: Path, way: Way, new: Callable[[Any], Any] | None, number: int = -1) -> None:
    """Change or remove a value of a document of a file, of the last unless said otherwise; its form stays."""
    texts = _texts(path)
    document = json.loads(texts[number])
    write = form_of(texts[number], document)
    alter(document, way, new)
    texts[number] = write(document)
    path.write_text(texts[0] if path.suffix == ".json" else "".join(f"{text}\n" for text in texts), "utf-8")


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
