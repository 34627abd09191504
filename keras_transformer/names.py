"""Names of our options in other programs, so that an error can suggest ours."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

# Our names for each name in another program. An error suggests only names that the class accepts:
# `num_layers`, or the numbers of encoder and decoder layers. Names that differ from ours by a
# letter or two need no entry.
THEIRS = {
    # KerasHub, and KerasNLP before it
    "intermediate_dim": ("d_ff",),
    "hidden_dim": ("d_model",),
    "embedding_dim": ("d_embedding", "d_model"),
    "key_dim": ("head_dim",),
    "num_query_heads": ("num_heads",),
    "num_key_value_heads": ("num_kv_heads",),
    "vocabulary_size": ("vocab_size", "source_vocab_size", "target_vocab_size"),
    "max_sequence_length": ("max_length",),
    "sequence_length": ("max_length",),
    "layer_norm_epsilon": ("epsilon",),
    "normalize_first": ("norm_first",),
    "num_segments": ("num_types",),
    "sliding_window_size": ("window",),
    "rope_max_wavelength": ("theta",),
    "use_causal_mask": ("causal",),
    # transformers
    "hidden_size": ("d_model",),
    "n_embd": ("d_model",),
    "dim": ("d_model",),
    "embedding_size": ("d_embedding", "d_model"),
    "intermediate_size": ("d_ff",),
    "n_inner": ("d_ff",),
    "encoder_ffn_dim": ("d_ff",),
    "decoder_ffn_dim": ("decoder_d_ff", "d_ff"),
    "num_hidden_layers": ("num_layers", "num_encoder_layers", "num_decoder_layers"),
    "n_layer": ("num_layers", "num_encoder_layers", "num_decoder_layers"),
    "n_layers": ("num_layers", "num_encoder_layers", "num_decoder_layers"),
    "encoder_layers": ("num_encoder_layers", "num_layers"),
    "decoder_layers": ("num_decoder_layers", "num_layers"),
    "num_attention_heads": ("num_heads",),
    "n_head": ("num_heads",),
    "n_heads": ("num_heads",),
    "encoder_attention_heads": ("num_heads",),
    "decoder_attention_heads": ("num_decoder_heads", "num_heads"),
    "d_kv": ("head_dim",),
    "max_position_embeddings": ("max_length",),
    "n_positions": ("max_length",),
    "n_ctx": ("max_length",),
    "layer_norm_eps": ("epsilon",),
    "rms_norm_eps": ("epsilon",),
    "hidden_act": ("activation",),
    "hidden_activation": ("activation",),
    "activation_function": ("activation",),
    "hidden_dropout_prob": ("dropout",),
    "dropout_rate": ("dropout",),
    "encoder_layerdrop": ("layer_drop",),
    "type_vocab_size": ("num_types",),
    "rope_theta": ("theta",),
    "rope_scaling": ("scaling", "rotary"),
    "sliding_window": ("window",),
    "relative_attention_num_buckets": ("num_buckets",),
    "relative_attention_max_distance": ("max_distance",),
    "tie_word_embeddings": ("tie_output",),
    "scale_embedding": ("scale_embeddings", "scale"),
    "decoder_start_token_id": ("bos_id",),
    "pad_token_id": ("pad_id",),
    "bos_token_id": ("bos_id",),
    "eos_token_id": ("eos_id",),
    # fairseq
    "embed_dim": ("d_model",),
    "encoder_embed_dim": ("d_model",),
    "decoder_embed_dim": ("d_model",),
    "encoder_ffn_embed_dim": ("d_ff",),
    "decoder_ffn_embed_dim": ("decoder_d_ff", "d_ff"),
    "encoder_normalize_before": ("norm_first",),
    "decoder_normalize_before": ("norm_first",),
    "share_all_embeddings": ("share_embeddings", "tie_output"),
    "share_decoder_input_output_embed": ("tie_output",),
    "max_source_positions": ("max_length",),
    "max_target_positions": ("max_length",),
    "activation_fn": ("activation",),
    # torch.nn
    "nhead": ("num_heads",),
    "dim_feedforward": ("d_ff",),
    # names that other classes of ours use
    "num_layers": ("num_encoder_layers", "num_decoder_layers"),
    "num_encoder_layers": ("num_layers",),
    "num_decoder_layers": ("num_layers",),
    "vocab_size": ("source_vocab_size", "target_vocab_size"),
    # searches
    "num_beams": ("beam_size",),
    "beam": ("beam_size",),
    "lenpen": ("length_penalty",),
    "num_return_sequences": ("num_hypotheses",),
    "nbest": ("num_hypotheses",),
}


def advice(unknown: Iterable[str], accepted: Collection[str]) -> str:
    """Return the end of an error: the names that were probably meant, if any, and all accepted."""
    meant: dict[str, None] = {}
    for name in map(str, unknown):
        names = [x for x in THEIRS.get(name, ()) if x in accepted]
        meant |= dict.fromkeys(names or difflib.get_close_matches(name, sorted(accepted), n=1))
    question = f", did you mean {' and '.join(map(repr, meant))}?" if meant else ""
    return f"{question}; accepted are {sorted(accepted)}"


def refuse_unknown(owner: str, given: Iterable[str], accepted: Collection[str]) -> None:
    """Raise TypeError for keyword arguments that a class does not accept.

    Args:
        owner: Name of the class.
        given: Names of the keyword arguments.
        accepted: Names of those that it accepts.
    """
    if unknown := [name for name in given if name not in accepted]:
        raise TypeError(f"{owner} has no argument {unknown}{advice(unknown, accepted)}")
