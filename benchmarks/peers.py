"""Our model rebuilt in other libraries: `transformers`, `torch.nn` and KerasHub.

Each function takes a `TransformerConfig` and our weights by Keras path, and returns a model that
computes the same function: `benchmarks.train` compares the losses, `benchmarks.decode` the
translations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig

Weights = Mapping[str, np.ndarray]


def sinusoids(max_length: int, d_model: int) -> np.ndarray:
    """Return the paper's position encodings (max_length, d_model).

    Our layers are not used for this: a peer's process need not import Keras.
    """
    angles = np.arange(max_length)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return pairs.reshape(max_length, d_model).astype("float32")


def attention_parts(
    weights: Weights, path: str, num_heads: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return (kernel (D, D), bias (D,)) of query, key, value and output of an attention layer."""
    if f"{path}/query_key_value/kernel" in weights:
        fused, parts = "query_key_value", ("query", "key", "value")
        layers = {}
    else:
        fused, parts = "key_value", ("key", "value")
        layers = {"query": (weights[f"{path}/query/kernel"], weights[f"{path}/query/bias"])}
    kernel, bias = weights[f"{path}/{fused}/kernel"], weights[f"{path}/{fused}/bias"]
    # Ours are ordered by head; `layers.head_groups.unfuse` is not imported, as above.
    by_head = kernel.reshape(len(kernel), num_heads, len(parts), -1)
    biases = bias.reshape(num_heads, len(parts), -1)
    for i, name in enumerate(parts):
        layers[name] = by_head[:, :, i].reshape(len(kernel), -1), biases[:, i].reshape(-1)
    layers["output"] = weights[f"{path}/output/kernel"], weights[f"{path}/output/bias"]
    return layers


def blocks(config: TransformerConfig) -> Iterator[tuple[str, int, dict[str, bool]]]:
    """Yield (stack, number, {our attention layer's name: is cross-attention}) of each block."""
    for number in range(config.num_encoder_layers):
        yield "encoder", number, {"attention": False}
    for number in range(config.num_decoder_layers):
        yield "decoder", number, {"self_attention": False, "cross_attention": True}


def marian(config: TransformerConfig, weights: Weights, attention: str = "sdpa") -> Any:
    """Return `transformers`' MarianMTModel, or for a pre-norm config its M2M100 model.

    Args:
        config: Sizes of the model.
        weights: Our weights by Keras path.
        attention: `attn_implementation` of `transformers`, "sdpa" or "eager".

    Raises:
        RuntimeError: If weights are missing from, or unknown to, the model of `transformers`.
    """
    import torch

    model = _untrained_marian(config, attention)
    state = _marian_weights(config, weights)
    state = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in state.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    rest = [
        n for n in missing if not any(x in n for x in ("embed_", "lm_head", "final_logits_bias"))
    ]
    if rest or unexpected:
        raise RuntimeError(
            f"weights do not fit transformers' model: missing {rest}, unexpected {unexpected}"
        )
    model.tie_weights()
    positions = torch.from_numpy(sinusoids(config.max_length + 2, config.d_model))
    for stack in (model.model.encoder, model.model.decoder):
        table = stack.embed_positions
        if config.norm_first:  # M2M100 counts positions from pad_id + 1
            shift = torch.zeros(config.pad_id + 1, config.d_model)
            table.weights = torch.cat([shift, positions])[: table.weights.shape[0]]
        else:
            table.weight.data.copy_(positions[: config.max_length])
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    return model


def _untrained_marian(config, attention):
    import transformers

    sizes = dict(
        vocab_size=config.target_vocab_size,
        d_model=config.d_model,
        encoder_layers=config.num_encoder_layers,
        decoder_layers=config.num_decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.num_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        dropout=config.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        activation_function=config.activation,
        scale_embedding=True,
        max_position_embeddings=config.max_length,
        pad_token_id=config.pad_id,
        bos_token_id=config.bos_id,
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.bos_id,
        forced_eos_token_id=config.eos_id,
        attn_implementation=attention,
    )
    if config.norm_first:  # M2M100 is the pre-norm form of MarianMT
        return transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**sizes))
    return transformers.MarianMTModel(transformers.MarianConfig(**sizes))


def _marian_weights(config, weights):
    """Return our weights under the names of `transformers`."""
    state = {"model.shared.weight": weights["target_embedding/tokens/embeddings"]}

    def put(name, kernel, bias):
        state[f"{name}.weight"], state[f"{name}.bias"] = kernel.T, bias

    def norm(name, path):
        state[f"{name}.weight"], state[f"{name}.bias"] = (
            weights[f"{path}/gamma"],
            weights[f"{path}/beta"],
        )

    for stack, number, attentions in blocks(config):
        layer, block = f"model.{stack}.layers.{number}", f"{stack}/block_{number}"
        for name, is_cross in attentions.items():
            prefix = f"{layer}.{'encoder_attn' if is_cross else 'self_attn'}"
            parts = attention_parts(weights, f"{block}/{name}", config.num_heads)
            for part, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out")):
                put(f"{prefix}.{letter}_proj", *parts[part])
            norm(f"{prefix}_layer_norm", f"{block}/{name}_norm/norm")
        for name, ff in (("fc1", "hidden"), ("fc2", "output")):
            path = f"{block}/feed_forward/{ff}"
            put(f"{layer}.{name}", weights[f"{path}/kernel"], weights[f"{path}/bias"])
        norm(f"{layer}.final_layer_norm", f"{block}/feed_forward_norm/norm")
    if config.norm_first:
        for stack in ("encoder", "decoder"):
            norm(f"model.{stack}.layer_norm", f"{stack}/norm")
    return state


def torch_transformer(config: TransformerConfig, weights: Weights) -> Any:
    """Return `torch.nn.Transformer` with tied input embedding and output projection."""
    import torch
    from torch import nn

    torch.backends.mha.set_fastpath_enabled(False)  # fails under autocast (PyTorch 2.13)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(config.target_vocab_size, config.d_model)
            self.register_buffer(
                "positions", torch.from_numpy(sinusoids(config.max_length, config.d_model))
            )
            self.dropout = nn.Dropout(config.dropout)
            self.transformer = nn.Transformer(
                config.d_model, config.num_heads, config.num_encoder_layers,
                config.num_decoder_layers, config.d_ff, config.dropout, config.activation,
                layer_norm_eps=1e-6, batch_first=True, norm_first=config.norm_first,
            )  # fmt: skip
            if not config.norm_first:
                self.transformer.encoder.norm = self.transformer.decoder.norm = None
            for module in self.modules():  # the paper applies dropout to sub-layers' outputs only
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
                if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                    module.dropout.p = 0.0

        def embed(self, ids):
            x = self.tokens(ids) * config.d_model**0.5 + self.positions[: ids.shape[1]]
            return self.dropout(x)

        def forward(self, source_ids, target_ids):
            padding = source_ids == config.pad_id
            causal = nn.Transformer.generate_square_subsequent_mask(
                target_ids.shape[1], device=target_ids.device, dtype=torch.bool
            )
            x = self.transformer(
                self.embed(source_ids), self.embed(target_ids), tgt_mask=causal,
                src_key_padding_mask=padding, memory_key_padding_mask=padding,
                tgt_is_causal=True,
            )  # fmt: skip
            return x @ self.tokens.weight.T

    model = Model()
    state = _torch_weights(config, weights)
    state = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in state.items()}
    model.load_state_dict({"positions": model.positions, **state})
    return model


def _torch_weights(config, weights):
    """Return our weights under the names of `torch_transformer`'s model."""
    state = {"tokens.weight": weights["target_embedding/tokens/embeddings"]}
    for stack, number, attentions in blocks(config):
        layer, block = f"transformer.{stack}.layers.{number}", f"{stack}/block_{number}"
        norms = [f"{block}/{name}_norm/norm" for name in attentions]
        for name, is_cross in attentions.items():
            prefix = f"{layer}.{'multihead_attn' if is_cross else 'self_attn'}"
            parts = attention_parts(weights, f"{block}/{name}", config.num_heads)
            inputs = [parts[part] for part in ("query", "key", "value")]
            state[f"{prefix}.in_proj_weight"] = np.concatenate([kernel.T for kernel, _ in inputs])
            state[f"{prefix}.in_proj_bias"] = np.concatenate([bias for _, bias in inputs])
            state[f"{prefix}.out_proj.weight"] = parts["output"][0].T
            state[f"{prefix}.out_proj.bias"] = parts["output"][1]
        for name, ff in (("linear1", "hidden"), ("linear2", "output")):
            state[f"{layer}.{name}.weight"] = weights[f"{block}/feed_forward/{ff}/kernel"].T
            state[f"{layer}.{name}.bias"] = weights[f"{block}/feed_forward/{ff}/bias"]
        for i, path in enumerate([*norms, f"{block}/feed_forward_norm/norm"], 1):
            state[f"{layer}.norm{i}.weight"] = weights[f"{path}/gamma"]
            state[f"{layer}.norm{i}.bias"] = weights[f"{path}/beta"]
    if config.norm_first:
        for stack in ("encoder", "decoder"):
            state[f"transformer.{stack}.norm.weight"] = weights[f"{stack}/norm/gamma"]
            state[f"transformer.{stack}.norm.bias"] = weights[f"{stack}/norm/beta"]
    return state


def keras_hub_transformer(config: TransformerConfig, weights: Weights, dtype: str) -> Any:
    """Return a model of KerasHub's encoder and decoder layers, with the dtype policy `dtype`."""
    import keras
    import keras_hub
    from keras import ops

    ids = {n: keras.Input((None,), dtype="int32", name=n) for n in ("source_ids", "target_ids")}
    tokens = keras_hub.layers.ReversibleEmbedding(
        config.target_vocab_size, config.d_model, name="tokens", dtype=dtype
    )
    embedding_dropout = keras.layers.Dropout(config.dropout, dtype=dtype)

    class Embed(keras.layers.Layer):
        def __init__(self):
            super().__init__(dtype=dtype)
            self.positions = keras_hub.layers.SinePositionEncoding(dtype=dtype)

        def call(self, x):
            x = x * ops.cast(config.d_model**0.5, x.dtype)
            return x + self.positions(x)

    options = dict(
        intermediate_dim=config.d_ff, num_heads=config.num_heads, dropout=config.dropout,
        activation=config.activation, layer_norm_epsilon=1e-6, normalize_first=config.norm_first,
        dtype=dtype,
    )  # fmt: skip
    padding = ops.not_equal(ids["source_ids"], config.pad_id)
    memory = embedding_dropout(Embed()(tokens(ids["source_ids"])))
    for number in range(config.num_encoder_layers):
        block = keras_hub.layers.TransformerEncoder(**options, name=f"encoder_{number}")
        memory = block(memory, padding_mask=padding)
    x = embedding_dropout(Embed()(tokens(ids["target_ids"])))
    for number in range(config.num_decoder_layers):
        block = keras_hub.layers.TransformerDecoder(**options, name=f"decoder_{number}")
        x = block(x, memory, encoder_padding_mask=padding)
    model = keras.Model(ids, tokens(x, reverse=True))

    tokens.embeddings.assign(weights["target_embedding/tokens/embeddings"])
    for stack, number, attentions in blocks(config):
        layer, path = model.get_layer(f"{stack}_{number}"), f"{stack}/block_{number}"
        for name, is_cross in attentions.items():
            kind = "cross" if is_cross else "self"
            attention = getattr(layer, f"_{kind}_attention_layer")
            parts = attention_parts(weights, f"{path}/{name}", config.num_heads)
            for part, (kernel, bias) in parts.items():
                dense = getattr(attention, f"_{part}_dense")
                dense.kernel.assign(kernel.reshape(dense.kernel.shape))
                dense.bias.assign(bias.reshape(dense.bias.shape))
            _keras_norm(
                getattr(layer, f"_{kind}_attention_layer_norm"), weights, f"{path}/{name}_norm"
            )
        for name, ff in (("intermediate", "hidden"), ("output", "output")):
            dense = getattr(layer, f"_feedforward_{name}_dense")
            dense.kernel.assign(weights[f"{path}/feed_forward/{ff}/kernel"])
            dense.bias.assign(weights[f"{path}/feed_forward/{ff}/bias"])
        _keras_norm(layer._feedforward_layer_norm, weights, f"{path}/feed_forward_norm")
    return model


def _keras_norm(layer, weights, path):
    layer.gamma.assign(weights[f"{path}/norm/gamma"])
    layer.beta.assign(weights[f"{path}/norm/beta"])
