"""Readers of data sets of proteins and DNA: FASTA, secondary structure, splice junctions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from keras_transformer.data.archives import read_zip
from keras_transformer.data.text_files import iterate_lines

STRUCTURES = "CEH"  # coil, strand, helix
UNRESOLVED = "-"  # structure of a residue that the experiment did not resolve
PARTS = ("train", "validation", "test")


def read_fasta(lines: Iterable[str], source: str | Path = "FASTA") -> dict[str, str]:
    """Return a dictionary from the headers of a FASTA file, without ">", to the sequences.

    Args:
        lines: Lines of the file.
        source: Name of the file in error messages.

    Raises:
        ValueError: If the first line is not a header, or a header occurs twice.
    """
    records: dict[str, list[str]] = {}
    header = None
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if line.startswith(">"):
            header = line[1:].strip()
            if header in records:
                raise ValueError(f"{source}, line {number}: the header {header!r} occurs twice")
            records[header] = []
        elif line:
            if header is None:
                raise ValueError(f"{source}, line {number} must be a header, got {line!r:.60}")
            records[header].append(line)
    return {header: "".join(parts) for header, parts in records.items()}


def read_structures(path: str | Path) -> dict[str, list[tuple[str, str]]]:
    """Read proteins and their secondary structure from FLIP's `splits.zip` (Dallago et al. 2021).

    Args:
        path: The archive. It holds `sequences.fasta`, `mask.fasta` (1 for each resolved residue)
            and `sampled.fasta` (structures; the headers name the part of the data set).

    Returns:
        A list of (residues, structures) for each part, "train", "validation" and "test", with an
        entry per protein. Both strings have one letter per residue; structures are H (helix), E
        (strand), C (coil) and `UNRESOLVED`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a complete zip file, lacks one of these files, the files do not
            match, or a part has no protein.
    """
    names = "sequences", "mask", "sampled"
    files = {match[1]: x for match, x in read_zip(path, rf"^splits/({'|'.join(names)})\.fasta$")}
    try:
        sequences, masks, labels = (
            read_fasta(files[name].decode().splitlines(), name) for name in names
        )
    except (KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not FLIP's archive of structures: {error}") from error
    parts: dict[str, list[tuple[str, str]]] = {part: [] for part in PARTS}
    for header, structure in labels.items():
        name, *words = header.split()
        facts = dict(word.partition("=")[::2] for word in words)
        part = "validation" if facts.get("VALIDATION") == "True" else facts.get("SET")
        residues, mask = sequences.get(name, ""), masks.get(name, "")
        if part not in parts or not len(residues) == len(mask) == len(structure) > 0:
            raise ValueError(
                f"{path}: {header!r} must have a part, residues and a mask of equal length"
            )
        if unknown := sorted(set(structure) - set(STRUCTURES)):
            raise ValueError(
                f"{path}: {header!r} must have structures in {STRUCTURES!r}, got {unknown[0]!r}"
            )
        seen = zip(structure, mask, strict=True)
        structure = "".join(x if resolved == "1" else UNRESOLVED for x, resolved in seen)
        parts[part].append((residues, structure))
    if empty := [part for part, rows in parts.items() if not rows]:
        raise ValueError(f"{path} must have proteins in each part, got none in {empty}")
    return parts


def read_splice_junctions(path: str | Path) -> dict[str, str]:
    """Read the class of each sequence of UCI's splice junctions (Noordewier et al. 1991).

    Args:
        path: File with one sequence per line, "class, name, bases"; blank lines are skipped. It is
            decompressed if its name ends in `.gz` or `.zst`.

    Returns:
        The class of each sequence of bases: "EI" (exon to intron), "IE" (intron to exon) or "N"
        (neither). If a sequence occurs several times, its first class counts.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line does not have three parts or has another number of bases than the
            first line (the message names the line), or the file has no sequence.
    """
    classes: dict[str, str] = {}
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
                f"{path}, line {number} must have {length} bases like the first, got {len(bases)}"
            )
        classes.setdefault(bases, label)
    if not classes:
        raise ValueError(f"{path} must have a sequence, got none")
    return classes


def overlapping_words(sequence: str, letters: int) -> str:
    """Return the overlapping words of a sequence: "ACG CGT" for "ACGT" and 3 letters per word.

    This is the input of DNABERT (Ji et al. 2021, section 2.1).

    Args:
        sequence: Letters; spaces at both ends are removed.
        letters: Number of letters per word; a shorter sequence is one word.
    """
    sequence = sequence.strip()
    starts = range(max(1, len(sequence) - letters + 1))
    return " ".join(sequence[start : start + letters] for start in starts)
