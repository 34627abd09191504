"""Formulas of cost: parameters, FLOPs, memory, bytes between devices, failures.

Pure arithmetic from sizes: nothing is run, no backend is loaded. `benchmarks.cost` puts assumptions
into these formulas and prints the tables of docs/scale.md. Lengths and tokens are without padding.
A multiplication and an addition are two FLOPs; only matmuls are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FLOAT, HALF = 4, 2  # bytes of float32 and bfloat16
BACKWARD = 2  # the backward pass computes a product for each input of a forward product


@dataclass(frozen=True)
class Size:
    """Sizes of a model: encoder-decoder, or decoder-only if it has no encoder layers.

    Args:
        vocab_size: Number of token ids, shared by source and target.
        d_model: Width of the residual stream.
        d_ff: Width inside the feed-forward.
        decoder_layers: Number of decoder blocks.
        encoder_layers: Number of encoder blocks.
        num_heads: Number of query heads.
        num_kv_heads: Number of key and value heads; None: `num_heads`.
        head_dim: Width of a head; None: `d_model / num_heads`.
        gated: Whether the feed-forward has a gate.
        bias: Whether dense layers and norms have biases.
        final_norms: Whether each stack ends with a norm (pre-norm).
        tied: Whether the output projection is the embedding.
        buckets: Buckets of T5's relative positions per head and stack.
    """

    vocab_size: int
    d_model: int
    d_ff: int
    decoder_layers: int
    encoder_layers: int = 0
    num_heads: int = 8
    num_kv_heads: int | None = None
    head_dim: int | None = None
    gated: bool = False
    bias: bool = True
    final_norms: bool = False
    tied: bool = True
    buckets: int = 0

    @property
    def query_width(self) -> int:
        """Width of all queries of a token."""
        return self.num_heads * (self.head_dim or self.d_model // self.num_heads)

    @property
    def key_width(self) -> int:
        """Width of all keys of a token, and of all values."""
        return self.query_width // self.num_heads * (self.num_kv_heads or self.num_heads)

    @property
    def attention_weights(self) -> int:
        """Weights of an attention layer's kernels."""
        return 2 * self.d_model * (self.query_width + self.key_width)

    @property
    def feed_forward_weights(self) -> int:
        """Weights of a feed-forward layer's kernels."""
        return (2 + self.gated) * self.d_model * self.d_ff

    @property
    def attentions(self) -> int:
        """Attention layers of a decoder block: self-attention, and cross-attention if any."""
        return 2 if self.encoder_layers else 1


def parameters(size: Size) -> int:
    """Return the number of trained parameters."""
    norm = size.d_model * (1 + size.bias)
    attention = size.attention_weights
    feed_forward = size.feed_forward_weights
    if size.bias:
        attention += size.query_width + 2 * size.key_width + size.d_model
        feed_forward += (1 + size.gated) * size.d_ff + size.d_model
    encoder = size.encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = size.attentions * (attention + norm) + feed_forward + norm
    stacks = 2 if size.encoder_layers else 1
    ends = stacks * (size.final_norms * norm + size.buckets * size.num_heads)
    tables = (2 - size.tied) * size.vocab_size * size.d_model
    return encoder + size.decoder_layers * decoder + ends + tables


def block_flops(size: Size, source: int, target: int) -> int:
    """Return the FLOPs of all blocks' forward pass on one pair of these lengths.

    Causal attention is counted in full, as it is computed.
    """
    dense = 2 * (size.attention_weights + size.feed_forward_weights)
    scores = 4 * size.query_width  # scores and weighted sum, for each query and key
    flops = size.encoder_layers * source * (dense + scores * source)
    flops += size.decoder_layers * target * (dense + scores * target)
    if size.encoder_layers:
        queries = 4 * size.d_model * size.query_width + scores * source
        memory = 4 * size.d_model * size.key_width
        flops += size.decoder_layers * (target * queries + source * memory)
    return flops


def training_flops(size: Size, source: int, target: int, remat: bool = False) -> int:
    """Return the FLOPs of a training step on one pair; `remat` repeats the blocks' forward pass."""
    blocks = block_flops(size, source, target)
    logits = 2 * target * size.d_model * size.vocab_size
    return (1 + BACKWARD) * (blocks + logits) + remat * blocks


def search_flops(size: Size, source: int, target: int, beam: int) -> int:
    """Return the FLOPs of a beam search: each token attends to the source and to its own past."""
    encoder = block_flops(size, source, 0)
    dense = 2 * (size.attention_weights + size.feed_forward_weights)
    cross = 4 * size.d_model * size.query_width
    scores = 4 * size.query_width * source + 2 * size.query_width * target  # half the past
    step = size.decoder_layers * (dense + cross + scores) + 2 * size.d_model * size.vocab_size
    return encoder + target * beam * step


def search_bytes(size: Size, source: int, target: int, beam: int, rows: int) -> int:
    """Return the bytes that a search reads from memory for one of `rows` sentences, in bfloat16.

    Each step reads the decoder's weights and output projection once for all rows, the cached keys
    and values of the source once per row, and those of the past once per hypothesis.
    """
    decoder = size.attentions * size.attention_weights + size.feed_forward_weights
    weights = size.decoder_layers * decoder + size.vocab_size * size.d_model
    cached = 2 * size.key_width * size.decoder_layers * (source + beam * target // 2)
    return HALF * target * (weights // rows + cached)


def search_memory(size: Size, source: int, target: int, beam: int, rows: int) -> int:
    """Return the bytes of a search: weights, caches of keys and values, logits in float32."""
    cached = 2 * size.key_width * size.decoder_layers * (source + beam * target)
    return HALF * (parameters(size) + rows * cached) + FLOAT * rows * beam * size.vocab_size


def state_bytes(size: Size) -> int:
    """Return the bytes of weights, gradients and Adam's two moments, all in float32."""
    return 4 * FLOAT * parameters(size)


def activation_bytes(
    size: Size, source: int, target: int, remat: bool = False, width: int = HALF
) -> int:
    """Return the bytes that the blocks keep of one pair for the backward pass.

    As Korthikanti et al. 2022, section 4.1, count them, without dropout of attention weights, which
    the paper and this package do not have. With `remat` each block keeps its input, and one block
    at a time the rest.

    Args:
        size: Sizes of the model.
        source: Source length.
        target: Target length.
        remat: Whether blocks are computed again in the backward pass.
        width: Bytes of an activation.
    """
    encoder = _block_bytes(size, source, None, width)
    decoder = _block_bytes(size, target, source if size.encoder_layers else None, width)
    if not remat:
        return size.encoder_layers * encoder + size.decoder_layers * decoder
    tokens = size.encoder_layers * source + size.decoder_layers * target
    return width * size.d_model * tokens + max(bool(size.encoder_layers) * encoder, decoder)


def _block_bytes(size, length, source, width):
    residual = length * size.d_model
    hidden = (4 if size.gated else 2) * length * size.d_ff  # what enters and leaves activations
    total = width * (residual + hidden) + residual  # feed-forward, and its dropout's mask
    total += width * residual  # the norm
    for keys in [length] if source is None else [length, source]:
        inputs = residual + 2 * length * size.query_width + 2 * keys * size.key_width
        scores = size.num_heads * length * keys
        total += width * (inputs + scores) + residual + width * residual
    return total


def logit_bytes(size: Size, target: int, width: int = HALF) -> int:
    """Return the bytes of one text's logits: as computed, and in float32 for the loss."""
    return (width + FLOAT) * target * size.vocab_size


def all_gather(total: float, devices: int) -> float:
    """Return the bytes that each device sends in a ring; a reduce-scatter or all-to-all alike."""
    return total * (devices - 1) / devices


def all_reduce(total: float, devices: int) -> float:
    """Return the bytes that each device sends in a ring: a reduce-scatter and an all-gather."""
    return 2 * all_gather(total, devices)


def data_bytes(size: Size, devices: int) -> float:
    """Return the bytes a step of data parallel: one all-reduce of float32 gradients."""
    return all_reduce(FLOAT * parameters(size), devices)


def sharded_bytes(size: Size, devices: int) -> float:
    """Return the bytes a step of FSDP: weights gathered twice, gradients scattered, in float32."""
    return 3 * all_gather(FLOAT * parameters(size), devices)


def tensor_bytes(size: Size, source: int, target: int, devices: int) -> float:
    """Return the bytes a step of tensor parallel for these tokens of all the axis's devices.

    Each sub-layer needs one all-reduce of its output, and backward one of its input's gradient
    (Shoeybi et al. 2019, section 3); so do the embedding and the logits. Cross-attention has two
    inputs.
    """
    encoder = (4 * size.encoder_layers + bool(size.encoder_layers)) * source
    decoder = (2 * (size.attentions + 1) * size.decoder_layers + 2) * target
    memory = size.decoder_layers * source if size.encoder_layers else 0
    return all_reduce(HALF * size.d_model * (encoder + decoder + memory), devices)


def pipeline_bytes(size: Size, tokens: float) -> float:
    """Return the most bytes a step that a stage sends: activations forward, gradients backward."""
    return 2 * HALF * size.d_model * tokens


def pipeline_bubble(stages: int, microbatches: int) -> float:
    """Return the idle share of a pipeline's time (Huang et al. 2019, section 2.3)."""
    return (stages - 1) / (microbatches + stages - 1)


def context_bytes(size: Size, layers: int, tokens: float, devices: int) -> float:
    """Return the bytes a step of ring attention (Liu et al. 2023) over a sequence split n ways.

    Keys and values go round forward and again backward, then with their gradients.
    """
    return 3 * HALF * layers * 2 * size.key_width * tokens / devices * (devices - 1)


def expert_bytes(size: Size, layers: int, tokens: float, experts: int, devices: int) -> float:
    """Return the bytes a step of expert parallel: all-to-all to experts and back, both passes.

    Args:
        size: Sizes of the model.
        layers: Number of feed-forward layers that are mixtures of experts.
        tokens: Tokens per device.
        experts: Experts per token.
        devices: Devices that share the experts.
    """
    return 4 * layers * all_gather(HALF * size.d_model * experts * tokens, devices)


def best_interval(write: float, between_failures: float) -> float:
    """Return the best seconds between checkpoints (Young 1974; Daly 2006)."""
    return math.sqrt(2 * write * between_failures)


def lost_share(interval: float, write: float, restart: float, between_failures: float) -> float:
    """Return the share of time lost to writing, to restarts and to work done again, to first order.

    A failure loses half an interval on average.
    """
    return write / interval + (restart + interval / 2) / between_failures
