"""Options of the corpora of a recipe, with their ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from keras_transformer.config import check_names, check_types, is_number, require

MOST = 1000.0  # largest weight and temperature


@dataclass(frozen=True)
class CorpusOptions:
    """Options of a table `corpora` of a recipe: one source of training text.

    Paths are relative to the recipe file, or to `--data-folder`.

    Args:
        source: Text file of the source language; or one file with both sides, see `read_pairs`.
        target: Text file of the target language; "": `source` has both sides.
        source_language, target_language: Codes such as "en"; "": those of the recipe.
        both_directions: Whether to train both directions, with source and target exchanged.
        weight: Mean number of times that each pair occurs in an epoch, above 0 and at most 1,000:
            2.5 is two or three times, 0.5 about every second epoch, see `data.visits.Visits`.
        documents: Whether the two text files consist of documents, each ended by an empty line in
            both files. Without documents, sentences get no context, see `context_sentences` of the
            recipe.
        tag: A word before each source, such as "<BT>" of back-translations; "": none.
        validation_source, validation_target: Validation text, in files of the same kinds; "": none.
    """

    source: str
    target: str = ""
    source_language: str = ""
    target_language: str = ""
    both_directions: bool = False
    weight: float = 1.0
    documents: bool = False
    tag: str = ""
    validation_source: str = ""
    validation_target: str = ""

    def files(self, part: str) -> tuple[str, ...]:
        """Return the files of a part of the text as arguments of `read_pairs`.

        Args:
            part: "" for training text, "validation_" for validation text.
        """
        names = (f"{part}source", f"{part}target")
        return tuple(x for x in (getattr(self, name) for name in names) if x)


def checked(
    tables: Any, temperature: float, source_language: str, target_language: str
) -> list[CorpusOptions]:
    """Check the tables `corpora` of a recipe, and return their options.

    Args:
        tables: The tables of a recipe.
        temperature: Temperature of the recipe; 1: off.
        source_language, target_language: Languages of the recipe, for tables that name none.

    Raises:
        ValueError: If a field is unknown, missing or out of range, or the temperature is above 1
            and tables have weights or there are no tables.
    """
    accepted = "a list of tables"
    are_tables = isinstance(tables, list) and all(isinstance(x, dict) for x in tables)
    require(are_tables, "corpora", tables, accepted)
    in_range = is_number(temperature) and 1 <= temperature <= MOST
    require(in_range, "temperature", temperature, f"from 1 to {MOST:.0f}")
    weighted = any("weight" in table for table in tables)
    require(temperature == 1 or tables, "temperature", temperature, "1 without tables corpora")
    require(temperature == 1 or not weighted, "temperature", temperature, "1 if there are weights")
    languages = dict(source_language=source_language, target_language=target_language)
    return [_options(table, f"corpora[{i}]", languages) for i, table in enumerate(tables)]


def _options(table: dict[str, Any], name: str, languages: dict[str, str]) -> CorpusOptions:
    """Check a table `corpora` of a recipe, and return its options."""
    check_names(CorpusOptions, table, f"fields of {name}")
    check_types(CorpusOptions, table, f"{name}.")
    source = table.get("source", "")
    require(source, f"{name}.source", source, "the name of a file")
    options = CorpusOptions(**languages | table)
    in_range = is_number(options.weight) and 0 < options.weight <= MOST
    require(in_range, f"{name}.weight", options.weight, f"above 0 and at most {MOST:.0f}")
    is_word = not options.tag or options.tag.split() == [options.tag]
    require(is_word, f"{name}.tag", options.tag, "a word without white space")
    for side in languages:
        code = getattr(options, side)
        require(re.fullmatch(r"[\w-]+", code), f"{name}.{side}", code, "a code such as 'en'")
    for side in ("source", "validation_source") if options.documents else ():
        value, other = getattr(options, side), side.replace("source", "target")
        accepted = "the second of two text files: others have no empty lines between documents"
        require(getattr(options, other) or not value, f"{name}.{other}", "", accepted)
    accepted = "named together with validation_source"
    has_source = options.validation_source or not options.validation_target
    require(has_source, f"{name}.validation_target", options.validation_target, accepted)
    return options
