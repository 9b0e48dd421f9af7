# SPDX-License-Identifier: Apache-2.0
"""How many single changes of a real run `verify` names, though every hash is made anew.

    make bench-verify                                  # 100 changes of results/latest
    python -m tests.bench.bench_verify RUN --seed 2    # of another run, others of them

One value after the other is drawn and changed in a copy of a run folder: in a record, in a file of evidence
that records rest on, in the manifest, in a requirements file that the run keeps; hashes are made anew, the
seal stays. `worked_out_share`: changes that contradict something else in the folder, found without the seal.
The others are listed: nothing else in the folder says what the value was, and the seal alone names them.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from reports.rejudge.run import rejudge
from reports.rejudge.seal import SEAL, seal_objections
from tests.bench.report import REPOSITORY, Bar, publish

KINDS = ("record", "evidence", "manifest", "requirement")
RECORDS, MANIFEST, REQUIREMENTS = "measurements.jsonl", "run.json", "evidence/requirements"
Change = tuple[str, str, str]
"""File, place in it, value before."""


class Changer:
    """A copy of a run folder, of which one value is changed at a time."""

    def __init__(self, run: Path, folder: Path, seed: int) -> None:
        """Copy the run; `seed` decides what is changed."""
        self.run, self.copy = run, folder / "run"
        shutil.copytree(run, self.copy)
        self._rng = random.Random(seed)
        self._records = [json.loads(line) for line in (run / RECORDS).read_text().splitlines()]
        named = {each["path"] for record in self._records for each in record["evidence"]}
        self._evidence = sorted(path for path in named if path.endswith((".json", ".ndjson")))

    def change(self, kind: str) -> Change:
        """Change one value of a kind of file, and make the hashes anew."""
        records = copy.deepcopy(self._records)
        if kind == "record":
            number = self._rng.randrange(len(records))
            place, before = self._draw(records[number])
            done = (f"{RECORDS}:{number + 1}", place, before)
        elif kind == "requirement":
            done = self._requirement(self._rng.choice(sorted((self.run / REQUIREMENTS).glob("*.toml"))))
        else:
            done = self._document(MANIFEST if kind == "manifest" else self._rng.choice(self._evidence))
        for record in records:
            for each in record["evidence"]:
                if each["path"] == done[0]:
                    each["sha256"] = hashlib.sha256((self.copy / done[0]).read_bytes()).hexdigest()
        lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records]
        (self.copy / RECORDS).write_text("".join(f"{line}\n" for line in lines))
        return done

    def is_found_without_seal(self) -> bool:
        """Say whether the change contradicts something else in the folder."""
        path = self.copy / SEAL
        kept = path.read_bytes() if path.is_file() else None
        path.unlink(missing_ok=True)
        try:
            return bool(rejudge(self.copy).problems)
        finally:
            if kept is not None:
                path.write_bytes(kept)

    def restore(self, done: Change) -> None:
        """Take a change back."""
        for name in (done[0].partition(":")[0], RECORDS):
            shutil.copyfile(self.run / name, self.copy / name)

    def _document(self, name: str) -> Change:
        text = (self.run / name).read_text()
        if name.endswith(".json"):
            document = json.loads(text)
            place, before = self._draw(document)
            text = json.dumps(document, indent=1) + "\n"
        else:
            lines = text.splitlines()
            results = [number for number, line in enumerate(lines) if '"result"' in line[:40]]
            if not lines:
                return self._document(self._rng.choice(self._evidence))
            number = results[-1] if results else self._rng.randrange(len(lines))
            document = json.loads(lines[number])
            place, before = self._draw(document)
            lines[number] = json.dumps(document, separators=(",", ":"))
            text = "\n".join(lines) + "\n"
        (self.copy / name).write_text(text)
        return name, place, before

    def _requirement(self, file: Path) -> Change:
        """Change the value of a key that stands alone on its line, but no text that explains."""
        text = file.read_text()
        found = self._rng.choice(
            list(re.finditer(r'(?m)^(?!name|note|description)(\w+) = ("?)([^"\n\[#]+)\2', text))
        )
        value = found[3].strip()
        new = (
            str(int(value) + self._rng.choice((1, 10, 100)))
            if value.isdigit() and not found[2]
            else f"{value}x"
        )
        name = file.relative_to(self.run).as_posix()
        (self.copy / name).write_text(f"{text[: found.start(3)]}{new}{text[found.end(3) :]}")
        return name, found[1], value

    def _draw(self, document: Any) -> tuple[str, str]:
        """Change one of all values of a document; return its place and what it was."""
        way, before = self._rng.choice(list(_leaves(document)))
        inner = document
        for step in way[:-1]:
            inner = inner[step]
        inner[way[-1]] = self._other(before)
        return ".".join(map(str, way)), repr(before)

    def _other(self, value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + self._rng.choice((1, -1, 7, 1000, value or 3, 10**6))
        if isinstance(value, float):
            return value * self._rng.choice((1.5, 0.5, -1)) + 0.25
        return 5 if value is None else f"{value}x"


def _leaves(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        inner: list[tuple[str | int, Any]] = list(cast("dict[str | int, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    else:
        yield way, value
        return
    for key, each in inner:
        yield from _leaves(each, (*way, key))


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path, nargs="?", default=REPOSITORY / "results" / "latest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=100, help="of the four kinds of file by turns")
    options = parser.parse_args()
    run = options.run.resolve()
    begin_s = time.monotonic()
    sound = rejudge(run)
    verify_s = time.monotonic() - begin_s
    if sound.problems:
        print(f"bench_verify: {run}: {sound.problems[0]}", file=sys.stderr)
        return 1
    named = dict.fromkeys(KINDS, 0)
    worked_out = dict.fromkeys(KINDS, 0)
    once: list[Change] = []
    unnamed: list[Change] = []
    with tempfile.TemporaryDirectory(prefix="bw-verify-") as folder:
        changer = Changer(run, Path(folder), options.seed)
        for number in range(options.changes):
            kind = KINDS[number % len(KINDS)]
            done = changer.change(kind)
            is_sealed = not any(seal_objections(changer.copy))
            if changer.is_found_without_seal():
                worked_out[kind] += 1
            else:
                once.append(done)
                print(f"said once: {done[0]}: {done[1]} was {done[2]}", file=sys.stderr, flush=True)
                unnamed += [done] if is_sealed else []
            named[kind] += done not in unnamed
            changer.restore(done)
        if any(seal_objections(changer.copy)):
            raise SystemExit(f"bench_verify: {run}: the seal names an unchanged copy")
    figures = {
        "changes": float(options.changes),
        "named_share": sum(named.values()) / options.changes,
        "worked_out_share": sum(worked_out.values()) / options.changes,
        **{f"named_{kind}": float(count) for kind, count in named.items()},
        **{f"worked_out_{kind}": float(count) for kind, count in worked_out.items()},
        "records": float(sound.records),
        "verify_s": verify_s,
    }
    return publish(
        "verify", figures, {"named_share": Bar(1.0, at_least=True)}, {"unnamed": unnamed, "said_once": once}
    )


if __name__ == "__main__":
    sys.exit(main())
