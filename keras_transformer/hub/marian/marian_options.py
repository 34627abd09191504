"""Options of Marian's models and decoders, as our config and our search options."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import TransformerConfig, is_number, require
from keras_transformer.hub.families.fields import Field, complete, count, flag, size
from keras_transformer.system.extras import missing
from keras_transformer.system.foreign_fields import FieldTable

ACTIVATIONS = {"relu": "relu", "swish": "silu", "gelu": "gelu"}  # Marian's name -> ours
EPSILON = 1e-6  # of the layer norms
ATTENTION, RECURRENT = "self-attention", "rnn"  # values of transformer-decoder-autoreg
# Values of other options with which a recurrence is a plain SSRU.
_SSRU = {
    "dec-cell": ("ssru",),
    "transformer-rnn-projection": (False,),
    "layer-normalization": (False,),
}
_TIES = ("tied-embeddings", "tied-embeddings-src", "tied-embeddings-all")
# Operations before a sub-layer, after it and after a stack. Dropout ("d") is left out: it has no
# effect in a trained model.
_POST_NORM, _PRE_NORM = ("", "an", ""), ("n", "a", "n")
_PROCESSES = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")


def _choice(names, default):
    return Field(f"one of {sorted(names)}", lambda x: x in names, default)


def _operations(default):
    return Field("a text of operations", lambda x: isinstance(x, str), default)


def _whole_numbers(accepted, fits, default):
    return Field(
        accepted,
        lambda x: isinstance(x, list) and all(type(i) is int for i in x) and fits(x),
        default,
    )


_READ = {
    "dim-vocabs": _whole_numbers(
        "two sizes, of one source and one target", lambda x: len(x) == 2 and min(x) > 0, None
    ),
    "dim-emb": size(512),
    "enc-depth": size(1),
    "dec-depth": size(1),
    "transformer-heads": size(8),
    "transformer-dim-ffn": size(2048),
    "transformer-decoder-dim-ffn": count(0),
    "transformer-ffn-activation": _choice(ACTIVATIONS, "swish"),
    "transformer-decoder-autoreg": _choice((ATTENTION, RECURRENT), ATTENTION),
    "transformer-tied-layers": _whole_numbers("layers from 1", lambda x: min(x, default=1) > 0, []),
    "transformer-no-projection": flag(False),
    "transformer-postprocess-emb": _operations("d"),
    "transformer-preprocess": _operations(""),
    "transformer-postprocess": _operations("dan"),
    "transformer-postprocess-top": _operations(""),
    "output-omit-bias": flag(False),
    **{name: flag(False) for name in _TIES},
}
MODEL = FieldTable(
    read=_READ,
    harmless=(
        "version",
        # Options of training, and the layer whose attention was trained to align words.
        *("transformer-depth-scaling", "transformer-guided-alignment-layer", "max-length"),
        # Marian's legacy layers ignore this option: they have sinusoids.
        "transformer-train-position-embeddings",
        # Options of other types of models, or without effect unless a refused option is set.
        *("dim-rnn", "enc-cell", "enc-type", "enc-cell-depth", "dec-cell", "dec-cell-base-depth"),
        *("dec-cell-high-depth", "skip", "layer-normalization", "transformer-dim-aan"),
        *("transformer-aan-depth", "transformer-aan-activation", "transformer-aan-nogate"),
        *("transformer-rnn-projection", "transformer-alibi-shift", "transformer-alibi-trainable"),
        *("separator-symbol", "bert-train-type-embeddings", "bert-type-vocab-size"),
        *("ulr-dim-emb", "ulr-trainable-transformation", "factors-combine", "factors-dim-emb"),
        *("lemma-dependency", "special-vocab", "original-type"),
    ),
    refused={
        "type": ("transformer",),
        "transformer-ffn-depth": (2,),
        "transformer-decoder-ffn-depth": (0, 2),
        "transformer-attention-mask": ("default",),
        "transformer-disable-position-embeddings": (False,),
        "transformer-pool": (False,),
        "transformer-no-bias": (False,),
        "transformer-no-affine": (False,),
        "right-left": (False,),
        "input-types": ([], ["sequence", "sequence"]),
        "ulr": (False,),
        "lemma-dim-emb": (0,),
    },
)  # fmt: skip

_OF_SEARCH = {  # with the defaults of `marian-decoder`
    "beam-size": size(12),
    "normalize": Field("at least 0", lambda x: is_number(x) and x >= 0, 0),
    "max-length-factor": Field(
        "a whole number of at least 1", lambda x: is_number(x) and x >= 1 and x == int(x), 3
    ),
}
_REFUSED_IN_SEARCH: dict[str, tuple[Any, ...]] = {
    "word-penalty": (0, 0.0),
    "allow-unk": (False,),
    "allow-special": (False,),
    "output-sampling": ([], None),
    "force-decode": (False,),
}


def read_yaml(text: bytes, where: str | os.PathLike) -> dict[str, Any]:
    """Return the options in a YAML text.

    Args:
        text: The text.
        where: Its file, for messages.

    Raises:
        ImportError: If PyYAML is missing.
        ValueError: If the text is not a YAML mapping.
    """
    values = _loaded(text, where, "CSafeLoader", "SafeLoader")
    # Messages show the type only: with YAML's aliases, a short text can have a huge value.
    kind = type(values).__name__
    require(isinstance(values, dict), f"the content of {where}", kind, "a mapping")
    return {str(name): value for name, value in values.items()}


def read_pieces(path: Path) -> dict[str, int]:
    """Return the vocabulary in a YAML or JSON file: ids by piece.

    Raises:
        ImportError: If PyYAML is missing.
        ValueError: If the file is not a mapping of pieces to ids.
    """
    # A base loader reads all values as texts. Others would convert the pieces "no" and "1".
    values = _loaded(path.read_bytes(), path, "CBaseLoader", "BaseLoader")
    accepted = "a mapping of pieces to ids"
    kind = type(values).__name__
    require(isinstance(values, dict), f"the content of {path}", kind, accepted)
    try:
        return {str(piece): int(number) for piece, number in values.items()}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} must be {accepted}: {error}") from error


def _loaded(text, where, *loaders):
    """Return the content of a YAML text, read with the first of these loaders that exists."""
    try:
        import yaml
    except ImportError as error:
        raise missing("a model of Marian", "pretrained") from error
    loader = next(getattr(yaml, name) for name in loaders if hasattr(yaml, name))
    try:
        return yaml.load(text, loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not valid YAML: {error!s:.500}") from error


def checked(options: Mapping[str, Any], path: str | os.PathLike) -> dict[str, Any]:
    """Return the options of a model with defaults filled in.

    Raises:
        ValueError: If an option has a value that is not supported; names it and the file.
    """
    MODEL.check(options, path)
    if options.get("transformer-decoder-autoreg") == RECURRENT:
        cell = {name: options.get(name, "gru" if name == "dec-cell" else False) for name in _SSRU}
        FieldTable({}, refused=_SSRU).check(cell, path)
    try:
        theirs = complete(options, _READ)
        if _norm_first(theirs):
            version = re.match(r"v1\.(\d+)\.", str(options.get("version", "")))
            # Before 1.11, keys and values of self-attention were not normalized.
            accepted = "1.11 or later with transformer-preprocess n"
            is_new = version is None or int(version[1]) >= 11
            require(is_new, "version", options.get("version"), accepted)
        tied, depth = theirs["transformer-tied-layers"], theirs["dec-depth"]
        accepted = f"one layer for each of the {depth}, at most {depth}"
        is_full = len(tied) == depth and max(tied, default=0) <= depth
        require(not tied or is_full, "transformer-tied-layers", tied, accepted)
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error
    return theirs


def _norm_first(theirs):
    """Return whether the operations around the sub-layers are those of pre-norm."""
    kinds = tuple(theirs[name].replace("d", "") for name in _PROCESSES)
    if kinds not in (_POST_NORM, _PRE_NORM):
        texts = ", ".join(f"{name}={theirs[name]!r}" for name in _PROCESSES)
        raise ValueError(
            f"{texts} are not supported together; supported are post-norm (transformer-postprocess "
            "dan) and pre-norm (transformer-preprocess n, transformer-postprocess da, "
            "transformer-postprocess-top n)"
        )
    operations = theirs["transformer-postprocess-emb"].replace("d", "")
    accepted = "d, n, nd or empty"
    require(operations in ("", "n"), "transformer-postprocess-emb", operations, accepted)
    return kinds == _PRE_NORM


def config_of(theirs: Mapping[str, Any], vocab_size: int, eos_id: int) -> TransformerConfig:
    """Return our config of a model.

    Args:
        theirs: Its options, see `checked`.
        vocab_size: Number of pieces, equal for source and target; the last one is padding, which
            also begins the decoder's input.
        eos_id: Id of EOS.
    """
    is_shared = theirs["tied-embeddings-all"] or theirs["tied-embeddings-src"]
    return TransformerConfig(
        source_vocab_size=vocab_size,
        target_vocab_size=vocab_size,
        d_model=theirs["dim-emb"],
        d_ff=theirs["transformer-dim-ffn"],
        decoder_d_ff=theirs["transformer-decoder-dim-ffn"] or None,
        num_encoder_layers=theirs["enc-depth"],
        num_decoder_layers=theirs["dec-depth"],
        num_heads=theirs["transformer-heads"],
        decoder_recurrence="ssru" if theirs["transformer-decoder-autoreg"] == RECURRENT else None,
        activation=ACTIVATIONS[theirs["transformer-ffn-activation"]],
        norm_first=_norm_first(theirs),
        norm_embeddings="n" in theirs["transformer-postprocess-emb"],
        positions="sinusoidal_tensor2tensor",
        epsilon=EPSILON,
        output_bias=True,
        share_embeddings=is_shared,
        tie_output=theirs["tied-embeddings-all"] or theirs["tied-embeddings"],
        pad_id=vocab_size - 1,
        bos_id=vocab_size - 1,
        eos_id=eos_id,
    )


def search_of(
    theirs: Mapping[str, Any], suppressed: Collection[int], path: str | os.PathLike
) -> dict[str, Any]:
    """Return the options with which our search equals `marian-decoder`.

    Args:
        theirs: Options of a decoder (`decoder.yml`).
        suppressed: Ids of pieces that are never generated, see `vocabularies.suppressed`.
        path: The file, for messages.

    Raises:
        ValueError: If an option has a value that is not supported; names it and the file.
    """
    known = {x: y for x, y in theirs.items() if x in _REFUSED_IN_SEARCH}
    FieldTable(_OF_SEARCH, refused=_REFUSED_IN_SEARCH).check(known, path)
    try:
        values = complete({x: y for x, y in theirs.items() if x in _OF_SEARCH}, _OF_SEARCH)
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error
    return dict(
        beam_size=values["beam-size"],
        length_penalty=float(values["normalize"]),
        scoring="marian",
        forced_eos=False,
        max_length_factor=int(values["max-length-factor"]),
        suppress_tokens=tuple(sorted(suppressed)),
    )
