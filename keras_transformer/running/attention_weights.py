"""Attention weights of given pairs of texts, and their coverage of the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import COMPILES_EACH_SHAPE, without_gradients
from keras_transformer.layers import record_attention
from keras_transformer.layers.recording import aligning_layer
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.batches import search_batches
from keras_transformer.running.inputs import padded

TOKENS_PER_BATCH = 4096
LEAST = 1e-6  # a source token that gets less attention counts as one that gets this much


def attention_weights(
    model: EncoderDecoder,
    source_ids: Sequence[Sequence[int]],
    target_ids: Sequence[Sequence[int]],
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> Iterator[tuple[list[int], dict[str, list[np.ndarray]]]]:
    """Yield each batch: the indices of its pairs, and the weights (B, N, T, S) of each layer.

    The weights are lists by layer, under "encoder", "decoder" (empty without self-attention) and
    "cross". In the last two, row t is the query that predicts target token t. B may be more than
    the number of pairs: the other rows fill the batch.

    Args:
        model: The model.
        source_ids: Ids of each source, at most the model's `max_length`.
        target_ids: Ids of each target, EOS included.
        tokens_per_batch: Maximum tokens per side of a batch, padding included.
    """
    config = model.config
    longest = [max(len(s), len(t)) for s, t in zip(source_ids, target_ids, strict=True)]
    parts = {
        "encoder": [block.attention for block in model.encoder.blocks],
        "decoder": [x.self_attention for x in model.decoder.blocks if x.self_attention],
        "cross": [block.cross_attention for block in model.decoder.blocks],
    }
    for chosen, rows, length in search_batches(
        longest, tokens_per_batch, config.max_length, COMPILES_EACH_SHAPE
    ):
        source = padded([source_ids[i] for i in chosen], rows, length, config.pad_id)
        shifted = [[config.bos_id, *target_ids[i][:-1]] for i in chosen]
        target = padded(shifted, rows, length, config.pad_id)
        target[:, 0] = config.bos_id  # also in rows that only fill the batch
        inputs = {"source_ids": source, "target_ids": target}
        with record_attention() as weights, without_gradients():
            model({name: ops.convert_to_tensor(x) for name, x in inputs.items()})
        yield (
            chosen,
            {name: [_array(weights[x.path]) for x in layers] for name, layers in parts.items()},
        )


def alignment_weights(cross: Sequence[np.ndarray], guided: bool = False) -> np.ndarray:
    """Return the weights that align best (B, T, S), those of `Decoder.aligning`.

    Args:
        cross: Cross-attention of each layer (B, N, T, S).
        guided: Whether the first head was trained to align; else, the mean over the heads.
    """
    weights_BNTS = cross[aligning_layer(len(cross))]
    return weights_BNTS[:, 0] if guided else weights_BNTS.mean(axis=1)


def coverage(weights_TS: np.ndarray) -> float:
    """Return the sum over source tokens i of log min(sum_j p_ij, 1) (Wu et al. 2016, equation 14).

    It is 0 if the attention to each source token adds up to at least 1, else below 0. GNMT adds it,
    times beta, to the score of a translation.

    Args:
        weights_TS: Attention p of each target token to the source tokens that count.
    """
    return float(np.log(np.clip(weights_TS.sum(axis=0), LEAST, 1.0)).sum())


def _array(x: Any) -> np.ndarray:
    return ops.convert_to_numpy(ops.cast(x, "float32"))
