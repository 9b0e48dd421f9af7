# SPDX-License-Identifier: Apache-2.0
"""Headers of BPF objects: each program of an object has its instructions, and its own uses of maps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from targets.linux.bpf.bpf_object import read_object

MAP_LOAD, EXIT = 0x18, 0x95

OBJECT = """
#define SECTION(name) __attribute__((section(name), used))
static void *(*const look_up)(const void *map, const void *key) = (void *)1;
SECTION("maps") char first, second;
SECTION("one") int run_one(void *context) { int key = 0; return look_up(&second, &key) != 0; }
SECTION("two") int run_two(void *context) { return 7; }
SECTION("three") int run_three(void *context)
{ int key = 0; return look_up(&first, &key) || look_up(&second, &key); }
"""


def compiled(folder: Path, text: str) -> bytes:
    source, target = folder / "programs.c", folder / "programs.o"
    source.write_text(text)
    argv = ["clang", "-target", "bpf", "-O2", "-ffreestanding", "-c", str(source), "-o", str(target)]
    subprocess.run(argv, check=True)
    return target.read_bytes()


def test_programs_of_one_object_are_apart(tmp_path: Path) -> None:
    programs = read_object(compiled(tmp_path, OBJECT))
    assert set(programs) == {"one", "two", "three"}
    assert {name: [use[1] for use in uses] for name, (_, uses) in programs.items()} == {
        "one": ["second"],
        "two": [],
        "three": ["first", "second"],
    }
    for instructions, uses in programs.values():
        assert instructions[-1] & 0xFF == EXIT
        assert all(instructions[place] & 0xFF == MAP_LOAD for place, _ in uses)


def test_what_is_no_map_is_refused(tmp_path: Path) -> None:
    text = OBJECT.replace("return 7", "static volatile int count; return ++count")
    with pytest.raises(ValueError, match="refers to what is no map"):
        read_object(compiled(tmp_path, text))


def test_an_object_needs_a_program(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no program"):
        read_object(compiled(tmp_path, 'char data[] __attribute__((section("maps"))) = "x";'))
