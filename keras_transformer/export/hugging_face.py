"""Export of a translator, a language model or an embedder to a folder for `transformers`."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from keras_transformer.config import TransformerConfig, require
from keras_transformer.hub.generation_config import GENERATION
from keras_transformer.hub.hugging_face_checkpoint import CONFIG, write_checkpoint
from keras_transformer.hub.sentence_writer import write_sentence_model
from keras_transformer.hub.standard import standard_form
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.saved.contents import read_config
from keras_transformer.search import Generation, Search, SearchOptions, without_protection
from keras_transformer.system.files import check_free, read_json, replacing, write_json
from keras_transformer.tasks.text_embedder import TextEmbedder
from keras_transformer.text.hugging_face_tokenizer import OPTIONS, write_tokenizer
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import weights_of


def hugging_face(
    folder: str | os.PathLike, out: str | os.PathLike, *, overwrite: bool = False
) -> Path:
    """Write a checkpoint with its tokenizer in Hugging Face's layout.

    ```python
    export.hugging_face("saved_models/grammar", "served/grammar")
    # in any process with `transformers` and `sentencepiece`:
    tokenizer = AutoTokenizer.from_pretrained("served/grammar")
    model = AutoModelForSeq2SeqLM.from_pretrained("served/grammar")
    ids = model.generate(**tokenizer(["The old man loves the dog."], return_tensors="pt"))
    print(tokenizer.batch_decode(ids, skip_special_tokens=True))
    ```

    A model is written in the first of `hub.families.FAMILIES` that can hold it: an imported model
    in its family, or in an equal one (an mT5 as T5). A translator trained here is written as Marian
    with Marian's tokenizer; if it is pre-norm, as Pegasus, which is Marian with pre-norm. See
    `hub.standard` for the conversion of its weights. A language model is written with
    `tokenizer.json` and all its end tokens. A text embedder is written in the form of
    sentence-transformers: `SentenceTransformer(out).encode` returns the vectors of `embed`. It
    truncates vectors last, so with a `dimension` they are scaled only with
    `normalize_embeddings=True`.

    Args:
        folder: A folder written by `Translator.save`, `CausalLM.save` or `TextEmbedder.save`.
        out: The folder to write.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ValueError: If `folder` is not such a folder, or `transformers` does not support its model,
            tokenizer or search options; the message names the unsupported option.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds files that the
            export does not write.
    """
    out = Path(out)
    check_free(out, overwrite)
    task: Any = read_config(folder, "translator, language model or embedder").get("task")
    write = _WRITERS.get(task, _write_translator)
    with replacing(out, lose_others=False) as temporary:
        write(folder, temporary)
    return out


def _write_language_model(folder, out):
    """Write a language model's weights, tokenizer and options for `transformers`."""
    writer = CausalLM.load(folder, precision="float32")
    config, tokenizer = writer.model.config, writer.tokenizer
    write_checkpoint(out, config, weights_of(writer.model))
    tokenizer.save(out)
    pieces = {i: piece for piece, i in tokenizer.pieces().items()}
    ids = dict(pad_token=config.pad_id, bos_token=config.bos_id, eos_token=config.eos_ids[0])
    is_special = {i: i in pieces and tokenizer.decode([[i]]) == [""] for i in ids.values()}
    special = {name: pieces[i] for name, i in ids.items() if is_special[i]}
    write_json(out / OPTIONS, {"tokenizer_class": "PreTrainedTokenizerFast"} | special)
    if writer.template is not None:
        writer.template.save(out)
    generation = {f"{name}_id": i for name, i in ids.items()} | {"eos_token_id": config.eos_id}
    fields = _fields_of(writer.options({}), writer.search, config.eos_id)
    write_json(out / GENERATION, generation | fields)


def _write_translator(folder, out):
    """Write a translator's weights, tokenizer and search options for `transformers`."""
    translator = Translator.load(folder, precision="float32")
    config, weights = translator.model.config, weights_of(translator.model)
    if isinstance(config, TransformerConfig):
        config, weights = standard_form(config, weights)
    generation, tokenizer = generation_fields(translator), translator.tokenizer
    write_checkpoint(out, config, weights)
    write_tokenizer(out, tokenizer)
    tasks = getattr(tokenizer, "model", {}).get("task_specific_params")
    if tasks:  # T5's prompts are in our tokenizer, but in the model's config of `transformers`
        fields = read_json(out / CONFIG)
        write_json(out / CONFIG, fields | {"task_specific_params": tasks})
    write_json(out / GENERATION, generation)


def _write_embedder(folder, out):
    """Write an embedder's weights, tokenizer, modules and settings for sentence-transformers."""
    embedder = TextEmbedder.load(folder, precision="float32")
    config, tokenizer = embedder.model.config, embedder.tokenizer
    pieces = {i: piece for piece, i in tokenizer.pieces().items()}
    # Their tokenizer would find any other piece in texts as a special token.
    is_special, accepted = config.pad_id in tokenizer.added_ids, "the id of a special token"
    require(is_special, "pad_id", f"{config.pad_id}, {pieces.get(config.pad_id)!r}", accepted)
    write_checkpoint(out, config, weights_of(embedder.model))
    tokenizer.save(out)
    options: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    options |= dict(pad_token=pieces[config.pad_id], model_max_length=embedder.max_length)
    (frame,) = tokenizer.encode([""])
    if frame and frame[-1] in tokenizer.added_ids:  # not a part of a prompt that does not count
        options["sep_token"] = pieces[frame[-1]]
    # Token types, which not all models take, are 0 if they are not given.
    options["model_input_names"] = ["input_ids", "attention_mask"]
    write_json(out / OPTIONS, options)
    modes = (embedder.pooling,) if isinstance(embedder.pooling, str) else embedder.pooling
    write_sentence_model(out, modes, embedder.embedding, config.d_model, embedder.max_length)


_WRITERS = {"causal_lm": _write_language_model, "text_embedding": _write_embedder}


def generation_fields(translator: Translator) -> dict[str, Any]:
    """Return the content of `generation_config.json` that makes `generate()` search like ours.

    Raises:
        ValueError: If the translator has a search option that `transformers` does not have.
    """
    config, tokenizer = translator.model.config, translator.tokenizer
    generation = dict(
        decoder_start_token_id=config.bos_id,
        pad_token_id=config.pad_id,
        eos_token_id=config.eos_id,
    )
    search, saved = translator.options({}), without_protection(translator.search)
    if saved:
        generation |= _fields_of(search, saved, config.eos_id)
    else:
        generation |= dict(forced_eos_token_id=config.eos_id, num_beams=4)
        generation |= dict(max_length=config.max_length)
    # In BART, each text begins with <s>.
    if getattr(tokenizer, "style", None) == "plain" and search.forced_first is None:
        generation["forced_bos_token_id"] = tokenizer.first_id
    # Padding and BOS are never generated, as in our own search.
    if never := sorted({config.pad_id, config.bos_id} - {*config.eos_ids}):
        generation["bad_words_ids"] = [[i] for i in never]
    return generation


# Names of our search options, and of the same fields of `generation_config.json`.
_SAME = {
    "beam_size": "num_beams",
    **{
        name: name
        for name in (
            *("length_penalty", "early_stopping", "no_repeat_ngram_size", "repetition_penalty"),
            *("suppress_tokens", "begin_suppress_tokens", "max_new_tokens", "min_new_tokens"),
        )
    },
}
# Options that `_fields_of` translates itself.
_OTHERWISE_NAMED = ("scoring", "forced_eos", "forced_first", "max_length", "min_length")


def _fields_of(search: SearchOptions, chosen: Collection[str], eos_id: Any) -> dict[str, Any]:
    """Return the fields of `generation_config.json` that make `generate()` search like ours.

    Args:
        search: Options of our search.
        chosen: Names of the options that the folder sets. Of the others, only options of sampling,
            forced tokens and lengths are written.
        eos_id: Id or ids of EOS, which `forced_eos` forces at the maximum length.

    Raises:
        ValueError: If the folder sets an option that `transformers` does not have.
    """
    fields: dict[str, Any] = {}
    is_theirs = "scoring" not in chosen or search.scoring == "transformers"
    require(is_theirs, "scoring", search.scoring, "transformers")
    known = {*_SAME, *_OTHERWISE_NAMED, *search.names(draws=True)}
    for name, value in search.changed({name: getattr(search, name) for name in chosen}).items():
        accepted = f"{getattr(type(search)(), name)!r}, for `transformers` does not have it"
        require(name in known, name, value, accepted)
    for option, field in _SAME.items():
        if option in chosen and hasattr(search, option):
            value = getattr(search, option)
            fields[field] = list(value) if isinstance(value, tuple) else value
    if search.temperature is not None:
        fields |= {name: getattr(search, name) for name in search.names(draws=True)}
        fields = {"do_sample": True, **fields}
    if search.forced_eos:
        fields["forced_eos_token_id"] = eos_id
    if isinstance(search, Search):
        for name in ("max_length", "min_length"):
            if value := getattr(search, name):
                fields[name] = value + 1
        if search.forced_first:
            (fields["forced_bos_token_id"],) = search.forced_first
    elif isinstance(search, Generation) and search.max_length is not None:
        fields["max_length"] = search.max_length
        fields.pop("max_new_tokens", None)
    return fields
