"""Mixtures of experts: feed-forwards of which each token uses a few (Shazeer et al. 2017)."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.config import require
from keras_transformer.layers.block_options import BlockOptions, ExpertOptions
from keras_transformer.layers.blocks import block_mode
from keras_transformer.layers.feed_forward import FeedForward, activation_of
from keras_transformer.layers.layer import Layer

# A copy of a matrix is read, written and read again.
_COPY = 3
# Rows for which a product takes about as long as reading its matrix, on a CPU.
_EVEN_ROWS = 32


@keras.saving.register_keras_serializable("keras_transformer")
class MixtureOfExperts(Layer):
    """MoE(x) = sum over e in TopK(p) of p_e FFN_e(x), where p = softmax(x R).

    Each of E experts is a `FeedForward`, and the router R chooses K of them for each token (Shazeer
    et al. 2017, section 2; Jiang et al. 2024, section 2.1). In training, a loss keeps the experts
    equally busy (Fedus et al. 2021, equations 4 to 6): coefficient * E * sum over e of f_e P_e,
    with f_e the share of tokens that use expert e, and P_e the mean of p_e. It counts all tokens,
    padding included.

    With N tokens, the output is computed in the cheaper of two ways, which differ only by rounding:

    - In blocks: the N K pairs of a token and an expert are sorted by expert, into blocks of
      ceil(N K / E) pairs of one expert. At most 2 N K rows are multiplied, and the weights of at
      most 2 E experts are copied, once for each block. If N K is at most E, as in a step of a
      search, each pair is a block, and only the weights of the chosen experts are read.
    - All at once: every expert is computed for every token, with the weight 0 where the token does
      not use it. This multiplies N E rows and copies nothing. It is cheaper with few tokens per
      expert, or if K is more than E / 2. It is also used if N is unknown when a graph is made, as
      in TensorFlow's, and with `distribute`, where each device of the model axis computes its
      experts.

    Args:
        d_ff: F, the width of an expert's hidden layer.
        num_experts: E.
        activation: Activation of the hidden layers, a Keras name or "gelu_tanh".
        options: Other fields of `ExpertOptions` and arguments of `keras.layers.Layer`. `use_bias`
            is False by default.

    Call arguments:
        x: (B, T, D).
        training: Whether to add the loss that balances the experts.

    Returns:
        (B, T, D).
    """

    options_class = ExpertOptions

    def __init__(self, d_ff: int, num_experts: int, activation: str = "relu", **options: Any):
        options.setdefault("use_bias", False)
        layer_options = self.options_class.pop_from(
            options, d_ff=d_ff, num_experts=num_experts, activation=activation
        )
        super().__init__(**options)
        self.options = layer_options
        self.activation = keras.activations.get(activation_of(activation))

    def build(self, x_shape: Any) -> None:
        mode = block_mode()
        require(mode is None, "precision", mode, "one of floats: experts have no 4 or 8 bits")
        count, width = self.options.num_experts, x_shape[-1]
        wide, narrow = (count, width, self.options.d_ff), (count, self.options.d_ff, width)
        self.router = self.add_weight(shape=(width, count), name="router")
        self.hidden = self._stacked(wide, "experts_hidden")
        self.gate = self._stacked(wide, "experts_gate") if self.options.gated else None
        self.output_projection = self._stacked(narrow, "experts_output")

    def _stacked(self, shape, name):
        # Glorot's range for each expert: Keras takes the axis of the experts for a factor of both
        # widths.
        initial = keras.initializers.VarianceScaling(shape[0], "fan_avg", "uniform")
        return self.add_weight(shape=shape, initializer=initial, name=name)

    def call(self, x: Any, training: bool = False) -> Any:
        x_ND = ops.reshape(x, (-1, x.shape[-1]))
        probability_NE = ops.softmax(ops.cast(ops.matmul(x_ND, self.router), "float32"))
        weight_NK, expert_NK = ops.top_k(probability_NE, self.options.experts_per_token)
        if training and self.options.balance_loss:
            self.add_loss(self.options.balance_loss * self._balance(probability_NE, expert_NK))
        if self.options.normalize_routing:
            weight_NK = weight_NK / ops.sum(weight_NK, axis=-1, keepdims=True)
        num_rows = self._block_rows(x_ND.shape[0])
        if num_rows is None:
            output_ND = self._of_all(x_ND, weight_NK, expert_NK)
        else:
            output_ND = self._of_blocks(x_ND, weight_NK, expert_NK, num_rows)
        return ops.reshape(output_ND, ops.shape(x))

    def _block_rows(self, num_tokens):
        """Return the rows of a block; None if it costs less to compute all experts."""
        is_known = isinstance(num_tokens, int)
        if not is_known or keras.distribution.distribution() is not None:
            return None  # a sort would gather the tokens and experts of all devices
        count, num_pairs = self.options.num_experts, num_tokens * self.options.experts_per_token
        num_rows = max(1, -(-num_pairs // count))
        cost = _num_blocks(num_pairs, num_rows, count) * (_COPY + num_rows / _EVEN_ROWS)
        return num_rows if cost < count * (1 + num_tokens / _EVEN_ROWS) else None

    def _hidden(self, x, weights_of):
        hidden = self.activation(ops.matmul(x, weights_of(self.hidden)))
        return hidden if self.gate is None else hidden * ops.matmul(x, weights_of(self.gate))

    def _of_all(self, x_ND, weight_NK, expert_NK):
        """Return the output, with all experts computed for all tokens."""
        uses_NKE = ops.one_hot(expert_NK, self.options.num_experts, dtype="float32")
        weight_NE = ops.sum(uses_NKE * ops.expand_dims(weight_NK, -1), axis=1)
        weight_EN1 = ops.expand_dims(ops.transpose(weight_NE), -1)
        hidden_ENF = self._hidden(x_ND, lambda weights: weights)
        hidden_ENF = hidden_ENF * ops.cast(weight_EN1, hidden_ENF.dtype)
        return ops.einsum("enf,efd->nd", hidden_ENF, self.output_projection)

    def _of_blocks(self, x_ND, weight_NK, expert_NK, num_rows):
        """Return the output, with pairs of token and expert in blocks (B, M) of an expert each."""
        expert_P = ops.reshape(expert_NK, (-1,))
        expert_B, pair_BM, place_P = _blocks(expert_P, num_rows, self.options.num_experts)

        def weights_of(weights):
            return ops.take(weights, expert_B, axis=0)

        x_BMD = ops.take(x_ND, pair_BM // self.options.experts_per_token, axis=0)
        output_BMD = ops.matmul(self._hidden(x_BMD, weights_of), weights_of(self.output_projection))
        output_PD = ops.take(ops.reshape(output_BMD, (-1, x_ND.shape[-1])), place_P, axis=0)
        output_NKD = ops.reshape(output_PD, (*weight_NK.shape, x_ND.shape[-1]))
        weight_NK1 = ops.cast(ops.expand_dims(weight_NK, -1), output_NKD.dtype)
        return ops.sum(output_NKD * weight_NK1, axis=1)

    def _balance(self, probability_NE, expert_NK):
        count = self.options.num_experts
        uses_NKE = ops.one_hot(expert_NK, count, dtype="float32")
        share_E = ops.mean(ops.sum(uses_NKE, axis=1), axis=0)
        return count * ops.sum(share_E * ops.mean(probability_NE, axis=0))


def _num_blocks(num_pairs, num_rows, num_experts):
    """Return the largest possible number of blocks: each expert has one that is not full."""
    return num_pairs if num_rows == 1 else num_pairs // num_rows + num_experts


def _blocks(expert_P, num_rows, num_experts):
    """Return the expert (B,) of each block, its pairs (B, M), and the row (P,) of each pair.

    Blocks of one expert follow each other. Rows and blocks without a pair repeat others.
    """
    (num_pairs,) = expert_P.shape
    if num_rows == 1:
        pair_P = ops.arange(num_pairs)
        return expert_P, ops.expand_dims(pair_P, 1), pair_P
    order_P = ops.argsort(expert_P)
    size_E = ops.sum(ops.one_hot(expert_P, num_experts, dtype="int32"), axis=0)
    begin_E = ops.cumsum(size_E) - size_E
    num_blocks_E = (size_E + num_rows - 1) // num_rows
    end_E = ops.cumsum(num_blocks_E)
    first_E = end_E - num_blocks_E
    block_B = ops.arange(_num_blocks(num_pairs, num_rows, num_experts))
    is_later_BE = ops.expand_dims(block_B, 1) >= end_E
    expert_B = ops.minimum(ops.sum(ops.cast(is_later_BE, "int32"), axis=1), num_experts - 1)
    begin_B = ops.take(begin_E, expert_B) + (block_B - ops.take(first_E, expert_B)) * num_rows
    row_BM = ops.expand_dims(begin_B, 1) + ops.arange(num_rows)
    pair_BM = ops.take(order_P, ops.minimum(row_BM, num_pairs - 1))
    rank_P = ops.argsort(order_P) - ops.take(begin_E, expert_P)
    return expert_B, pair_BM, ops.take(first_E, expert_P) * num_rows + rank_P


def new_feed_forward(options: BlockOptions, dtype: Any, name: str) -> Layer:
    """Return the feed-forward of a block: a `MixtureOfExperts` if it has experts."""
    kind = MixtureOfExperts if options.num_experts else FeedForward
    return kind(**options.part(kind.options_class), dtype=dtype, name=name)
