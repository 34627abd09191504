"""Which options of `translate` go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_transformer.config import require
from keras_transformer.search import SAMPLE


def refuse(accepted: str, **options: Any) -> None:
    """Raise ValueError for the first option that is given.

    Args:
        accepted: What the error asks for, such as "left out with --mbr".
        options: Values by name; None, False, 0 and empty lists are not given.
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
) -> None:
    """Refuse options that do not go with these, or need them.

    Args:
        mbr, mbr_source, rerank, context_sentences, inline_terms: Values of these options.
        named: Values of the others, by name.
    """
    if context_sentences:
        own = dict(mbr=mbr, rerank=rerank, num_hypotheses=named.get("num_hypotheses"))
        refuse("left out with --context-sentences", **own)
    if inline_terms:
        given = named.get("glossary")
        require(given, "--inline-terms", True, "left out without --glossary")
        # It would score sources that nobody wrote.
        refuse("left out with --inline-terms", rerank_reverse=named.get("rerank_reverse"))
    require(mbr is None or rerank is None, "--rerank", rerank, "left out with --mbr")
    chosen = "--mbr" if mbr is not None else "--rerank"
    for name in ("beam_size", "num_hypotheses") if mbr or rerank else ():
        given = named.get(name)
        accepted = f"left out with {chosen}, which names the number"
        require(given is None, _flag(name), given, accepted)
    samples = mbr is not None and mbr_source == "samples"
    for name, value in named.items():
        if name.startswith("rerank"):
            require(not value or rerank, _flag(name), value, "left out without --rerank")
        elif samples and value is not None:
            fits = name in (*SAMPLE, "tokens_per_batch", "strict")
            require(fits, _flag(name), value, "left out with --mbr-source samples")


def _flag(name):
    return f"--{name.replace('_', '-')}"
