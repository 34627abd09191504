"""Export of a translator to Marian, a C++ program that trains and translates."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.marian.binary import write_binary
from keras_transformer.hub.marian.layout import NEW
from keras_transformer.hub.marian.outgoing import (
    LENGTHS,
    OURS,
    SHORTLIST,
    TOKENIZER,
    arrays_of,
    kernels,
    kind_of,
    options_of,
)
from keras_transformer.hub.marian.shortlists import write_shortlist
from keras_transformer.hub.marian.vocabularies import model_pieces
from keras_transformer.search import without_protection
from keras_transformer.system.files import check_free, replacing
from keras_transformer.text import SentencePieceTokenizer, Tokenizer
from keras_transformer.text.pieces import SPACE
from keras_transformer.text.word_model import is_word_model
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import weights_of

QUANTIZATIONS = ("intgemm8",)
MODEL, QUANTIZED, DECODER = "model.npz", "model.bin", "decoder.yml"


def marian(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    *,
    quantization: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a model folder for Marian: model, vocabularies, `decoder.yml`, and a shortlist if any.

    ```python
    export.marian("saved_models/grammar", "served/grammar")
    # in a shell: marian-decoder -c served/grammar/decoder.yml < english.txt > german.txt
    ```

    Marian adds no tags: a text must begin with those that the tokenizer would add. `decoder.yml`
    contains beam size, length penalty and length limit of the folder's search, which Marian applies
    by its own rules (`scoring="marian"`), and the shortlist if that search uses it; else the
    shortlist is named in a comment.

    A model is written with Marian's legacy layers if it has their sinusoids, scale of embeddings,
    epsilon and zero vector of BOS, as models imported from Marian do, and is post-norm or has an
    SSRU decoder. Others need Marian 1.12 or later (`pymarian`). Its new layers do not always mask
    padding, so `decoder.yml` sets `mini-batch: 1`. SSRU decoders and normalized embeddings need
    the legacy layers.

    The vocabularies are SentencePiece models (`.spm`), or lists (`.yml`) if the ids are not those
    of a SentencePiece model. With a list of pieces, Marian's input must be split into pieces; with
    a list of words it is plain text.

    In float32, `load_pretrained` reads the folder back, bit for bit, with the tokenizer in its
    subfolder `keras_transformer`.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        quantization: Type of the matrices of dense layers, "intgemm8" (in `model.bin`); None:
            float32 (in `model.npz`).
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ValueError: If `folder` is not a saved translator, the quantization is unknown, a width is
            no multiple of 64 with "intgemm8", or Marian cannot hold the model or the tokenizer;
            gives the reason.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds files that the
            export does not write.
    """
    accepted = f"one of {QUANTIZATIONS} or None"
    require(quantization in (*QUANTIZATIONS, None), "quantization", quantization, accepted)
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, precision="float32")
    config, tokenizer, search = (
        translator.model.config,
        translator.tokenizer,
        translator.options({}),
    )
    options_of(config)
    for name in ("d_model", "d_ff", "decoder_d_ff") if quantization else ():
        size = getattr(config, name) or config.d_ff
        require(size % 64 == 0, name, size, "a multiple of 64 for intgemm8")
    without_protection(translator.search)
    first = search.forced_first or tokenizer.target_frame.before
    require(not first, "first tokens of a translation", first, "none for Marian")
    weights = weights_of(translator.model)
    with replacing(out, lose_others=False) as temporary:
        temporary.mkdir()
        facts = dict(search=translator.search, directions=translator.directions)
        facts |= {x: getattr(translator, x) for x in ("source_language", "target_language")}
        arrays: dict[str, Any] = arrays_of(config, weights, facts)
        model = QUANTIZED if quantization else MODEL
        if quantization:
            arrays = {x: y for x, y in arrays.items() if not x.startswith(OURS)}
            write_binary(temporary / model, arrays, kernels(config, weights))
        else:
            np.savez(temporary / model, **arrays)
            (temporary / TOKENIZER).mkdir()
            tokenizer.save(temporary / TOKENIZER)
        options = {
            "relative-paths": True,
            "models": [model],
            "vocabs": _write_vocabularies(temporary, tokenizer),
            "beam-size": search.beam_size,
            "normalize": search.length_penalty,
            "max-length": config.max_length,
            "max-length-crop": True,
            # In the new layers, the tables of positions have LENGTHS * max_length rows.
            "max-length-factor": min(search.max_length_factor or LENGTHS, LENGTHS),
            "allow-unk": tokenizer.unk_id not in search.suppress_tokens,
            "allow-special": {*search.suppress_tokens} <= {tokenizer.unk_id},
        }
        if kind_of(config, weights) == NEW:
            options["mini-batch"] = 1
        if translator.shortlist is not None:
            write_shortlist(temporary / SHORTLIST, translator.shortlist, tokenizer)
            # False: Marian does not check its content.
            options["shortlist" if search.shortlist else "# shortlist"] = [SHORTLIST, False]
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in options.items()]
        (temporary / DECODER).write_text("".join(lines), "utf-8")
    return out


def _write_vocabularies(out: Path, tokenizer: Tokenizer) -> list[str]:
    """Write the vocabularies and return the names of the source's and the target's file."""
    sides = ("source", "target")
    models = {side: getattr(tokenizer, f"{side}_model", b"") for side in sides}
    are_words = {side: is_word_model(model) for side, model in models.items()}
    for side, model in models.items():
        if model and not are_words[side]:
            (out / f"{side}.spm").write_bytes(model)
    if isinstance(tokenizer, SentencePieceTokenizer) or all(
        _has_ids(model, tokenizer.pieces_of(side)) for side, model in models.items()
    ):
        if not tokenizer.shared or len({*models.values()}) > 1:
            return ["source.spm", "target.spm"]
        (out / "source.spm").rename(out / "vocab.spm")
        (out / "target.spm").unlink()
        return ["vocab.spm", "vocab.spm"]
    for side in sides:
        pieces = tokenizer.pieces_of(side)
        if are_words[side]:
            pieces = [piece.removeprefix(SPACE) for piece in pieces]
        for name, number in (("</s>", tokenizer.eos_id), ("<unk>", tokenizer.unk_id)):
            is_there = number is not None and pieces[number] == name
            require(is_there, f"id of {name}", number, "in the vocabulary, for Marian")
        text = json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False)
        (out / f"{side}.yml").write_text(text, "utf-8")
    return ["source.yml", "target.yml"]


def _has_ids(model, pieces):
    """Return whether the pieces of a SentencePiece model are the first ones of `pieces`."""
    if not model or is_word_model(model):
        return False
    names = model_pieces(model, Path("the tokenizer"))
    return names == pieces[: len(names)]
