"""Base class of models with logits over a vocabulary: training fuses their projection and loss.

Calls of a training step, with TensorFlow and PyTorch, of a model such as `Transformer`:

    VocabularyModel.train_step
      WeightedSteps.train_step                    models/steps.py
        gradients                                 backend/gradients.py
          WeightedSteps._share
            VocabularyModel.loss_and_output
              VocabularyModel.loss_and_likelihood
                VocabularyModel.hidden            sets the training mode, by `_HiddenStates`
                  EncoderDecoder.compute_hidden   models/encoder_decoder.py
                    Parts.forward                 the forward pass without the output projection
                LabelSmoothedCrossentropy.of_hidden   losses.py
                  projected_cross_entropy         backend/loss.py

With JAX, `WeightedSteps._pure_train_step` differentiates `compute_loss_and_updates`, which calls
`loss_and_likelihood`. `ConfiguredModel`, the class between `WeightedSteps` and `VocabularyModel`,
is not needed to follow a step: it adds configs, quantization and export.
"""

from __future__ import annotations

import functools
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import (
    is_portable,
    num_replicas,
    training_step,
)
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models.configured import ConfiguredModel


class _HiddenStates(keras.layers.Layer):
    """A model without its output layer, as a layer.

    Only Keras's `__call__` sets the training mode of the layers inside, and clears the losses that
    they added in the previous call.
    """

    def __init__(self, model):
        super().__init__(autocast=False, name="hidden_states")
        self.model = model

    def call(self, inputs, training=None):
        return self.model.compute_hidden(inputs)


class VocabularyModel(ConfiguredModel):
    """A functional model whose training fuses the projection to logits (B, T, V) and the loss.

    The matrix of logits (tokens x vocabulary) is the largest of a training step. If the loss is a
    `LabelSmoothedCrossentropy` and each metric a `Perplexity`, the steps of `fit` and `evaluate`
    compute the loss from the last hidden states and the table that projects them
    (`loss_and_likelihood`), with as few copies of the logits as the backend can. The loss is the
    same. With any other loss or metric, with weighted metrics or loss weights, in a portable step
    (`backend.is_portable`), or if the output layer has LoRA, a bias or a cap or is quantized, the
    steps compute logits. So does a call of the model.

    A subclass defines `compute_hidden(inputs)`, which returns (B, T, D), and sets `output_layer`,
    the `ReversibleEmbedding` or `Dense` that projects these to logits, or None; `output_bias` is a
    layer that adds to the logits, or None; `logit_cap` limits them, or is None; `logit_divisor`
    divides them.
    """

    output_layer: Any
    logit_divisor: float = 1.0

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        # Hidden from Keras: as a tracked layer it would change the paths of saved weights.
        layer: Any = _HiddenStates(self)
        self._hidden_states = functools.partial(layer)

    def hidden(self, inputs: Any, training: bool | None = None) -> Any:
        """Return the last hidden states (B, T, D), which the output layer projects to logits.

        Args:
            inputs: Inputs of the model.
            training: Whether dropout is active; None: as in the surrounding call, else inactive.
        """
        options = {} if training is None else {"training": training}
        return self._hidden_states(self.named_inputs(inputs), **options)

    def compute_hidden(self, inputs: Any) -> Any:
        """Compute `hidden`, which runs this as the call of a layer; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define compute_hidden")

    def loss_and_likelihood(
        self, inputs: Any, labels: Any, sample_weight: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Return the loss of one batch, without returning its logits; custom loops may call it too.

        Args:
            inputs: Inputs of the model.
            labels: (B, T) integers.
            sample_weight: Optional weights, one per sentence (B,) or per token (B, T).
            training: Whether dropout is active.

        Returns:
            The scalar loss, including the losses that layers added, and each token's negative
            log-likelihood without label smoothing (B, T).

        Raises:
            ValueError: If the model is not compiled with a `LabelSmoothedCrossentropy`, or its
                output layer has a bias, a cap or LoRA or is quantized.
        """
        loss_function = getattr(self, "loss", None)  # absent before `compile`
        if not (isinstance(loss_function, LabelSmoothedCrossentropy) and self._projects_only()):
            raise ValueError(
                "loss must be a LabelSmoothedCrossentropy, and the output layer without bias, LoRA "
                f"and quantization, got {loss_function!r} and {self.output_layer!r}: compute the "
                "loss from the logits, `loss(labels, model(inputs))`"
            )
        of_hidden = loss_function.of_hidden
        if training and loss_function.r_drop:
            inputs = keras.tree.map_structure(lambda x: ops.concatenate([x, x]), inputs)
            of_hidden = loss_function.of_two
        hidden = self.hidden(inputs, training=training)
        loss, likelihood = of_hidden(labels, hidden, self._table(hidden.dtype), sample_weight)
        added = sum(self.losses)  # equal in all replicas: each adds its share
        return loss + added / num_replicas(), likelihood

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None, **options: Any
    ) -> None:
        """Compile like `keras.Model`; loss and metrics decide whether steps compute logits."""
        self._needs_no_logits = (
            isinstance(loss, LabelSmoothedCrossentropy)
            and all(isinstance(metric, Perplexity) for metric in metrics or ())
            and options.get("loss_weights") is None
            and not options.get("weighted_metrics")
        )
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **options)

    def train_step(self, *arguments: Any) -> Any:
        """Run one step of `WeightedSteps`, marked for the backend's training kernels."""
        if getattr(self.loss, "r_drop", 0) and not self._is_fused():
            raise ValueError(
                "r_drop must be 0 with metrics other than Perplexity, in a portable step, and if "
                f"the output layer has a bias, a cap, LoRA or 8 bits, got {self.loss.r_drop}"
            )
        if is_portable():  # `torch.compile` (2.13) fails on graph breaks inside a context
            return super().train_step(*arguments)
        with training_step():
            return super().train_step(*arguments)

    def loss_and_output(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> tuple[Any, Any]:
        """Return the loss of one batch, and each token's negative log-likelihood or the logits."""
        if self._is_fused():
            return self.loss_and_likelihood(x, y, sample_weight, training)
        return super().loss_and_output(x, y, sample_weight, training)

    def compute_loss_and_updates(
        self,
        trainable_variables: Any,
        non_trainable_variables: Any,
        metrics_variables: Any,
        x: Any,
        y: Any,
        sample_weight: Any,
        training: bool = False,
        optimizer_variables: Any = None,
    ) -> tuple[Any, Any]:
        """Return the scaled loss, which a step of JAX differentiates, and the new state.

        The state includes predictions, which Keras passes to the metrics; here, likelihoods.
        """
        if not self._is_fused():
            return super().compute_loss_and_updates(
                trainable_variables,
                non_trainable_variables,
                metrics_variables,
                x,
                y,
                sample_weight,
                training=training,
                optimizer_variables=optimizer_variables,
            )
        mapping = [
            *zip(self.trainable_variables, trainable_variables, strict=True),
            *zip(self.non_trainable_variables, non_trainable_variables, strict=True),
        ]
        if training:
            mapping += zip(self.optimizer.variables, optimizer_variables, strict=True)
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            loss, likelihood = self.loss_and_likelihood(x, y, sample_weight, training)
            scaled = self.optimizer.scale_loss(loss) if training else loss
        updated = [scope.get_current_value(variable) for variable in self.non_trainable_variables]
        return scaled, (loss, likelihood, updated, metrics_variables)

    def _is_fused(self):
        return self._needs_no_logits and self._projects_only() and not is_portable()

    def _projects_only(self):
        """Return whether the output layer is only a product with a table."""
        layer = self.output_layer
        return (
            layer is not None
            and layer.quantization_mode is None
            and not layer.lora_enabled
            and getattr(layer, "bias", None) is None
            and getattr(self, "output_bias", None) is None
            and getattr(self, "logit_cap", None) is None
        )

    def _table(self, dtype):
        layer = self.output_layer
        is_dense = isinstance(layer, keras.layers.Dense)
        table_VD = ops.transpose(layer.kernel) if is_dense else layer.embeddings
        table_VD = table_VD if self.logit_divisor == 1 else table_VD / self.logit_divisor
        return ops.cast(table_VD, dtype)
