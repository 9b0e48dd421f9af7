# SPDX-License-Identifier: Apache-2.0
"""How many single changes of a real run `verify` names, by who made them and what the reader knows.

    make bench-verify                                           # results/latest
    python -m bench verify RUN --each 0 --seed 2    # of another run, every change

Changes are generated, not thought of: each key of the record's schema and of the manifest, changed and
removed; each kind of record removed, with the counts made anew; each file removed, changed; a file added to
each folder; the manifest's list of files removed, and each of its sizes changed. A file keeps its form: one
value is changed, and the size follows only where that value has another length.

Each is made by three hands: `stale` changes files only; `stranger` makes all hashes anew and seals by a fresh
key; `bench` seals by the key of the bench. For each it counts what is named where the bench's key is known
(`known`: --sealed-by) and where it is not (`unknown`). Of changed files a fourth, `lister`, makes the list of
files anew, too, as somebody would who knows of it: that figure has no bar, and says what is left then. The
bench's key of a copy is made here, so that no bench's own is needed. What is not named is listed.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.lab.report import REPOSITORY, Bar, publish, say
from reports.errors import ReportError
from reports.page.compared import pages_differ
from reports.page.render import render_pages
from reports.rejudge.run import OUTCOMES, rejudge
from reports.run.benches import TrustedSeals
from reports.run.files import write_file_list
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, changed_files, list_files, write_sums
from reports.run.manifest import count_outcomes
from reports.run.seal import ADVICE, RENEWAL, SEAL, fingerprint, seal, seal_renewal

HANDS = ("stale", "stranger", "bench")
READERS = ("known", "unknown")
RECORDS, MANIFEST, LIST = "measurements.jsonl", "run.json", "file_sizes_bytes"
SCHEMA = REPOSITORY / "reports" / "measurement.schema.json"
MADE_BY_THE_HAND = (RECORDS, MANIFEST, SEAL, RENEWAL)
"""Files that have changes of their own, or that a hand makes anew."""
Step = str | int
Way = tuple[Step, ...]


@dataclass(frozen=True)
class Change:
    """A change: of which class, where, and what makes it in a run folder."""

    kind: str
    place: str
    make: Callable[[Path], None]


def changes_of(run: Path, rng: random.Random) -> Iterator[Change]:
    """Generate the changes of a run from schema, manifest, records and list of files."""
    records = records_of(run)
    for way in schema_ways(json.loads(SCHEMA.read_text())):
        having = [(number, own) for number, record in enumerate(records) for own in ways_of(record, way)]
        if having:
            number, own = rng.choice(having)
            place = f"{RECORDS}:{number + 1}: {'.'.join(map(str, own))}"
            yield Change("record", place, lambda run, n=number, w=own: change_record(run, n, w, other))
            yield Change(
                "record", f"{place} removed", lambda run, n=number, w=own: change_record(run, n, w, None)
            )
    manifest = json.loads((run / MANIFEST).read_text())
    for name in manifest.pop(LIST, ()):  # of its own class: it would be most of the manifest's
        yield Change("listed size", f"{MANIFEST}: {LIST}: {name}", lambda run, f=name: change_size(run, f))
    if (run / MANIFEST).read_text().count(LIST):
        yield Change(
            "manifest", f"{MANIFEST}: {LIST} removed", lambda run: change_manifest(run, (LIST,), None)
        )
    for way in all_ways(manifest):
        place = f"{MANIFEST}: {'.'.join(map(str, way))}"
        yield Change("manifest", place, lambda run, w=way: change_manifest(run, w, other))
        yield Change("manifest", f"{place} removed", lambda run, w=way: change_manifest(run, w, None))
    for number, record in enumerate(records):
        what = f"{record['subject']['target']} {record['requirement']} {record['quantity']}"
        yield Change("record removed", f"{RECORDS}: {what}", lambda run, n=number: remove_record(run, n))
    files = [name for name in list_files(run) if name not in MADE_BY_THE_HAND]
    for name in files:
        yield Change("file removed", name, lambda run, f=name: (run / f).unlink())
        seed = rng.random()
        yield Change("file changed", name, lambda run, f=name, s=seed: change_file(run / f, random.Random(s)))
    for folder in sorted({str(Path(name).parent) for name in files}):
        yield Change(
            "file added", f"{folder}/added.txt", lambda run, f=folder: add_file(run / f / "added.txt")
        )


def records_of(run: Path) -> list[dict[str, Any]]:
    """Return the records of a run."""
    return [json.loads(line) for line in (run / RECORDS).read_text().splitlines()]


def write_records(run: Path, records: Iterable[Any]) -> None:
    """Write the records of a run."""
    lines = (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in records)
    (run / RECORDS).write_text("".join(f"{line}\n" for line in lines))


def schema_ways(schema: Any, way: Way = ()) -> Iterator[Way]:
    """Yield the way to each key of a JSON schema; `*` stands for an element of a list."""
    if "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from schema_ways(inner, (*way, name))
    elif "items" in schema:
        yield from schema_ways(schema["items"], (*way, "*"))
    else:
        yield way


def ways_of(document: Any, way: Way, before: Way = ()) -> Iterator[Way]:
    """Yield each way through a document that a way of the schema stands for."""
    if not way:
        yield before
    elif way[0] == "*":
        for number, item in enumerate(document):
            yield from ways_of(item, way[1:], (*before, number))
    elif way[0] in document:
        yield from ways_of(document[way[0]], way[1:], (*before, way[0]))


def all_ways(value: Any, way: Way = ()) -> Iterator[Way]:
    """Yield the way to each value of a document that holds no others."""
    inner: list[tuple[Step, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[Step, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    elif way:
        yield way
    for key, each in inner:
        yield from all_ways(each, (*way, key))


def other(value: Any) -> Any:
    """Return another value of the same type; of an outcome another outcome."""
    if value in OUTCOMES:
        return "fail" if value == "pass" else "pass"
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (abs(value) // 3 or 1)
    return 5 if value is None else f"{value}x"


def alter(document: Any, way: Way, new: Callable[[Any], Any] | None) -> None:
    """Change a value of a document, or remove it."""
    for step in way[:-1]:
        document = document[step]
    if new is None:
        del document[way[-1]]
    else:
        document[way[-1]] = new(document[way[-1]])


def change_record(run: Path, number: int, way: Way, new: Callable[[Any], Any] | None) -> None:
    """Change a value of a record, or remove it."""
    records = records_of(run)
    alter(records[number], way, new)
    write_records(run, records)


def change_manifest(run: Path, way: Way, new: Callable[[Any], Any] | None) -> None:
    """Change a value of the manifest, or remove it."""
    manifest = json.loads((run / MANIFEST).read_text())
    alter(manifest, way, new)
    (run / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")


def change_size(run: Path, name: str) -> None:
    """Change the size of a file in the manifest's list."""
    change_manifest(run, (LIST, name), other)


def remove_record(run: Path, number: int) -> None:
    """Remove a record and count anew."""
    records = records_of(run)
    del records[number]
    write_records(run, records)
    manifest = json.loads((run / MANIFEST).read_text())
    counts = count_outcomes(RunFolder.open(run).records().measurements)
    manifest["counts"] = {name: counts[name] for name in OUTCOMES}
    (run / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")


def change_file(file: Path, rng: random.Random) -> None:
    """Change a value of a file of JSON, a number of another, or add a line to one that has neither."""
    text = file.read_text(errors="surrogateescape")
    lines = text.splitlines() if file.suffix == ".ndjson" else [text]
    results = [number for number, line in enumerate(lines) if '"result"' in line[:40]]
    try:
        number = results[-1] if results else rng.randrange(len(lines))
        document = json.loads(lines[number])
        write = form_of(lines[number], document)
        alter(document, rng.choice(list(all_ways(document))), other)
        lines[number] = write(document)
        new = "\n".join(lines) + ("\n" if len(lines) > 1 or file.suffix == ".ndjson" else "")
    except (ValueError, IndexError):
        numbers = list(re.finditer(r"[0-9]+", text))
        if numbers:
            found = rng.choice(numbers)
            new = f"{text[: found.start()]}{int(found[0]) + 1}{text[found.end() :]}"
        else:
            new = f"{text}added\n"
    file.write_text(new, errors="surrogateescape")


def form_of(text: str, document: Any) -> Callable[[Any], str]:
    """Return what writes a document as this text does: indentation, separators, characters, line break.

    Raises:
        ValueError: No such form gives this text.
    """
    end = text[len(text.rstrip()) :]
    for indent in (None, 1, 2, 4):
        for separators in ((",", ":"), (", ", ": "), (",", ": ")):
            for ascii_only in (False, True):

                def write(
                    value: Any, i: int | None = indent, s: Any = separators, a: bool = ascii_only
                ) -> str:
                    return json.dumps(value, indent=i, separators=s, ensure_ascii=a) + end

                if write(document) == text:
                    return write
    raise ValueError("of no known form")


def add_file(file: Path) -> None:
    """Add a file."""
    file.write_text("added\n")


def hash_anew(run: Path, key: Ed25519PrivateKey, place: str) -> None:
    """Make all hashes of a run anew, of evidence in its records too, and seal it.

    Args:
        run: The run folder.
        key: By which it is sealed.
        place: Of the change: a hash that is the change itself stays.
    """
    records = copy.deepcopy(records_of(run))
    for record in records if not place.startswith(RECORDS) else ():
        present = [each for each in record["evidence"] if (run / each["path"]).is_file()]
        for each in present:
            each["sha256"] = hashlib.sha256((run / each["path"]).read_bytes()).hexdigest()
        record["evidence"] = present
    write_records(run, records)
    (run / RENEWAL).unlink(missing_ok=True)
    seal(run, key)
    if (run / ADVICE).is_file():
        seal_renewal(run, [ADVICE], key)
    write_sums(run)


def list_anew(run: Path) -> None:
    """Make the manifest's list of files anew."""
    (run / SUMS).unlink(missing_ok=True)
    write_file_list(RunFolder.open(run))


def is_named(run: Path, seals: TrustedSeals | None, *, pages: bool) -> bool:
    """Say whether `verify` names anything; with `seals` as where the bench's key is known."""
    try:
        if changed_files(run):
            return True
        folder = RunFolder.open(run)
        folder.records()
        if seals is not None and seals.discrepancy(run, folder.manifest):
            return True
        return bool(rejudge(run).problems) or (pages and bool(pages_differ(run)[0]))
    except (ReportError, OSError):
        return True


def counted(change: Change, sound: Path, work: Path, keys: dict[str, Ed25519PrivateKey]) -> dict[str, bool]:
    """Return whether a change is named, by hand and reader."""
    named: dict[str, bool] = {}
    seals = TrustedSeals((fingerprint(keys["bench"]),))
    is_page = change.place.endswith(".html")
    for hand in HANDS:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(sound, work)
        change.make(work)
        if hand in keys:
            try:
                hash_anew(work, keys[hand], change.place)
            except (KeyError, TypeError, ValueError, ReportError):  # a forger would not come further either
                named |= {f"{hand}_{reader}": True for reader in READERS}
                continue
        if hand == "stranger":
            # The judgement does not know by whose key a run is sealed: that of `bench` is taken below.
            named["stranger_known"] = bool(seals.discrepancy(work, RunFolder.open(sound).manifest))
            continue
        unknown = is_named(work, None, pages=is_page)
        named |= {f"{hand}_unknown": unknown, f"{hand}_known": unknown or is_named(work, seals, pages=False)}
    named.setdefault("stranger_unknown", named["bench_unknown"])
    if change.kind.startswith("file "):
        shutil.rmtree(work)
        shutil.copytree(sound, work)
        change.make(work)
        list_anew(work)
        hash_anew(work, keys["bench"], change.place)
        named["lister_unknown"] = is_named(work, None, pages=is_page)
    return named


def drawn(changes: Iterable[Change], each: int, rng: random.Random) -> list[Change]:
    """Return so many changes of each class at most; 0: all."""
    by_kind: dict[str, list[Change]] = {}
    for change in changes:
        by_kind.setdefault(change.kind, []).append(change)
    return [
        change
        for found in by_kind.values()
        for change in (rng.sample(found, each) if 0 < each < len(found) else found)
    ]


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path, nargs="?", default=REPOSITORY / "results" / "latest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=40, help="changes of each class; 0: all of them")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    keys = {hand: Ed25519PrivateKey.generate() for hand in ("stranger", "bench")}
    named: Counter[str] = Counter()
    made: Counter[str] = Counter()
    unnamed: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory(prefix="bw-verify-") as folder:
        sound, work = Path(folder, "sound", "run"), Path(folder, "run")
        shutil.copytree(options.run.resolve(), sound)
        list_anew(sound)
        hash_anew(sound, keys["bench"], "")
        for name, text in render_pages(sound).items():
            (sound / name).write_text(text)
        hash_anew(sound, keys["bench"], "")
        begin_s = time.monotonic()
        if is_named(sound, TrustedSeals((fingerprint(keys["bench"]),)), pages=True):
            found = [*rejudge(sound).problems, *pages_differ(sound)[0], *changed_files(sound)]
            say(f"{options.run}: {found[:1]}")
            return 1
        verify_s = time.monotonic() - begin_s
        for change in drawn(changes_of(sound, rng), options.each, rng):
            found = counted(change, sound, work, keys)
            made[change.kind] += 1
            for name, is_so in found.items():
                named[name] += is_so
                named[f"{change.kind}: {name}"] += is_so
                if not is_so:
                    unnamed.append((name, change.kind, change.place))
            if not found["bench_unknown"]:
                say(f"not named: {change.kind}: {change.place}")
    figures = {
        "changes": float(made.total()),
        **{
            f"{hand}_{reader}_share": named[f"{hand}_{reader}"] / made.total()
            for hand in HANDS
            for reader in READERS
        },
        **{
            f"{kind.replace(' ', '_')}_{hand}_unknown_share": named[f"{kind}: {hand}_unknown"] / count
            for kind, count in made.items()
            for hand in ("stranger", "lister")
            if hand == "stranger" or kind.startswith("file ")
        },
        "verify_s": verify_s,
    }
    bars = {
        **{f"{hand}_known_share": Bar(1.0, at_least=True) for hand in HANDS[:2]},
        **{f"{hand}_unknown_share": Bar(0.9, at_least=True) for hand in HANDS[:2]},
    }
    return publish("verify", figures, bars, {"unnamed": unnamed})
