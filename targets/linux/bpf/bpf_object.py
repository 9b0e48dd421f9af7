# SPDX-License-Identifier: Apache-2.0
"""Make a C header of a BPF object: `python3 bpf_object.py OBJECT NAME HEADER`.

Each section of the object that holds code is one program. The header has, for each, its instructions and
where they refer to which map: the loader puts descriptors there. So no program that loads it needs a library
for BPF, and one object serves every architecture of the same byte order.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

SYMBOL, RELOCATIONS, R_BPF_64_64 = 2, 9, 1
PROGRAM_BITS, EXECUTABLE = 1, 4
INSTRUCTION_BYTES = 8

Section = tuple[int, ...]
Program = tuple[list[int], list[tuple[int, str]]]


def main() -> None:
    """Read the object and write the header."""
    source, name, target = sys.argv[1:]
    tables = "".join(
        _tables(f"{name}_{section}", *program)
        for section, program in read_object(Path(source).read_bytes()).items()
    )
    Path(target).write_text(f'/* Made by bpf_object.py. */\n#include "bpf/port_bpf.h"\n\n{tables}')


def _tables(name: str, instructions: list[int], maps: list[tuple[int, str]]) -> str:
    """Return a program's tables in C."""
    words = "".join(f"\t0x{each:016x},\n" for each in instructions)
    uses = "".join(f'\t{{ {place}, "{map_name}" }},\n' for place, map_name in maps)
    return (
        f"static const uint64_t {name}_instructions[] = {{\n{words}}};\n"
        f"static const struct bpf_map_use {name}_uses[] = {{\n{uses}}};\n"
        f"static const struct bpf_program {name} = {{\n"
        f'\t"{name}", {name}_instructions, {len(instructions)}, {name}_uses, {len(maps)},\n}};\n'
    )


def read_object(data: bytes) -> dict[str, Program]:
    """Return the programs by their sections: instructions, and number and map's name of those with one.

    Raises:
        ValueError: The object is no little-endian ELF of 64 bits, has no program, or one refers to something
            else than maps.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a little-endian ELF of 64 bits")
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<3H", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + place * size) for place in range(count)]
    names = [_text(data, sections[names_at][4] + each[0]) for each in sections]
    programs: dict[str, Program] = {}
    for place, (name, section) in enumerate(zip(names, sections, strict=True)):
        if section[1] != PROGRAM_BITS or not section[2] & EXECUTABLE or not section[5]:
            continue
        code = data[section[4] : section[4] + section[5]]
        relocations = [each for each in sections if each[1] == RELOCATIONS and each[7] == place]
        uses = [use for each in relocations for use in _map_uses(data, sections, names, each)]
        programs[name] = ([each for (each,) in struct.iter_unpack("<Q", code)], uses)
    if not programs:
        raise ValueError("no program")
    return programs


def _map_uses(
    data: bytes, sections: list[Section], names: list[str], relocations: Section
) -> list[tuple[int, str]]:
    """Return number and map's name of the instructions that a table of relocations is about."""
    symbols = sections[relocations[6]]
    texts = sections[symbols[6]]
    uses: list[tuple[int, str]] = []
    for at in range(relocations[4], relocations[4] + relocations[5], 16):
        offset, info = struct.unpack_from("<QQ", data, at)
        if info & 0xFFFFFFFF != R_BPF_64_64:
            raise ValueError(f"instruction {offset // INSTRUCTION_BYTES}: no reference to a map")
        name, _kind, _other, section, _value, _size = struct.unpack_from(
            "<IBBHQQ", data, symbols[4] + (info >> 32) * 24
        )
        if names[section] != "maps":
            raise ValueError(f"instruction {offset // INSTRUCTION_BYTES}: refers to what is no map")
        uses.append((offset // INSTRUCTION_BYTES, _text(data, texts[4] + name)))
    return uses


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


if __name__ == "__main__":
    main()
