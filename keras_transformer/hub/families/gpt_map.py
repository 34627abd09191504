"""Map of GPT-2 checkpoints."""

from __future__ import annotations

from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    norm,
    table,
    their_activation,
    token_id,
    token_ids,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    TOKEN_NAMES,
    TOKENS,
    activation,
    exactly,
    flag,
    positive,
    rate,
    read_same,
    size,
    token,
    write_same,
)
from keras_transformer.hub.families.general_fields import ONE_STACK
from keras_transformer.models import GPT, GPTConfig

_SIZES = ("vocab_size", "n_embd", "n_layer", "n_head", "n_positions")
_FIELDS = (
    ONE_STACK
    | {name: size() for name in _SIZES}
    | dict(
        n_inner=size(None),
        bos_token_id=token(50256),
        eos_token_id=token(50256),
        resid_pdrop=rate(0.1),
        activation_function=activation("gelu_new"),
        layer_norm_epsilon=positive(1e-5),
        tie_word_embeddings=flag(True),
        scale_attn_weights=exactly(True),
        scale_attn_by_inverse_layer_idx=exactly(False),
        add_cross_attention=exactly(False),
    )
)
_SUMMARY = ("type", "use_proj", "activation", "proj_to_labels")
_SAME = dict(  # our field -> Hugging Face's, with the same value
    vocab_size="vocab_size",
    d_model="n_embd",
    d_ff="n_inner",
    num_layers="n_layer",
    num_heads="n_head",
    dropout="resid_pdrop",
    epsilon="layer_norm_epsilon",
    max_length="n_positions",
    tie_output="tie_word_embeddings",
)


def _config(theirs, names):
    """Return our config of a GPT-2."""
    return GPTConfig(
        activation=ACTIVATIONS[theirs["activation_function"]],
        pad_id=token_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=token_id(theirs, "bos_token_id", "eos_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),
        **read_same(theirs, _SAME),
    )


def _config_file(config):
    """Return the `config.json` of a GPT-2."""
    if not config.use_bias:
        raise ValueError("use_bias must be True for GPT-2, got False")
    return write_same(config, _SAME | TOKEN_NAMES) | dict(
        architectures=["GPT2LMHeadModel"],
        embd_pdrop=config.dropout,
        attn_pdrop=0.0,
        activation_function=their_activation(config.activation),
    )


def _rules(config: GPTConfig) -> list[Rule]:
    """Return the rules of all weights of a GPT-2."""
    rules = table("embedding/tokens", "transformer.wte")
    rules += table("embedding/positions", "transformer.wpe")
    for i in range(config.num_layers):
        ours, theirs = f"decoder/block_{i}", f"transformer.h.{i}"
        fused, heads = f"{ours}/self_attention/query_key_value", (config.num_heads,) * 3
        rules += dense(fused, f"{theirs}.attn.c_attn", layout="same", heads=heads)
        for layer, name in (
            ("self_attention/output", "attn.c_proj"),
            ("feed_forward/hidden", "mlp.c_fc"),
            ("feed_forward/output", "mlp.c_proj"),
        ):
            rules += dense(f"{ours}/{layer}", f"{theirs}.{name}", layout="same")
        rules += norm(f"{ours}/self_attention_norm/norm", f"{theirs}.ln_1")
        rules += norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.ln_2")
    rules += norm("decoder/norm", "transformer.ln_f")
    if not config.tie_output:
        rules += dense("output", "lm_head", bias=False)
    return rules


FAMILIES = {
    "gpt2": Family(
        GPT,
        _config,
        _rules,
        _config_file,
        aliases={"lm_head.weight": ("transformer.wte.weight",)},
        unused=(".attn.bias", ".attn.masked_bias"),  # buffers with the causal mask
        prefix="transformer.",
        fields=_FIELDS,
        also_read=TOKENS,
        # Fields of a head that this model lacks, and one that only changes the order of operations.
        harmless=(*(f"summary_{x}" for x in _SUMMARY), "reorder_and_upcast_attn"),
        synonyms=dict(
            hidden_size="n_embd",
            max_position_embeddings="n_positions",
            num_attention_heads="n_head",
            num_hidden_layers="n_layer",
        ),
        names=_SAME | TOKEN_NAMES | {"activation": "activation_function"},
        architectures=("GPT2LMHeadModel", "GPT2Model"),
    )
}
