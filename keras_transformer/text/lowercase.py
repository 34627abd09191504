"""Conversion of texts to lower case before a tokenizer encodes them."""

from __future__ import annotations

import json

from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.text_tokenizer_training import library


def lowercased(tokenizer: TextTokenizer) -> TextTokenizer:
    """Return a tokenizer that converts texts to lower case first.

    If one of its normalizers is "Lowercase" already, the tokenizer is returned unchanged, as with
    `do_lower_case` in sentence-transformers.
    """
    spec = json.loads(tokenizer.content)
    before = spec.get("normalizer")
    steps = before.get("normalizers", []) if before and before["type"] == "Sequence" else [before]
    steps = [x for x in steps if x is not None]
    lower = {"type": "Lowercase"}
    if lower in steps:
        return tokenizer
    spec["normalizer"] = {"type": "Sequence", "normalizers": [lower, *steps]}
    content = library().Tokenizer.from_str(json.dumps(spec)).to_str()  # as the library writes it
    return TextTokenizer(content.encode(), tokenizer.add_special_tokens)
