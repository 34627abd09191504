"""Places of our weights in Marian's files: names of arrays, and the factor of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from keras_transformer.config import TransformerConfig

TARGET = "target_embedding/tokens/embeddings"
LEGACY, NEW = "transformer", "transformer-new"  # values of Marian's option `type`
EPSILON = {LEGACY: 1e-6, NEW: 1e-5}  # of Marian's layer norms, which no option changes


class WeightPlace(NamedTuple):
    """The place of one of our weights in Marian's file.

    Args:
        path: Path of our weight.
        names: Names of Marian's arrays: several for a fused projection.
        factor: Marian's values are ours times this number.
        rank: Number of axes of Marian's arrays; a first axis of 1 is added where ours have fewer.
    """

    path: str
    names: tuple[str, ...]
    factor: float
    rank: int


def layout(config: TransformerConfig, kind: str) -> Iterator[WeightPlace]:
    """Yield the places of all weights but the tables of positions.

    The layers of `NEW` neither multiply embeddings by sqrt(D) nor have our epsilon. So the tokens'
    table contains the product, which the last norm undoes for a tied output; and all values of the
    residual stream are multiplied by a power of two, with which their epsilon is as small as ours.

    Args:
        config: The model's config.
        kind: `LEGACY` or `NEW`.
    """
    names = _Legacy() if kind == LEGACY else _New(config)
    stream = stream_factor(config, kind)
    tokens = token_factor(config, kind)
    if config.share_embeddings:
        yield WeightPlace(TARGET, ("Wemb",), tokens, 2)
    else:
        yield WeightPlace("source_embedding/tokens/embeddings", ("encoder_Wemb",), tokens, 2)
        yield WeightPlace(TARGET, ("decoder_Wemb",), tokens, 2)
    if not config.tie_output:
        yield WeightPlace("output/kernel", ("decoder_ff_logit_out_W",), 1.0, 2)
    if config.output_bias:
        yield WeightPlace("output_bias/bias", ("decoder_ff_logit_out_b",), 1.0, 2)
    final = 1 / tokens if config.tie_output else 1.0
    if config.norm_first:
        for stack, factor in (("encoder", 1.0), ("decoder", final)):
            yield from _norm(f"{stack}/norm", names.top(stack), factor, names.rank)
    for stack, number, blocks in _blocks(config):
        last = stack == "decoder" and number == config.num_decoder_layers - 1
        for block in blocks:
            path = f"{stack}/block_{number}/{block}"
            reading = 1.0 if config.norm_first else 1 / stream
            for part, letters in _PARTS[block].items():
                kernel, bias = (stream, stream) if part == "output" else (reading, 1.0)
                for weight, factor, rank in (("kernel", kernel, 2), ("bias", bias, names.rank)):
                    mark = "W" if weight == "kernel" else "b"
                    arrays = tuple(names.part(stack, number, block, mark + x) for x in letters)
                    yield WeightPlace(f"{path}/{part}/{weight}", arrays, factor, rank)
            is_final = last and block == "feed_forward"
            factor = 1.0 if config.norm_first else final if is_final else stream
            norm = names.norm(stack, number, block, config.norm_first)
            yield from _norm(f"{path}_norm/norm", norm, factor, names.rank)


def stream_factor(config: TransformerConfig, kind: str) -> float:
    """Return the power of two by which Marian's residual stream is larger than ours."""
    return 2.0 ** round(math.log2(EPSILON[kind] / config.epsilon) / 2)


def token_factor(config: TransformerConfig, kind: str) -> float:
    """Return the number by which Marian's table of tokens is larger than ours."""
    if kind == LEGACY:
        return 1.0
    scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    return scale * stream_factor(config, kind)


# Our projections of a block, and the ends of Marian's names of them.
_SELF = {"query_key_value": "qkv", "output": "o"}
_PARTS = {
    "attention": _SELF,
    "self_attention": _SELF,
    "cross_attention": {"query": "q", "key_value": "kv", "output": "o"},
    "feed_forward": {"hidden": "1", "output": "2"},
}

_LEGACY_BLOCKS = {"attention": "self", "self_attention": "self", "cross_attention": "context"}
_NEW_BLOCKS = {
    "attention": ("selfAttentionBlock", "selfAttention"),
    "self_attention": ("autoRegressiveBlock", "selfAttention"),
    "cross_attention": ("crossAttentionBlock", "crossAttention"),
}


def _blocks(config):
    """Yield (stack, number, names of its sub-layers) of each block."""
    for number in range(config.num_encoder_layers):
        yield "encoder", number, ("attention", "feed_forward")
    for number in range(config.num_decoder_layers):
        yield "decoder", number, ("self_attention", "cross_attention", "feed_forward")


def _norm(path, names, factor, rank):
    for weight, name in zip(("gamma", "beta"), names, strict=True):
        yield WeightPlace(f"{path}/{weight}", (name,), factor, rank)


class _Legacy:
    """Names of the arrays that Marian's training writes."""

    rank = 2  # axes of biases and norms

    def part(self, stack, number, block, part):
        return f"{stack}_l{number + 1}_{_LEGACY_BLOCKS.get(block, 'ffn')}_{part}"

    def norm(self, stack, number, block, norm_first):
        end = "ffn" if block == "feed_forward" else "Wo"
        return self._named(self.part(stack, number, block, end), "_pre" if norm_first else "")

    def top(self, stack):
        return self._named(f"{stack}_top", "")

    def _named(self, prefix, suffix):
        return [f"{prefix}_ln_{x}{suffix}" for x in ("scale", "bias")]


class _New:
    """Names of the arrays in the layers of `type: transformer-new`."""

    rank = 1

    def __init__(self, config):
        # Marian joins ReLU, the dense layer before it and dropout; other activations are layers.
        first, second = ("LinearReluDropout", 1) if config.activation == "relu" else ("Linear", 3)
        self._feed_forward = {"1": f"at(0)->as<marian::nn::{first}>()"}
        self._feed_forward["2"] = f"at({second})->as<marian::nn::Linear>()"

    def part(self, stack, number, block, part):
        weight, end = {"W": "weight", "b": "bias"}[part[0]], part[1]
        layer = self._layer(stack, number)
        if block == "feed_forward":
            return f"{layer}->filterBlock->layers->{self._feed_forward[end]}->{weight}"
        outer, inner = _NEW_BLOCKS[block]
        return f"{layer}->{outer}->{inner}->{end}Proj->{weight}"

    def norm(self, stack, number, block, norm_first):
        outer = _NEW_BLOCKS.get(block, ("filterBlock",))[0]
        place = "preprocessor" if norm_first else "postprocessor"
        return self._named(f"{self._layer(stack, number)}->{outer}->{place}")

    def top(self, stack):
        return self._named(f"TransformerBatch{stack.title()}->{stack}->postprocessor")

    def _layer(self, stack, number):
        kind = f"Transformer{stack.title()}Layer"
        kind += "WithCrossAttention" if stack == "decoder" else ""
        name = f"TransformerBatch{stack.title()}->{stack}->layers->at({number})"
        return f"{name}->as<marian::nn::{kind}>()"

    def _named(self, prefix):
        return [f"{prefix}->norm->{x}" for x in ("weight", "bias")]
