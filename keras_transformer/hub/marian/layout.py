"""Places of our weights in Marian's files: names of arrays, and factors of their values."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from keras_transformer.config import TransformerConfig
from keras_transformer.hub.families.family import Rule
from keras_transformer.hub.marian.weight_names import rules_of

TARGET = "target_embedding/tokens/embeddings"
LEGACY, NEW = "transformer", "transformer-new"  # values of Marian's option `type`
EPSILON = {LEGACY: 1e-6, NEW: 1e-5}  # of Marian's layer norms, which no option changes


class WeightPlace(NamedTuple):
    """The place of one of our weights in Marian's file.

    Args:
        rule: Path of our weight, names and form of Marian's arrays.
        factor: Marian's values are ours times this number.
    """

    rule: Rule
    factor: float


def layout(config: TransformerConfig, kind: str) -> Iterator[WeightPlace]:
    """Yield the places of all weights but the tables of positions.

    The layers of `NEW` do not multiply embeddings by sqrt(D), so the token table is multiplied by
    it. With a tied output, the last norm is divided by the factor of the table. The epsilon of
    these layers is fixed. So the residual stream is multiplied by a power of two: relative to the
    new stream, their epsilon equals ours up to a factor of two.

    Args:
        config: The model's config.
        kind: `LEGACY` or `NEW`.
    """
    for rule in rules_of(config, output_transposed=False):
        if kind == LEGACY:
            yield WeightPlace(rule, 1.0)
            continue
        names = tuple(_new_name(config, name) for name in rule.names)
        # Biases and norms of the new layers are vectors.
        form = rule.layout if names == rule.theirs else "same"
        rule = dataclasses.replace(rule, theirs=names, layout=form)
        yield WeightPlace(rule, _factor(config, rule.ours))


def stream_factor(config: TransformerConfig, kind: str) -> float:
    """Return the power of two by which our residual stream is multiplied to get Marian's."""
    return 2.0 ** round(math.log2(EPSILON[kind] / config.epsilon) / 2)


def token_factor(config: TransformerConfig, kind: str) -> float:
    """Return the number by which our table of tokens is multiplied to get Marian's."""
    if kind == LEGACY:
        return 1.0
    scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    return scale * stream_factor(config, kind)


def _factor(config, path):
    """Return the factor of a weight in the layers of `NEW`."""
    stream, tokens = stream_factor(config, NEW), token_factor(config, NEW)
    *_, layer, weight = path.split("/")
    if layer == "tokens":
        return tokens
    if layer == "norm":
        last = f"decoder/block_{config.num_decoder_layers - 1}/feed_forward_norm/norm"
        last = "decoder/norm" if config.norm_first else last
        if path.startswith(last):
            return 1 / tokens if config.tie_output else 1.0
        return 1.0 if config.norm_first else stream
    if "/block_" not in path:  # the output layer
        return 1.0
    if layer == "output":
        return stream
    return 1 / stream if weight == "kernel" and not config.norm_first else 1.0


# Names of blocks and attentions in the layers of `NEW`, by stack and part of the legacy name.
_NEW_BLOCKS = {
    ("encoder", "self"): ("selfAttentionBlock", "selfAttention"),
    ("decoder", "self"): ("autoRegressiveBlock", "selfAttention"),
    ("decoder", "context"): ("crossAttentionBlock", "crossAttention"),
}
_IN_LAYER = re.compile(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_(\w+)")
_TOP = re.compile(r"(encoder|decoder)_top_(\w+)")


def _new_name(config, name):
    """Return the name of an array in the layers of `type: transformer-new`."""
    if top := _TOP.fullmatch(name):
        stack, part = top.groups()
        return f"TransformerBatch{stack.title()}->{stack}->postprocessor->{_new_norm(part)}"
    if not (parts := _IN_LAYER.fullmatch(name)):
        return name
    stack, number, block, part = parts.groups()
    kind = f"Transformer{stack.title()}Layer"
    kind += "WithCrossAttention" if stack == "decoder" else ""
    layer = f"TransformerBatch{stack.title()}->{stack}->layers->at({int(number) - 1})"
    layer += f"->as<marian::nn::{kind}>()"
    outer, inner = _NEW_BLOCKS.get((stack, block), ("filterBlock", ""))
    if "_ln_" in part:
        place = "preprocessor" if config.norm_first else "postprocessor"
        return f"{layer}->{outer}->{place}->{_new_norm(part)}"
    weight, end = {"W": "weight", "b": "bias"}[part[0]], part[1]
    if block != "ffn":
        return f"{layer}->{outer}->{inner}->{end}Proj->{weight}"
    # Marian has one layer for a dense layer, ReLU and dropout; other activations are a layer.
    first, second = ("LinearReluDropout", 1) if config.activation == "relu" else ("Linear", 3)
    dense = {"1": f"at(0)->as<marian::nn::{first}>()"}
    dense["2"] = f"at({second})->as<marian::nn::Linear>()"
    return f"{layer}->{outer}->layers->{dense[end]}->{weight}"


def _new_norm(part):
    return f"norm->{'weight' if 'ln_scale' in part else 'bias'}"
