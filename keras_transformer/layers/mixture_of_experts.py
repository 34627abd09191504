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


@keras.saving.register_keras_serializable("keras_transformer")
class MixtureOfExperts(Layer):
    """MoE(x) = sum over e in TopK(p) of p_e FFN_e(x), where p = softmax(x R).

    Each of E experts is a `FeedForward`, and the router R chooses K of them for each token (Shazeer
    et al. 2017, section 2; Jiang et al. 2024, section 2.1). In training, a loss keeps the experts
    equally busy (Fedus et al. 2021, equations 4 to 6): coefficient * E * sum over e of f_e P_e,
    with f_e the share of tokens that use expert e, and P_e the mean of p_e. It counts all tokens,
    padding included.

    Up to E / K tokens, as in a step of a search, only the weights of the chosen experts are read:
    each token takes a copy of them, K (2 or 3) D F numbers. With more tokens, or a number of tokens
    that is unknown when a graph is made, every expert is computed for every token, and those that a
    token does not use have the weight 0: E / K times the necessary arithmetic, and E F numbers a
    token for each hidden layer. The results differ only by rounding.

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
        of_few = self._is_few(x_ND.shape[0])
        output_ND = (self._of_chosen if of_few else self._of_all)(x_ND, weight_NK, expert_NK)
        return ops.reshape(output_ND, ops.shape(x))

    def _is_few(self, num_tokens):
        chosen, count = self.options.experts_per_token, self.options.num_experts
        return isinstance(num_tokens, int) and num_tokens * chosen <= count

    def _of_chosen(self, x_ND, weight_NK, expert_NK):
        """Return the output, with a copy of the chosen experts' weights for each token."""

        def product(x_NKF, weights_EFD):
            chosen_NKFD = ops.take(weights_EFD, expert_NK, axis=0)
            return ops.squeeze(ops.matmul(ops.expand_dims(x_NKF, -2), chosen_NKFD), -2)

        x_N1D = ops.expand_dims(x_ND, 1)
        hidden_NKF = self.activation(product(x_N1D, self.hidden))
        if self.gate is not None:
            hidden_NKF = hidden_NKF * product(x_N1D, self.gate)
        output_NKD = product(hidden_NKF, self.output_projection)
        return ops.sum(output_NKD * ops.expand_dims(_cast(weight_NK, x_ND), -1), axis=1)

    def _of_all(self, x_ND, weight_NK, expert_NK):
        """Return the output, with all experts computed for all tokens."""
        hidden_ENF = self.activation(ops.matmul(x_ND, self.hidden))
        if self.gate is not None:
            hidden_ENF = hidden_ENF * ops.matmul(x_ND, self.gate)
        uses_NKE = ops.one_hot(expert_NK, self.options.num_experts, dtype="float32")
        weight_EN = ops.transpose(ops.sum(uses_NKE * ops.expand_dims(weight_NK, -1), axis=1))
        hidden_ENF = hidden_ENF * ops.expand_dims(_cast(weight_EN, x_ND), -1)
        return ops.einsum("enf,efd->nd", hidden_ENF, self.output_projection)

    def _balance(self, probability_NE, expert_NK):
        count = self.options.num_experts
        uses_NKE = ops.one_hot(expert_NK, count, dtype="float32")
        share_E = ops.mean(ops.sum(uses_NKE, axis=1), axis=0)
        return count * ops.sum(share_E * ops.mean(probability_NE, axis=0))


def _cast(weights, x):
    return ops.cast(weights, x.dtype)


def new_feed_forward(options: BlockOptions, dtype: Any, name: str) -> Layer:
    """Return the feed-forward of a block: a `MixtureOfExperts` if it has experts."""
    kind = MixtureOfExperts if options.num_experts else FeedForward
    return kind(**options.part(kind.options_class), dtype=dtype, name=name)
