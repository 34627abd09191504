"""Export of a translator for transformers.js, which runs it in Node.js and in browsers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from keras_transformer.config import TransformerConfig, require
from keras_transformer.export.hugging_face import generation_fields
from keras_transformer.hub.generation_config import GENERATION
from keras_transformer.hub.hugging_face_checkpoint import CONFIG
from keras_transformer.system.elsewhere import run_elsewhere
from keras_transformer.system.files import check_free, replacing, write_json
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.hugging_face_tokenizer import FAST, OPTIONS
from keras_transformer.text.sentence_piece_conversion import tokenizer_json
from keras_transformer.translate.translator import Translator

LARGEST = 1_500_000_000  # bytes of weights: a graph's file has 2 GB at most
BEAMS = ("num_beams", "length_penalty", "early_stopping")  # fields of a search with beams


def transformers_js(
    folder: str | os.PathLike,
    out: str | os.PathLike,
    languages: tuple[str | None, str | None] = (None, None),
    *,
    overwrite: bool = False,
) -> Path:
    """Write a folder that `pipeline("translation")` of transformers.js loads.

    - `config.json`, `generation_config.json`: as of Marian, whose inputs and outputs these are;
    - `tokenizer.json`, `tokenizer_config.json`: see `text.sentence_piece_conversion`. If a target
      language is chosen, its tag is added to each text; else a text begins with it (">>de<< ...");
    - `onnx/encoder_model.onnx`, `onnx/decoder_model_merged.onnx`, and the same with weights of 8
      bits, "q8", in `encoder_model_quantized.onnx` and `decoder_model_merged_quantized.onnx`.

    transformers.js (4.3) has no beam search: it takes the likeliest token at each step.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        languages: Languages to translate from and into, see `Translator.load`.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ValueError: If `folder` is not a saved translator; its tokenizer, its model or a search
            option does not fit, which the message names; or the languages do not.
        FileExistsError, RuntimeError: See `graph_folder.write_folder`.
    """
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, "float32", *languages)
    translator.require_direct()
    _check(translator)
    tokenizer, config = translator.tokenizer, translator.model.config
    generation = generation_fields(translator)
    for field in BEAMS:
        generation.pop(field, None)
    file = tokenizer_json(tokenizer.source_model, *tokenizer.source_frame)
    with replacing(out, lose_others=False) as temporary:
        temporary.mkdir()
        task = dict(folder=os.fspath(folder), path=os.fspath(temporary))
        run_elsewhere("keras_transformer.export.transformers_js_graph", task, "torch")
        write_json(temporary / CONFIG, _config_fields(config))
        write_json(temporary / GENERATION, generation)
        compact = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
        (temporary / FAST).write_text(compact, "utf-8")
        write_json(temporary / OPTIONS, _tokenizer_fields(tokenizer, file, config.max_length))
    return out


def _check(translator):
    """Raise ValueError if a translator does not fit transformers.js."""
    tokenizer, model = translator.tokenizer, translator.model
    is_shared = isinstance(tokenizer, SentencePieceTokenizer) and tokenizer.shared
    kind = type(tokenizer).__name__
    require(is_shared, "tokenizer", kind, "a SentencePieceTokenizer with one vocabulary")
    config = model.config
    is_plain = isinstance(config, TransformerConfig)
    require(is_plain, "model", type(model).__name__, "a Transformer")
    require(not config.decoder_recurrence, "decoder_recurrence", config.decoder_recurrence, "None")
    accepted = "another id than EOS, for transformers.js"
    require(config.bos_id not in config.eos_ids, "bos_id", config.bos_id, accepted)
    size = 4 * model.count_params()
    accepted = f"at most {LARGEST:,} bytes of weights in float32"
    require(size <= LARGEST, "model", f"{size:,} bytes", accepted)


def _config_fields(config: TransformerConfig) -> dict[str, Any]:
    """Return the content of `config.json`."""
    heads = config.num_decoder_heads or config.num_heads
    return dict(
        model_type="marian",
        architectures=["MarianMTModel"],
        is_encoder_decoder=True,
        vocab_size=config.target_vocab_size,
        d_model=config.d_model,
        encoder_layers=config.num_encoder_layers,
        encoder_attention_heads=config.num_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_layers=config.num_decoder_layers,
        decoder_attention_heads=heads,
        decoder_ffn_dim=config.decoder_d_ff or config.d_ff,
        max_position_embeddings=config.max_length,
        pad_token_id=config.pad_id,
        bos_token_id=config.bos_id,
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.bos_id,
    )


def _tokenizer_fields(tokenizer, file, max_length):
    """Return the content of `tokenizer_config.json`."""
    vocabulary = file["model"]["vocab"]
    if isinstance(vocabulary, dict):
        names = {i: name for name, i in vocabulary.items()}
    else:
        names = {i: name for i, (name, _) in enumerate(vocabulary)}
    return dict(
        tokenizer_class="PreTrainedTokenizerFast",
        pad_token=names[tokenizer.pad_id],
        unk_token=names[tokenizer.unk_id],
        bos_token=names[tokenizer.bos_id],
        eos_token=names[tokenizer.eos_id],
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
