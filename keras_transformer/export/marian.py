"""Export of a translator to Marian, a C++ program that trains and translates."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.marian.layout import NEW
from keras_transformer.hub.marian.outgoing import LENGTHS, arrays_of, kind_of, options_of
from keras_transformer.hub.marian.shortlists import write_shortlist
from keras_transformer.search import without_protection
from keras_transformer.system.files import check_free, replacing
from keras_transformer.text import SentencePieceTokenizer, Tokenizer
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import weights_of

MODEL, DECODER, SHORTLIST = "model.npz", "decoder.yml", "shortlist.bin"


def marian(folder: str | os.PathLike, out: str | os.PathLike, *, overwrite: bool = False) -> Path:
    """Write a model folder for Marian: model, vocabularies, `decoder.yml`, and a shortlist if any.

    ```python
    export.marian("saved_models/grammar", "served/grammar")
    # in a shell: marian-decoder -c served/grammar/decoder.yml < english.txt > german.txt
    ```

    Marian has no language option: the texts must begin with the tags that the tokenizer would add.
    A model with Marian's sinusoids that begins with zeros, such as OPUS-MT's, is written as Marian
    writes it. All others need Marian 1.12 (`pymarian`) and batches of one text, `mini-batch: 1`
    in `decoder.yml`: its newer layers do not mask padding in all batches. Vocabularies are SentencePiece
    models (`.spm`), or lists of pieces (`.yml`) where the ids are not those of a SentencePiece
    model; then the texts must be cut into pieces first.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ValueError: If `folder` is not a saved translator, or Marian cannot hold its model or its
            tokenizer; the message names what it cannot.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds other files.
    """
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, precision="float32")
    config, tokenizer, search = translator.model.config, translator.tokenizer, translator.options({})
    options_of(config)
    without_protection(translator.search)
    first = search.forced_first or tokenizer.target_frame.before
    require(not first, "first tokens of a translation", first, "none for Marian")
    weights = weights_of(translator.model)
    with replacing(out, lose_others=False) as temporary:
        temporary.mkdir()
        np.savez(temporary / MODEL, **arrays_of(config, weights))
        options = {
            "relative-paths": True,
            "models": [MODEL],
            "vocabs": _write_vocabularies(temporary, tokenizer),
            "beam-size": search.beam_size,
            "normalize": search.length_penalty,
            "max-length": config.max_length,
            "max-length-crop": True,
            "max-length-factor": LENGTHS,
            "allow-unk": True,
            "allow-special": True,
        }
        if kind_of(config, weights) == NEW:
            options["mini-batch"] = 1
        if translator.shortlist is not None:
            write_shortlist(temporary / SHORTLIST, translator.shortlist, tokenizer)
            if search.shortlist:
                options["shortlist"] = [SHORTLIST]
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in options.items()]
        (temporary / DECODER).write_text("".join(lines), "utf-8")
    return out


def _write_vocabularies(out: Path, tokenizer: Tokenizer) -> list[str]:
    """Write the vocabularies and return the names of the source's and the target's file."""
    sides = ("source", "target")
    is_spm = isinstance(tokenizer, SentencePieceTokenizer)
    for side in sides:
        if (model := getattr(tokenizer, f"{side}_model", None)) and not (is_spm and tokenizer.shared):
            (out / f"{side}.spm").write_bytes(model)
    if is_spm and tokenizer.shared:
        (out / "vocab.spm").write_bytes(tokenizer.source_model)
        return ["vocab.spm", "vocab.spm"]
    if is_spm:
        return ["source.spm", "target.spm"]
    for side in sides:
        pieces = tokenizer.pieces_of(side)
        for name, number in (("</s>", tokenizer.eos_id), ("<unk>", tokenizer.unk_id)):
            is_there = number is not None and pieces[number] == name
            require(is_there, f"id of {name}", number, "in the vocabulary, for Marian")
        text = json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False)
        (out / f"{side}.yml").write_text(text, "utf-8")
    return ["source.yml", "target.yml"]
