"""Weights of an encoder-decoder in the layout of CTranslate2, a C++ runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig, require
from keras_transformer.layers.embedding import sinusoids
from keras_transformer.layers.head_groups import unfuse
from keras_transformer.models import EncoderDecoder, T5Config
from keras_transformer.system.extras import missing
from keras_transformer.text import Tokenizer
from keras_transformer.weights.weight_files import weights_of

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH"}

Weights = Mapping[str, np.ndarray]


def write_model(
    out: Path, model: EncoderDecoder, tokenizer: Tokenizer, quantization: str | None = None
) -> None:
    """Write a model for CTranslate2 into an existing folder.

    Args:
        out: The folder.
        model: The model, with weights in float32.
        tokenizer: Its tokenizer.
        quantization: Type of the weights, such as "int8"; None: float32.

    Raises:
        ImportError: If the package `ctranslate2` is missing.
        ValueError: If the model is of another family, has several EOS tokens, or a decoder
            without self-attention.
    """
    spec = specification(
        model.config,
        weights_of(model),
        tokenizer.pieces_of("source"),
        tokenizer.pieces_of("target"),
        tokenizer.unk_id,
    )
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(os.fspath(out))


def specification(
    config: TransformerConfig | T5Config,
    weights: Weights,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    unk_id: int | None = None,
) -> Any:
    """Return CTranslate2's specification of a model, which has a method `save`.

    Args:
        config: The model's config.
        weights: Weights in float32, by Keras path.
        source_pieces, target_pieces: The vocabularies, ordered by id.
        unk_id: Id of the unknown token; None if the vocabulary has none.

    Raises:
        ImportError: If the package `ctranslate2` is missing.
        ValueError: If the model has several EOS tokens, or a decoder without self-attention.
    """
    kinds = T5Config, TransformerConfig
    accepted = f"one of {[kind.__name__ for kind in kinds]} for CTranslate2"
    require(isinstance(config, kinds), "config", type(config).__name__, accepted)
    accepted = "one id for CTranslate2, whose models have one eos_token"
    require(len(config.eos_ids) == 1, "eos_id", config.eos_id, accepted)
    recurrence = getattr(config, "decoder_recurrence", None)  # T5 has none
    accepted = "None for CTranslate2, whose decoders have self-attention"
    require(recurrence is None, "decoder_recurrence", recurrence, accepted)
    try:
        from ctranslate2.specs import common_spec, transformer_spec
    except ImportError as error:
        raise missing("writing CTranslate2 models", "ctranslate2") from error
    is_t5 = isinstance(config, T5Config)
    spec = transformer_spec.TransformerSpec.from_config(
        (config.num_encoder_layers, config.num_decoder_layers),
        config.num_heads,
        pre_norm=getattr(config, "norm_first", True),
        activation=getattr(common_spec.Activation, ACTIVATIONS[config.activation]),
        layernorm_embedding=getattr(config, "norm_embeddings", False),
        relative_attention_bias=is_t5,
        ffn_glu=getattr(config, "gated", False),
        rms_norm=is_t5,
    )
    spec.decoder.num_heads = np.dtype("int16").type(_heads(config, "decoder"))
    fill = _Filler(config, weights, is_t5)
    fill.stack(spec.encoder, "encoder", spec.encoder.embeddings[0])
    fill.stack(spec.decoder, "decoder", spec.decoder.embeddings)
    fill.output(spec.decoder)
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.decoder_start_token = target_pieces[config.bos_id]
    spec.config.bos_token = target_pieces[config.bos_id]
    spec.config.eos_token = target_pieces[config.eos_ids[0]]
    if unk_id is not None:
        spec.config.unk_token = target_pieces[unk_id]
    spec.config.layer_norm_epsilon = config.epsilon
    spec.register_source_vocabulary(list(source_pieces))
    spec.register_target_vocabulary(list(target_pieces))
    return spec


def _heads(config, side):
    of_decoder = getattr(config, "num_decoder_heads", None)  # T5 has one number for both sides
    return of_decoder if side == "decoder" and of_decoder else config.num_heads


class _Filler:
    """A writer of a model's weights into a specification of CTranslate2."""

    def __init__(self, config, weights, is_t5):
        self.config, self.weights, self.is_t5 = config, weights, is_t5
        self.shared = is_t5 or config.share_embeddings

    def stack(self, spec, side, embeddings):
        """Copy the encoder or the decoder, and its embedding."""
        config = self.config
        embeddings.weight = self.weights[f"{self._table(side)}/tokens/embeddings"]
        spec.scale_embeddings = False
        if not self.is_t5:
            spec.scale_embeddings = config.d_model**0.5 if config.scale_embeddings else 1.0
            spec.position_encodings.encodings = self._positions(side)
            if config.norm_embeddings:
                self.norm(spec.layernorm_embedding, f"{self._own_table(side)}/norm")
        if self.is_t5 or config.norm_first:
            self.norm(spec.layer_norm, f"{side}/norm")
        for i, layer in enumerate(spec.layer):
            block = f"{side}/block_{i}"
            name = "attention" if side == "encoder" else "self_attention"
            self.attention(layer.self_attention, f"{block}/{name}", ["query_key_value"])
            if self.is_t5:
                suffix = f"_{i}" if config.positions_by_layer else ""
                table = self.weights[f"{side}/relative_bias{suffix}/embedding/embeddings"]
                layer.self_attention.relative_attention_bias = table
                farthest = np.dtype("int32").type(config.max_distance)
                layer.self_attention.relative_attention_max_distance = farthest
            if side == "decoder":
                names = ["query", "key_value"]
                self.attention(layer.attention, f"{block}/cross_attention", names)
            self.feed_forward(layer.ffn, f"{block}/feed_forward")

    def attention(self, spec, path, projections):
        """Copy an attention sub-layer with its norm."""
        for linear, name in zip(spec.linear, [*projections, "output"], strict=True):
            self.linear(linear, f"{path}/{name}")
        if self.is_t5:
            spec.queries_scale = 1.0
        self.norm(spec.layer_norm, f"{path}_norm/norm")

    def feed_forward(self, spec, path):
        """Copy a feed-forward sub-layer with its norm."""
        self.linear(spec.linear_0, f"{path}/hidden")
        if self.is_t5 and self.config.gated:
            self.linear(spec.linear_0_noact, f"{path}/gate")
        self.linear(spec.linear_1, f"{path}/output")
        self.norm(spec.layer_norm, f"{path}_norm/norm")

    def output(self, spec):
        """Copy the output projection; padding and BOS, unless they are EOS, get a bias of -1e9."""
        config = self.config
        if config.tie_output:
            table = self.weights[f"{self._own_table('decoder')}/tokens/embeddings"]
        else:
            table = self.weights["output/kernel"].T
        spec.projection.weight = np.ascontiguousarray(table)
        bias = np.zeros(len(table), "float32")
        if "output_bias/bias" in self.weights:
            bias = self.weights["output_bias/bias"].copy()
        bias[list({config.pad_id, config.bos_id} - {*config.eos_ids})] = -1e9
        spec.projection.bias = bias
        if self.is_t5 and config.scale_output:
            spec.scale_outputs = np.dtype("float32").type(config.d_model**-0.5)

    def linear(self, spec, path):
        spec.weight = np.ascontiguousarray(self._by_projection(f"{path}/kernel").T)
        if f"{path}/bias" in self.weights:
            spec.bias = self._by_projection(f"{path}/bias")

    def norm(self, spec, path):
        """Copy a layer norm, or an RMS norm, which has only a scale."""
        if f"{path}/scale" in self.weights:
            spec.gamma = self.weights[f"{path}/scale"]
        else:
            spec.gamma = self.weights[f"{path}/gamma"]
            spec.beta = self.weights[f"{path}/beta"]

    def _by_projection(self, path):
        """Return a weight with the columns of queries first, then of keys, then of values."""
        count = {"query_key_value": 3, "key_value": 2}.get(path.split("/")[-2])
        value = self.weights[path]
        if count is None:
            return value
        heads = _heads(self.config, path.split("/")[0])
        return np.concatenate(unfuse(value, (heads,) * count), axis=-1)

    def _own_table(self, side):
        if self.is_t5:
            return "embedding"
        return "source_embedding" if side == "encoder" else "target_embedding"

    def _table(self, side):
        return self._own_table("decoder" if self.shared else side)

    def _positions(self, side):
        """Return the table of positions of one side: learned, sinusoids, or zeros for "none"."""
        config = self.config
        offset = config.position_offset
        if config.positions == "none":  # without a table, CTranslate2 adds sinusoids
            return np.zeros((config.max_length, config.d_model), "float32")
        if config.positions == "learned":
            path = f"{self._own_table(side)}/positions/embeddings"
            if path not in self.weights:
                path = f"{self._table(side)}/positions/embeddings"
            return self.weights[path][offset:]
        size = config.max_length + offset
        return sinusoids(size, config.d_model, config.positions)[offset:]
