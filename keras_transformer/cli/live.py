"""The command that translates a text while it arrives."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    Engine,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    searching,
    write_utf8,
)
from keras_transformer.search import LIVE, Search

PolicyName = Annotated[
    str,
    typer.Option(
        help="wait-k: stay k source words behind (Ma et al. 2019); align-att: write no word that "
        "attends to the last k source tokens (Papi et al. 2023); local-agreement: write what k "
        "translations in a row agree on (Liu et al. 2020)."
    ),
]
PolicySize = Annotated[
    int | None,
    typer.Option(
        "--k", help="Number of the policy.  [default: wait-k 3, align-att 4, local-agreement 2]"
    ),
]


@searching(Search, LIVE)
def live(
    folder: Folder,
    policy: PolicyName = "wait-k",
    k: PolicySize = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    precision: Precision = None,
    engine: Engine = "keras",
    **search: Any,
) -> None:
    """Translate stdin while it arrives, and write each word as soon as it is final.

    A word is read when white space follows it. Each sentence gets a line; a sentence ends at its
    last punctuation mark, at a line break, or when it becomes too long for the model. The default
    --beam-size is 1.

    \b
    Examples:
        keras-transformer live tatoeba --target-language de
        keras-transformer transcribe saved_models/whisper - < talk.wav |
            keras-transformer live saved_models/en-de --policy wait-k --k 5
    """
    from keras_transformer.text.arriving_text import whole_words
    from keras_transformer.translate.live import policy_named, translate_live
    from keras_transformer.translate.translator import Translator

    chosen = policy_named(policy, k)
    languages = dict(source_language=source_language, target_language=target_language)
    translator = Translator.load(folder, precision, engine=engine, **languages)
    write_utf8()
    for commit in translate_live(translator, whole_words(_stdin()), chosen, **search):
        print(commit.text, end="\n" if commit.ends_sentence else "", flush=True)


def _stdin() -> Iterator[str]:
    """Yield stdin in pieces, as they arrive."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := sys.stdin.buffer.read1(1 << 16):  # type: ignore[union-attr]
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)
