"""Base of the models: a config that saves them, and training from hidden states, not logits."""

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import BACKEND, is_portable, reuse_memory, training_step
from keras_transformer.backend.private import in_strategy
from keras_transformer.layers.layer import replacing_weights
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity


class _Step(threading.local):
    # Of this thread: TensorFlow's strategies run a step of one model in several.
    model: keras.Model | None = None  # that is trained on its hidden states
    likelihood: Any = None  # of each label, for the metrics


_step = _Step()


class ConfiguredModel(keras.Model):
    """A functional model that is made of one frozen config, and saved as that.

    A subclass has `config_class`, is made of `(config, dtype=None, **options)`, and keeps `config`
    and, in `_policy`, its dtype policy. The config comes back from `to_dict` and `from_dict`.
    """

    quantization: str | None = None  # of the weights, such as "int8"

    def quantize(self, mode=None, **options):
        """Quantize the weights; the config records it, and a saved model is loaded so."""
        with warnings.catch_warnings(), replacing_weights():
            warnings.filterwarnings("ignore", message=".*does not have a `quantize` method")
            super().quantize(mode, **options)
        self.quantization = mode

    def make_train_function(self, force=False):
        """Make the function that `fit` calls for each step."""
        reuse_memory()
        if BACKEND == "tensorflow" and not self.optimizer.built and not in_strategy(self):
            # Variables made inside a step have TensorFlow trace the whole step twice.
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def export(self, filepath, format="tf_saved_model", **options):
        """Export the model in a format that Keras writes."""
        if BACKEND == "torch" and format == "tf_saved_model":
            raise ValueError(
                f"format must be 'onnx' or another that Keras writes with PyTorch, got {format!r}: "
                "save the model with `save`, load it with KERAS_BACKEND=tensorflow and export there"
            )
        super().export(filepath, format=format, **options)

    def get_config(self):
        config = {
            "config": self.config.to_dict(),
            "dtype": keras.dtype_policies.serialize(self._policy),
            "name": self.name,
        }
        return config | ({"quantization": self.quantization} if self.quantization else {})

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        sizes = cls.config_class.from_dict(config.pop("config"))
        dtype = config.pop("dtype", None)
        if isinstance(dtype, dict):
            dtype = keras.dtype_policies.deserialize(dtype)
        quantization = config.pop("quantization", None)
        model = cls(sizes, dtype=dtype, **config)
        if quantization:
            model.quantize(quantization)
        return model


class VocabularyModel(ConfiguredModel):
    """A functional model to logits that `fit` trains without making them twice.

    The matrix of logits (tokens x vocabulary) is the largest of a training step, and in a small
    model half of its time. Where the loss is a `LabelSmoothedCrossentropy` and each metric a
    `Perplexity`, `fit` and `evaluate` hand the loss the last hidden states and the table that
    projects them; the numbers are the same. With any other loss or metric they see logits.

    A subclass has, besides its functional graph, `hidden(inputs)`, (B, T, D), and `output_layer`,
    the `ReversibleEmbedding` or `Dense` that makes logits of them, or None where nothing does; and
    `output_bias`, if something is added to these.
    """

    @property
    def _on_hidden(self):
        return _step.model is self

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, **options):
        """Compile the model for training, like `keras.Model.compile`."""
        self._fused = isinstance(loss, LabelSmoothedCrossentropy) and all(
            isinstance(metric, Perplexity) for metric in metrics or ()
        )
        self._fused = self._fused and not set(options) & {"loss_weights", "weighted_metrics"}
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **options)

    def compile_from_config(self, config):
        """Compile a loaded model; Keras by itself skips models with a `compile` of their own.

        A model whose loss or metrics cannot be found is loaded without them.
        """
        try:
            options = keras.saving.deserialize_keras_object(config)
        except (TypeError, ValueError) as error:
            warnings.warn(f"{self.name} is not compiled, call `compile`: {error}", stacklevel=2)
            return
        self.compile(**options)
        self.optimizer.build(self.trainable_variables)

    def train_step(self, *arguments):
        """One step of `fit`, on any backend."""
        if is_portable():  # `torch.compile` (2.13) fails on contexts inside which a graph ends
            return super().train_step(*arguments)
        with self._training_on_hidden(), training_step():
            return super().train_step(*arguments)

    def test_step(self, *arguments):
        """One step of `evaluate`, on any backend."""
        if is_portable():
            return super().test_step(*arguments)
        with self._training_on_hidden():
            return super().test_step(*arguments)

    def compute_loss_and_updates(self, *arguments, **options):
        """The function that JAX differentiates; it returns likelihoods instead of predictions."""
        loss, (unscaled, y_pred, *rest) = super().compute_loss_and_updates(*arguments, **options)
        if self._on_hidden:
            y_pred, _step.likelihood = _step.likelihood, None
        return loss, (unscaled, y_pred, *rest)

    def call(self, inputs, training=None, mask=None):
        """Logits (B, T, V); hidden states (B, T, D) inside a step that needs no more."""
        if self._on_hidden:
            return self.hidden(inputs)
        return super().call(inputs, training=training, mask=mask)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of a step."""
        if not self._on_hidden:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        loss, _step.likelihood = self.loss.of_hidden(
            y, y_pred, self._table(y_pred.dtype), sample_weight
        )
        return sum(self.losses, loss)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """The metrics of a step."""
        if self._on_hidden and _step.likelihood is not None:
            y_pred, _step.likelihood = _step.likelihood, None
        return super().compute_metrics(x, y, y_pred, sample_weight)

    @contextlib.contextmanager
    def _training_on_hidden(self):
        layer = self.output_layer
        plain = layer is not None and layer.quantization_mode is None and not layer.lora_enabled
        plain = plain and getattr(self, "output_bias", None) is None
        plain = plain and getattr(layer, "bias", None) is None
        before, _step.model = _step.model, self if self._fused and plain else None
        try:
            yield
        finally:
            _step.model, _step.likelihood = before, None

    def _table(self, dtype):
        layer = self.output_layer
        is_dense = isinstance(layer, keras.layers.Dense)
        table_VD = ops.transpose(layer.kernel) if is_dense else layer.embeddings
        return ops.cast(table_VD, dtype)
