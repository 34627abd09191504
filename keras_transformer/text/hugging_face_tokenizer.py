"""Read and write tokenizers of encoder-decoder models in Hugging Face's layout."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from keras_transformer.config import require
from keras_transformer.system.failures import readable
from keras_transformer.system.files import read_json, write_json
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text.languages import M2M100, MBART50, NLLB200, WMT21
from keras_transformer.text.marian_tokenizer import TAG, MarianTokenizer
from keras_transformer.text.multilingual import MultilingualTokenizer
from keras_transformer.text.pieces import SPACE, FastPieces, SentencePieces
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.text.tokenizer_options import ADDED, options_of
from keras_transformer.text.translator_options import (
    SMALL100,
    check_size,
    check_special_tokens,
    filled,
    listed_languages,
    translator_options,
)
from keras_transformer.text.vocabulary_files import FAIRSEQ, MERGES, WORDS

OPTIONS, FAST = "tokenizer_config.json", "tokenizer.json"
MODELS = ("sentencepiece.bpe.model", "spiece.model", "sentencepiece.model")
SENTINEL, TARGET_TAG = r"<extra_id_\d+>", r"<2[A-Za-z_]+>"
START = "decoder_start_token_id"
FACTS = (
    "model_type", "vocab_size", "pad_token_id", "eos_token_id", START, "task_specific_params",
    "tokenizer_class",
)  # fmt: skip
T5_KINDS = ("mt5", "t5", "umt5")
KINDS = ("bart", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "t5gemma", "umt5")


def read_tokenizer(folder: str | os.PathLike, config: Mapping[str, Any]) -> Tokenizer:
    """Read the tokenizer that belongs to a `config.json`.

    Args:
        folder: Folder with a SentencePiece model, or a `tokenizer.json`, which is read only if
            there is no SentencePiece model. M2M-100 also needs `vocab.json`. For BART and T5Gemma,
            see `TextTokenizer.read`; for Marian, `MarianTokenizer.read`.
        config: Content of the model's `config.json`: its kind, its vocabulary size and, for some
            kinds, its special ids.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the kind of model is unknown, a file is broken, or the files do not match.
    """
    folder, kind = Path(folder), config.get("model_type")
    require(kind in KINDS, "model_type", kind, f"one of {KINDS} for a tokenizer")
    with readable(f"the tokenizer in {folder}"):
        return _read(folder, config, kind)


def _read(folder, config, kind):
    """Read the tokenizer of a folder with a model of this `model_type`."""
    if kind == "bart":
        options = options_of(folder)
        return _fast(FastPieces(TextTokenizer.read(folder, kind).content), folder, config, options)
    if kind == "t5gemma":
        return _t5gemma(folder, config)
    if kind == "pegasus" and not (folder / "source.spm").is_file():
        raise ValueError(
            f"{folder} has no source.spm: Pegasus is read with a Marian tokenizer only"
        )
    options = translator_options(folder, config, kind)
    if kind == "marian" or (folder / "source.spm").is_file():
        return _checked(
            MarianTokenizer.read(folder, bos_id=_id(config, START, None)), options, folder
        )
    return _checked(_read_pieces(folder, config, kind, options), options, folder)


def _checked(tokenizer, options, folder):
    ids = dict(eos_token=tokenizer.eos_id, unk_token=tokenizer.unk_id)
    check_special_tokens(options, tokenizer.pieces_of("source"), ids, folder)
    # With byte-pair encoding (NLLB), `transformers` ignores `clean_up_tokenization_spaces`.
    is_bpe = isinstance(tokenizer, MultilingualTokenizer) and not tokenizer.tasks
    is_bpe = is_bpe and "eng_Latn" in tokenizer.languages
    tokenizer.clean_up = options.get("clean_up_tokenization_spaces") is True and not is_bpe
    return tokenizer


def _read_pieces(folder, config, kind, options):
    """Read the tokenizer of an M2M-100, NLLB, mBART or T5, or of a `tokenizer.json`."""
    path = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if path is None:
        if not (folder / FAST).is_file():
            raise FileNotFoundError(
                f"{folder} holds no tokenizer: there is neither {FAST} nor one of "
                f"{', '.join(MODELS)}"
            )
        return _fast(FastPieces(read_bytes(folder / FAST)), folder, config, options)
    content = read_bytes(path)
    model_pieces = _own_pieces(content, folder)
    if kind in T5_KINDS:
        return _t5(folder, content, model_pieces, config, options)
    if (folder / "vocab.json").is_file():  # M2M-100; an NLLB has no such file
        ids = _json(folder / "vocab.json")
        if sorted(ids.values()) != list(range(len(ids))):
            raise ValueError(f"{folder / 'vocab.json'} must have each id from 0 on exactly once")
        codes: Sequence[str] = WMT21 if options.get("language_codes") == "wmt21" else M2M100
        pieces, names = sorted(ids, key=ids.get), {code: f"__{code}__" for code in codes}
    else:
        pieces = [*FAIRSEQ, *model_pieces[3:]]
        codes = listed_languages(options) or NLLB200
        if kind == "mbart":
            codes = MBART50[:25] if _is_mbart25(config, options) else MBART50
        names = {code: code for code in codes}
    content_size = len(pieces)
    pieces += names.values()
    pieces += [] if (folder / "vocab.json").is_file() else ["<mask>"]
    pieces = filled(pieces, folder, options, config)
    ids = {piece: i for i, piece in enumerate(pieces)}
    return MultilingualTokenizer(
        SentencePieces(content, pieces, ids.get("<unk>", 0)),
        content_size=content_size,
        **_language_options(ids, names, options, folder, config),
        **_origin(folder, config),
    )


def _is_mbart25(config, options):
    """Return whether a folder has an mBART-25, whose decoder begins with the target language."""
    name = options.get("tokenizer_class") or ""
    return config["model_type"] == "mbart" and not name.startswith("MBart50")


def _language_options(ids, names, options, folder, config):
    """Return arguments of `MultilingualTokenizer` for a fairseq vocabulary.

    These are the style, the special ids and the ids of the language tokens.
    """
    if missing := [piece for piece in FAIRSEQ if piece not in ids]:
        raise ValueError(f"the vocabulary in {folder} must have the pieces {missing}")
    is_legacy = options.get("legacy_behaviour") and "eng_Latn" in names  # an option of NLLB only
    style = "suffix" if is_legacy else "prefix"
    style = "source" if options.get("tokenizer_class") == SMALL100 else style
    languages, bos_id = {code: ids[name] for code, name in names.items()}, ids["</s>"]
    if _is_mbart25(config, options):
        style, bos_id = "start", _id(config, START, None)
        accepted = "the id of the target language's token"
        require(bos_id in languages.values(), START, bos_id, accepted)
    special = dict(pad_id=ids["<pad>"], unk_id=ids["<unk>"], bos_id=bos_id, eos_id=ids["</s>"])
    return special | dict(style=style, languages=languages)


def _t5(folder, content, model_pieces, config, options):
    """Make the tokenizer of a T5, whose SentencePiece model may lack the sentinels."""
    size = config["vocab_size"]
    count = options.get("extra_ids", 100 if len(model_pieces) + 100 <= size else 0)
    in_range = isinstance(count, int) and 0 <= count <= size
    require(in_range, f"extra_ids in {folder / OPTIONS}", count, f"from 0 to vocab_size={size}")
    sentinels = [f"<extra_id_{i}>" for i in reversed(range(count))]
    pieces = filled(
        [*model_pieces, *(x for x in sentinels if x not in model_pieces)], folder, options, config
    )
    unknown = sentencepiece.SentencePieceProcessor(model_proto=content).unk_id()
    symbols = f"{SENTINEL}|{TARGET_TAG}"
    return MultilingualTokenizer(
        SentencePieces(content, pieces, unknown, symbols),
        unk_id=unknown,
        content_size=len(model_pieces),
        **_task_options(config, pieces),
        **_origin(folder, config),
    )


def _t5gemma(folder, config):
    """Make the tokenizer of a T5Gemma, in which only a source begins with <bos>."""
    # The sizes and special tokens of the decoder are those of the model.
    config = {"bos_token_id": 2, **dict(config.get("decoder") or {}), **_present(config)}
    size = (config.get("decoder") or config)["vocab_size"]
    config |= {"vocab_size": size, START: _id(config, START, config["bos_token_id"])}
    texts = TextTokenizer.read(folder, "t5gemma")
    pieces = FastPieces(texts.content)
    check_size(len(pieces.pieces), folder, config)
    content_size = len(pieces.pieces)
    pieces.pieces += [f"<unused_{i}>" for i in range(content_size, size)]
    (framed,), (plain,) = texts.encode(["a"]), texts.encode(["a"], framed=False)
    is_plain = framed[-len(plain) :] == plain and len(framed) <= len(plain) + 1
    accepted = "at most one token before the text"
    require(is_plain, f"the tokens that {folder / FAST} adds to a text", framed, accepted)
    return MultilingualTokenizer(
        pieces,
        style="begun",
        pad_id=_id(config, "pad_token_id", 0),
        unk_id=pieces.ids.get("<unk>", 3),
        bos_id=_id(config, START, 2),
        eos_id=_id(config, "eos_token_id", 1),
        content_size=content_size,
        first_id=framed[0] if len(framed) > len(plain) else None,
        **_origin(folder, config),
    )


def _present(config):
    return {name: value for name, value in config.items() if value is not None}


def _task_options(config, pieces):
    """Return arguments of `MultilingualTokenizer` for a T5.

    These are the style, the special ids, and the task prefixes or language tags as `tasks`.
    """
    tasks = {}
    for name, task in (config.get("task_specific_params") or {}).items():
        if match := re.fullmatch(r"translation_\w+_to_(\w+)", name):
            tasks[match[1]] = task.get("prefix", "")
    tags = [piece for piece in pieces if re.fullmatch(TARGET_TAG, piece)]
    pad_id = _id(config, "pad_token_id", 0)
    return dict(
        style="task",
        pad_id=pad_id,
        bos_id=_id(config, START, pad_id),
        eos_id=_id(config, "eos_token_id", 1),
        tasks=tasks or {tag[2:-1]: tag for tag in tags},
    )


def _id(config, name, default):
    """Return the special id in a field of a config: a number, or the first of a list.

    If the field is missing or null, return the default.
    """
    value = config.get(name)
    if isinstance(value, list) and value:
        value = value[0]
    require(value is None or isinstance(value, int), name, value, "an id, a list of ids or null")
    return default if value is None else value


def _fast(pieces, folder, config, options):
    """Make the tokenizer of a folder that has a `tokenizer.json` but no SentencePiece model."""
    check_size(len(pieces.pieces), folder, config)
    size = len(pieces.pieces)
    pieces.pieces += [f"<unused_{i}>" for i in range(size, config["vocab_size"])]
    ids = pieces.ids
    if config["model_type"] in T5_KINDS:
        unknown = ids.get("<unk>", 2)
        return MultilingualTokenizer(
            pieces,
            unk_id=unknown,
            content_size=size,
            **_task_options(config, pieces.pieces),
            **_origin(folder, config),
        )
    names = {code: code for code in (*NLLB200, *MBART50) if code in ids}
    names = names or {code: f"__{code}__" for code in M2M100 if f"__{code}__" in ids}
    kind = _language_options(ids, names, options, folder, config)
    if config["model_type"] == "bart":
        first = ids["<s>"]
        kind |= dict(style="plain", first_id=first, bos_id=_id(config, START, kind["eos_id"]))
    return MultilingualTokenizer(pieces, content_size=size, **kind, **_origin(folder, config))


def _origin(folder, config):
    """Return the files that define the tokenizer, and the config fields to read them with."""
    names = (OPTIONS, "special_tokens_map.json", FAST, WORDS, MERGES, ADDED, *MODELS)
    files = {name: folder / name for name in names}
    return dict(
        originals={name: read_bytes(path) for name, path in files.items() if path.is_file()},
        model={name: config[name] for name in FACTS if name in config},
    )


def _own_pieces(content, folder):
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise ValueError(f"the SentencePiece model in {folder} cannot be read: {error}") from error
    return [processor.id_to_piece(i) for i in range(len(processor))]


def _json(path):
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def write_tokenizer(folder: str | os.PathLike, tokenizer: Tokenizer) -> None:
    """Write a tokenizer's files so that `transformers` and `read_tokenizer` can read them.

    A `MultilingualTokenizer` is written as the files that it was read from; others in Marian's
    format: two SentencePiece models, and one vocabulary or two.

    Args:
        folder: Folder to write to; it must exist.
        tokenizer: The tokenizer.

    Raises:
        ValueError: If the tokenizer has no SentencePiece model.
    """
    folder = Path(folder)
    if isinstance(tokenizer, MultilingualTokenizer):
        for name, content in tokenizer.originals.items():
            (folder / name).write_bytes(content)
        return
    accepted = "a tokenizer with a SentencePiece model"
    require(hasattr(tokenizer, "source_model"), "tokenizer", type(tokenizer).__name__, accepted)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(getattr(tokenizer, f"{side}_model"))
        name = "vocab.json" if side == "source" else "target_vocab.json"
        if side == "source" or not tokenizer.shared:
            # Marian's tokenizer looks tags such as ">>de<<" up without the space before them.
            pieces = (
                piece[1:] if re.fullmatch(SPACE + TAG[1:], piece) else piece
                for piece in tokenizer.pieces_of(side)
            )
            write_json(folder / name, {piece: i for i, piece in enumerate(pieces)})
    special = {name: tokenizer.pieces_of("source")[i] for name, i in _special(tokenizer).items()}
    options = dict(tokenizer_class="MarianTokenizer", separate_vocabs=not tokenizer.shared)
    write_json(folder / OPTIONS, options | special)


def _special(tokenizer):
    ids = dict(unk_token=tokenizer.unk_id, eos_token=tokenizer.eos_id, pad_token=tokenizer.pad_id)
    return {name: i for name, i in ids.items() if i is not None}
