"""Tokenizers of texts in lower case."""

from __future__ import annotations

import json

from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.text_tokenizer_training import library


def lowercased(tokenizer: TextTokenizer) -> TextTokenizer:
    """Return a tokenizer that puts texts in lower case first.

    As `do_lower_case` of sentence-transformers, it changes nothing if a normalizer of the tokenizer
    already does this alone.
    """
    spec = json.loads(tokenizer.content)
    before = spec.get("normalizer")
    steps = before.get("normalizers", []) if before and before["type"] == "Sequence" else [before]
    steps = [x for x in steps if x is not None]
    lower = {"type": "Lowercase"}
    if lower in steps:
        return tokenizer
    spec["normalizer"] = {"type": "Sequence", "normalizers": [lower, *steps]}
    content = library().Tokenizer.from_str(json.dumps(spec)).to_str()  # as it is read again
    return TextTokenizer(content.encode(), tokenizer.add_special_tokens)
