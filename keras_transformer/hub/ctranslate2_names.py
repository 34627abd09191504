"""Names of weights and settings in the format of CTranslate2."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from keras_transformer.config import require

# Names of weights in Hugging Face's families, with "/" for ".", become names in CTranslate2 by
# these substitutions, one after the other.
_NORMS = ((r"norm(\w*)/weight", r"norm\1/gamma"), (r"norm(\w*)/bias", r"norm\1/beta"))
_BART = (
    ("^model/", ""),
    ("/layers/", "/layer_"),
    ("self_attn_layer_norm", "self_attention/layer_norm"),
    ("encoder_attn_layer_norm", "attention/layer_norm"),
    ("final_layer_norm", "ffn/layer_norm"),
    ("self_attn/[qkv]_proj", "self_attention/linear_0"),
    ("self_attn/out_proj", "self_attention/linear_1"),
    ("encoder_attn/q_proj", "attention/linear_0"),
    ("encoder_attn/[kv]_proj", "attention/linear_1"),
    ("encoder_attn/out_proj", "attention/linear_2"),
    ("/fc1/", "/ffn/linear_0/"),
    ("/fc2/", "/ffn/linear_1/"),
    ("^encoder/embed_tokens", "encoder/embeddings_0"),
    ("^(shared|decoder/embed_tokens)", "decoder/embeddings"),
    ("embed_positions/weight", "position_encodings/encodings"),
    ("^lm_head", "decoder/projection"),
    ("^final_logits_bias", "decoder/projection/bias"),
    *_NORMS,
)
_T5 = (
    ("^shared", "decoder/embeddings"),
    ("^lm_head", "decoder/projection"),
    ("/final_layer_norm/", "/layer_norm/"),
    ("/block/", "/layer_"),
    ("/layer/0/layer_norm", "/self_attention/layer_norm"),
    (r"^encoder/(\w+)/layer/1/layer_norm", r"encoder/\1/ffn/layer_norm"),
    ("/layer/1/layer_norm", "/attention/layer_norm"),
    ("/layer/2/layer_norm", "/ffn/layer_norm"),
    (r"/layer/\d/", "/"),
    ("SelfAttention/relative_attention_bias/weight", "self_attention/relative_attention_bias"),
    ("SelfAttention/[qkv]/", "self_attention/linear_0/"),
    ("SelfAttention/o/", "self_attention/linear_1/"),
    ("EncDecAttention/q/", "attention/linear_0/"),
    ("EncDecAttention/[kv]/", "attention/linear_1/"),
    ("EncDecAttention/o/", "attention/linear_2/"),
    ("DenseReluDense/wi(_0)?/", "ffn/linear_0/"),
    ("DenseReluDense/wi_1/", "ffn/linear_0_noact/"),
    ("DenseReluDense/wo/", "ffn/linear_1/"),
    *_NORMS,
)
_SUBSTITUTIONS = {"bart": _BART, "t5": _T5, "whisper": _BART}
# Layers that CTranslate2 fuses, and the letters of the fused parts in their order.
_FUSED = (
    (r"(?:self_attn|SelfAttention)\.([qkv])(?:_proj)?\.", "qkv"),
    (r"(?:encoder_attn|EncDecAttention)\.([kv])(?:_proj)?\.", "kv"),
)

# Accepted values of the variables that are one number, by the end of their name. None: any value,
# because the number is read, or does not change the results of these models.
NUMBERS: dict[str, tuple[Any, ...] | None] = dict(
    activation=None,
    num_heads=None,
    pre_norm=None,
    scale_embeddings=None,
    start_from_zero_embedding=None,
    scale_outputs=None,
    queries_scale=None,
    relative_attention_max_distance=None,
    weight_scale=None,  # of 16-bit weights
    alignment_layer=None,
    alignment_heads=None,
    alibi=(0,),
    alibi_use_positive_positions=None,  # of ALiBi
    scale_alibi=None,
    embeddings_merge=None,  # of several source embeddings, which are refused
    multi_query_attention=(0,),
)
# Accepted values of the fields of `config.json`, as in `NUMBERS`.
FIELDS: dict[str, tuple[Any, ...] | None] = dict(
    bos_token=None,
    eos_token=None,
    unk_token=None,
    decoder_start_token=None,
    add_source_bos=(False,),
    add_source_eos=None,  # our tokenizers always add EOS
    layer_norm_epsilon=None,
    multi_query_attention=(False,),
    alignment_heads=None,
    lang_ids=None,
    suppress_ids=None,
    suppress_ids_begin=None,
)


def place_of(name: str, kind: str) -> tuple[str, int, int]:
    """Return where a weight of a Hugging Face family is in CTranslate2's file.

    Args:
        name: Its name in the family's rules.
        kind: The family: "bart", which stands for its relatives, too; "t5" or "whisper".

    Returns:
        The name of the variable, the index of the part of it that is this weight, and the number of
        its equal parts; 0 and 1 if the weight is the whole variable.
    """
    place = name.replace(".", "/")
    for pattern, replacement in _SUBSTITUTIONS[kind]:
        place = re.sub(pattern, replacement, place)
    for pattern, letters in _FUSED:
        if match := re.search(pattern, name):
            return place, letters.index(match[1]), len(letters)
    return place, 0, 1


def check_known(
    values: Mapping[str, Any],
    accepted: Mapping[str, tuple[Any, ...] | None],
    path: str | os.PathLike,
) -> None:
    """Raise ValueError for an unknown name, or a value that is not accepted; names it.

    Args:
        values: Values by name; of a name with "/", the last part counts.
        accepted: `NUMBERS` or `FIELDS`.
        path: The file, for messages.
    """
    for name, value in values.items():
        end = name.rpartition("/")[2]
        known = accepted.get(end, ())
        choices = "absent" if end not in accepted else " or ".join(map(repr, known or ()))
        require(known is None or value in known, f"{name} in {path}", value, choices)
