"""Proteins and DNA: FASTA files, the secondary structure of proteins, splice junctions."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

from keras_transformer.data.text_files import iterate_lines

STRUCTURES = "CEH"  # coil, strand, helix
UNRESOLVED = "-"  # the structure of a residue that the experiment did not see
PARTS = ("train", "validation", "test")


def read_fasta(lines: Iterable[str], source: str | Path = "FASTA") -> dict[str, str]:
    """The sequence of each header, which follows ">" above the lines of its sequence.

    Args:
        lines: of a FASTA file.
        source: what an error calls it.

    Raises:
        ValueError: if a line stands before any header, or a header comes twice.
    """
    found: dict[str, list[str]] = {}
    header = None
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if line.startswith(">"):
            header = line[1:].strip()
            if header in found:
                raise ValueError(f"{source}, line {number}: the header {header!r} comes twice")
            found[header] = []
        elif line:
            if header is None:
                raise ValueError(f"{source}, line {number} must be a header, got {line!r:.60}")
            found[header].append(line)
    return {header: "".join(parts) for header, parts in found.items()}


def read_structures(path: str | Path) -> dict[str, list[tuple[str, str]]]:
    """Proteins and their secondary structure, of FLIP's `splits.zip` (Dallago et al. 2021).

    Args:
        path: of the archive; in it `sequences.fasta`, `mask.fasta`, 1 where a residue is resolved,
            and `sampled.fasta`, whose headers tell the part.

    Returns:
        "train", "validation" and "test": residues and structures, as many letters each; a
        structure is H (helix), E (strand), C (coil) or `UNRESOLVED`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such archive, or the three files differ.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sequences, masks, labels = (
                read_fasta(archive.read(f"splits/{name}.fasta").decode().splitlines(), name)
                for name in ("sequences", "mask", "sampled")
            )
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no archive of FLIP's structures: {error}") from error
    parts: dict[str, list[tuple[str, str]]] = {part: [] for part in PARTS}
    for header, structure in labels.items():
        name, *facts = header.split()
        facts = dict(fact.partition("=")[::2] for fact in facts)
        part = "validation" if facts.get("VALIDATION") == "True" else facts.get("SET")
        residues, mask = sequences.get(name, ""), masks.get(name, "")
        if part not in parts or not len(residues) == len(mask) == len(structure) > 0:
            raise ValueError(f"{path}: {header!r} must have a part, residues and a mask, as long")
        if unknown := sorted(set(structure) - set(STRUCTURES)):
            raise ValueError(f"{path}: {header!r} must be of {STRUCTURES!r}, got {unknown[0]!r}")
        seen = zip(structure, mask, strict=True)
        structure = "".join(x if resolved == "1" else UNRESOLVED for x, resolved in seen)
        parts[part].append((residues, structure))
    if empty := [part for part, rows in parts.items() if not rows]:
        raise ValueError(f"{path} must have proteins of each part, got none of {empty}")
    return parts


def read_splice_junctions(path: str | Path) -> dict[str, str]:
    """The class of each different sequence of UCI's splice junctions (Noordewier et al. 1991).

    Args:
        path: a line a sequence, "class, name, bases"; may be a `.gz`.

    Returns:
        By the bases: "EI" (exon to intron), "IE" or "N" (neither). Some sequences come more than
        once; of one that comes with two classes the first counts.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not of three parts or has other than the first's number of bases,
            which it names, or there is none.
    """
    found: dict[str, str] = {}
    length = 0
    for number, line in enumerate(iterate_lines(path), 1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split(",")]
        if len(columns) != 3 or not all(columns):
            raise ValueError(f"{path}, line {number} must be class, name, bases, got {line!r:.60}")
        label, _, bases = columns
        length = length or len(bases)
        if len(bases) != length:
            raise ValueError(
                f"{path}, line {number} must have {length} bases, as the first, got {len(bases)}"
            )
        found.setdefault(bases, label)
    if not found:
        raise ValueError(f"{path} must have a sequence, got none")
    return found
