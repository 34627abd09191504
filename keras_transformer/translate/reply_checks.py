"""Checks of a language model's replies: explanations are cut off, and a warning counts faults."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Sequence

from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.translate.engines.engine import Hypothesis

_COLONS = (":", "：")
EMPTY, REPEATED, EXPLAINED = "empty", "the prompt again", "an explanation, cut off"


def checked_replies(
    tokenizer: PromptTokenizer, texts: Sequence[str], lists: Sequence[Sequence[Hypothesis]]
) -> list[list[Hypothesis]]:
    """Return the hypotheses without explanations.

    An explanation begins with a stop text of the prompt that the source does not contain, or ends
    with a colon before one, such as "Here is the translation:". A warning counts the texts whose
    best hypothesis is empty, repeats the prompt, or was cut.

    Args:
        tokenizer: Tokenizer with the prompt.
        texts: Source texts.
        lists: The hypotheses of each text, best first.
    """
    faults: Counter[str] = Counter()
    results, example = [], ""
    for text, hypotheses in zip(texts, lists, strict=True):
        pairs = [_checked(tokenizer, text, x.text) for x in hypotheses]
        results.append(
            [
                dataclasses.replace(x, text=reply)
                for x, (reply, _) in zip(hypotheses, pairs, strict=True)
            ]
        )
        if fault := pairs[0][1]:
            example = example or f"{hypotheses[0].text!r:.80} for {text!r:.60}"
            faults[fault] += 1
    if faults:
        counts = ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()))
        warnings.warn(
            f"{faults.total()} of {len(texts)} replies of the language model are no plain "
            f"translations: {counts}; such as {example}",
            stacklevel=4,
        )
    return results


def _checked(tokenizer, text, reply):
    """Return a reply, cut before its first stop text, and its fault, None if it has none.

    An introduction, which ends with a colon, is cut off, too. A reply that begins with a stop text,
    or that repeats the prompt, is not cut.
    """
    if not text.strip():
        return reply, None
    if not reply.strip():
        return reply, EMPTY
    if tokenizer.instruction and tokenizer.instruction in reply:
        return reply, REPEATED
    stops = [x for x in tokenizer.prompt.stop if x not in text.strip()]
    if not any(x in reply for x in stops):
        return reply, None
    first, *rest = map(str.strip, re.split("|".join(map(re.escape, stops)), reply))
    if not first:
        return reply, EXPLAINED
    is_introduction = first.endswith(_COLONS) and not text.strip().endswith(_COLONS)
    return (next(filter(None, rest), first) if is_introduction else first), EXPLAINED
