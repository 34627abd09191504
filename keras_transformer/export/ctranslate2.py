"""Export of a translator to CTranslate2, a small C++ runtime that needs no Python."""

from __future__ import annotations

import os
from pathlib import Path

from keras_transformer.config import require
from keras_transformer.hub.ctranslate2_writer import write_model
from keras_transformer.system.files import check_free, replacing
from keras_transformer.translate.translator import Translator

QUANTIZATIONS = (
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16",
    "float32",
)  # fmt: skip


def ctranslate2(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    quantization: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a model folder for CTranslate2, including the SentencePiece models.

    ```python
    export.ctranslate2("saved_models/grammar", "served/grammar", quantization="int8")
    # in any process with the packages ctranslate2 and sentencepiece:
    source = SentencePieceProcessor("served/grammar/source.spm")
    target = SentencePieceProcessor("served/grammar/target.spm")
    tokens = source.encode("The old man loves the dog.", out_type=str) + ["</s>"]
    translator = ctranslate2.Translator("served/grammar")
    results = translator.translate_batch([tokens], beam_size=4)
    print(target.decode_pieces(results[0].hypotheses[0]))
    ```

    The caller must add the special tokens that the tokenizer would add to a text: EOS after the
    source; for a multilingual model a tag such as ">>de<<" before the source, or language tokens.
    The language token of the target goes into `target_prefix`.

    A UMT5 needs CTranslate2 4.8.3 or later: earlier versions use the relative positions of the
    first block in all blocks.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        quantization: Type of the weights, one of `QUANTIZATIONS`; None: float32.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ImportError: If the package `ctranslate2` is missing.
        ValueError: If `folder` is not a saved translator, its tokenizer has no SentencePiece model,
            the model has several EOS tokens or a decoder without self-attention, or the
            quantization is unknown.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds files that the
            export does not write.
    """
    accepted = f"one of {QUANTIZATIONS} or None"
    require(quantization in (*QUANTIZATIONS, None), "quantization", quantization, accepted)
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, precision="float32")
    tokenizer = translator.tokenizer
    models = {"source.spm": tokenizer.source_model, "target.spm": tokenizer.target_model}
    with replacing(out, lose_others=False) as temporary:
        temporary.mkdir()
        write_model(temporary, translator.model, tokenizer, quantization)
        for name, content in models.items():
            (temporary / name).write_bytes(content)
    return out
