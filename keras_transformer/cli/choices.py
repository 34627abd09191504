"""Checks of options of `translate` that exclude or need each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_transformer.config import require
from keras_transformer.search import SAMPLE, Search

DRAWS = tuple(Search.names(draws=True))  # options for sampling only
_ALSO = ("tokens_per_batch", "strict", "seed", "prefix", "prefix_file", "alignments")


def refuse(accepted: str, **options: Any) -> None:
    """Raise ValueError for the first option that is given.

    Args:
        accepted: What the error asks for, such as "left out with --mbr".
        options: Values by name; None, False, 0 and empty lists count as not given.
    """
    for name, value in options.items():
        require(not value, _flag(name), value, accepted)


def check_choice(
    mbr: int | None,
    mbr_source: str,
    rerank: int | None,
    named: Mapping[str, Any],
    *,
    context_sentences: int = 0,
    inline_terms: bool = False,
    sample: bool = False,
) -> None:
    """Raise ValueError if options exclude each other, or need an option that is not given.

    Args:
        mbr, mbr_source, rerank, context_sentences, inline_terms, sample: Values of these options.
        named: Values of the other options, by name.
    """
    options = {name: named.get(name) for name in ("alignments", "prefix", "prefix_file")}
    if context_sentences:
        refused = dict(mbr=mbr, rerank=rerank, num_hypotheses=named.get("num_hypotheses"))
        refuse("left out with --context-sentences", sample=sample, **refused, **options)
    if inline_terms:
        accepted = "left out without --glossary"
        require(named.get("glossary"), "--inline-terms", True, accepted)
        # These options would use the sources with inlined terms, not the user's sources.
        refused = dict(rerank_reverse=named.get("rerank_reverse"), alignments=options["alignments"])
        refuse("left out with --inline-terms", **refused)
    if options["prefix_file"]:
        refuse("left out with --prefix-file", prefix=options["prefix"])
    if sample:
        refuse("left out with --sample", mbr=mbr, rerank=rerank)
    require(mbr is None or rerank is None, "--rerank", rerank, "left out with --mbr")
    chosen = "--mbr" if mbr is not None else "--rerank"
    for name in ("beam_size", "num_hypotheses") if mbr or rerank else ():
        accepted = f"left out with {chosen}, which names the number"
        require(named.get(name) is None, _flag(name), named.get(name), accepted)
    samples = "--sample" if sample else "--mbr-source samples"
    draws = sample or (mbr is not None and mbr_source == "samples")
    for name, value in named.items():
        if name.startswith("rerank"):
            require(not value or rerank, _flag(name), value, "left out without --rerank")
        elif draws and value is not None:
            require(name in (*SAMPLE, *_ALSO), _flag(name), value, f"left out with {samples}")
        elif name in (*DRAWS, "seed"):
            accepted = "left out without --sample or --mbr-source samples"
            require(value is None, _flag(name), value, accepted)


def _flag(name):
    return f"--{name.replace('_', '-')}"
