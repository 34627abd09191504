"""Steps of `fit` and `evaluate` that weight each batch by the number of values in its loss."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.backend import (
    BACKEND,
    gradients,
    num_replicas,
    pure_gradients,
    replica_sum,
    summed,
    with_rows,
    without_gradients,
)
from keras_transformer.config import require
from keras_transformer.losses import LabelSmoothedCrossentropy, MaskedSquaredError
from keras_transformer.optimizers import weigh_batches, weight_variable


def batch_weight(loss: Any, y_true: Any, sample_weight: Any = None) -> Any:
    """Return the number of values whose mean is the loss of one batch; None: unknown.

    The mean of the losses of several batches with these weights is the loss of all their rows in
    one batch. A loss without a method `batch_weight` is taken for a Keras loss: the mean over the
    elements of `y_true`, or of `sample_weight` with the reduction "mean_with_sample_weight"; with
    the reduction "sum", all batches count alike.

    Args:
        loss: A loss, the name of one, or a dict of losses by output, whose weights are added.
        y_true: Labels; a dict of them if `loss` is a dict.
        sample_weight: Optional weights, or a dict of them.
    """
    if isinstance(loss, dict):
        if not isinstance(y_true, dict) or not loss.keys() <= y_true.keys():
            return None
        weights = sample_weight if isinstance(sample_weight, dict) else {}
        return sum(batch_weight(loss[k], y_true[k], weights.get(k, sample_weight)) for k in loss)
    if keras.tree.is_nested(loss) or keras.tree.is_nested(y_true):
        return None
    if hasattr(loss, "batch_weight"):
        return loss.batch_weight(ops.convert_to_tensor(y_true), sample_weight)
    reduction = getattr(loss, "reduction", None)
    if reduction == "sum":
        return 1.0
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        return ops.sum(ops.cast(sample_weight, "float32"))
    return ops.cast(ops.size(y_true), "float32")


class WeightedSteps(keras.Model):
    """A model whose training and evaluation average over values, not over batches.

    In the loss that `fit` and `evaluate` report, Keras weights each batch by its rows; where an
    optimizer accumulates gradients, all batches have the same weight. Here the weight is the number
    of values whose mean is the loss of the batch (`batch_weight`): with a
    `LabelSmoothedCrossentropy`, the tokens that are not padding. So neither the reported loss nor
    accumulated gradients depend on how the rows are split into batches.
    """

    def compile(self, optimizer: Any = "rmsprop", *arguments: Any, **options: Any) -> None:
        """Compile like `keras.Model`; an optimizer that accumulates gradients weights batches."""
        super().compile(optimizer, *arguments, **options)
        weigh_batches(self.optimizer)

    def fit(self, *arguments: Any, **options: Any) -> Any:
        """Train like `keras.Model.fit`; ValueError for `class_weight` if labels are per token."""
        self._check_class_weight(**options)
        return super().fit(*arguments, **options)

    def train_on_batch(self, *arguments: Any, **options: Any) -> Any:
        """Train on one batch like `keras.Model.train_on_batch`; see `fit` for `class_weight`."""
        self._check_class_weight(**options)
        return super().train_on_batch(*arguments, **options)

    def train_step(self, *arguments: Any) -> Any:
        """Run one step of `fit` on `data`; with JAX on `state, data`."""
        if BACKEND == "jax":
            return self._pure_train_step(*arguments)
        if not self.trainable_variables:
            return super().train_step(*arguments)
        x, y, sample_weight = _unpacked(with_rows(*arguments))
        weight = self._weight(x, y, sample_weight)
        if (variable := weight_variable(self.optimizer)) is not None:
            variable.assign(replica_sum(weight))

        def scaled_loss():
            loss, output = self._share(x, y, sample_weight, weight, training=True)
            return self.optimizer.scale_loss(loss), output

        output, grads = gradients(scaled_loss, self.trainable_variables)
        with without_gradients():
            self.optimizer.apply(grads, self.trainable_variables)
        return self.compute_metrics(x, y, output, sample_weight)

    def test_step(self, *arguments: Any) -> Any:
        """Run one step of `evaluate` on `data`; with JAX on `state, data`."""
        if BACKEND == "jax":
            return self._pure_test_step(*arguments)
        x, y, sample_weight = _unpacked(with_rows(*arguments))
        weight = self._weight(x, y, sample_weight)
        _, output = self._share(x, y, sample_weight, weight, training=False)
        return self.compute_metrics(x, y, output, sample_weight)

    def loss_and_output(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> tuple[Any, Any]:
        """Return the loss of one batch, and what the metrics read besides the labels."""
        output = self(x, training=training)
        loss = self.compute_loss(x, y, output, sample_weight, training=training)
        if num_replicas() > 1 and self._loss_is_a_share():
            # Losses of layers are equal in all replicas: each adds its share.
            loss = loss - sum(self.losses) * (1 - 1 / num_replicas())
        return loss, output

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the metrics over the rows of all processes."""
        with summed(self.metrics_variables):
            return super().get_metrics_result()

    def _check_class_weight(self, class_weight=None, **_):
        """Raise ValueError if labels are per token, which Keras would take for one-hot labels."""
        per_token = any(None in x.shape[1:] for x in keras.tree.flatten(self.output))
        accepted = "None for labels of tokens: give each label its weight in sample_weight (B, T)"
        require(not (class_weight and per_token), "class_weight", class_weight, accepted)

    def _loss_is_a_share(self):
        return isinstance(self.loss, LabelSmoothedCrossentropy | MaskedSquaredError)

    def _share(self, x, y, sample_weight, weight, training):
        """Return this replica's share of the loss of a global batch, and the output."""
        loss, output = self.loss_and_output(x, y, sample_weight, training)
        if num_replicas() > 1 and not self._loss_is_a_share():
            if BACKEND == "tensorflow":
                loss = loss * num_replicas()  # Keras has divided it by this number
            loss = loss * weight / ops.maximum(replica_sum(weight), 1e-9)
        self._record(replica_sum(loss), weight)
        return loss, output

    def _record(self, loss, weight):
        mean = next(metric for metric in self.metrics if metric.name == "loss")
        mean.update_state(loss, sample_weight=weight)

    def _weight(self, x, y, sample_weight):
        """Return the weight of a batch, a scalar; the number of rows if it is unknown."""
        has_labels = y is not None or self.loss is None
        name = getattr(self.loss, "name", self.loss)
        accepted = f"labels for the loss {name}: fit(inputs, labels), or batches (inputs, labels)"
        require(has_labels, "y", y, accepted)
        weight = None if y is None else batch_weight(self.loss, y, sample_weight)
        if weight is None:
            rows = next(tensor for tensor in keras.tree.flatten(x) if tensor is not None)
            weight = ops.shape(rows)[0]
        return ops.cast(weight, "float32")

    def _pure_train_step(self, state, data):
        """Run one step of `fit` with JAX, as a pure function of the state."""
        trained, others, optimizer_values, metrics_values = state
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        weight = self._weight(x, y, sample_weight)
        if (variable := weight_variable(self.optimizer)) is not None:
            pairs = zip(self.optimizer.variables, optimizer_values, strict=True)
            optimizer_values = [weight if slot is variable else value for slot, value in pairs]
        auxiliary, grads = pure_gradients(
            self.compute_loss_and_updates,
            trained,
            others,
            metrics_values,
            x,
            y,
            sample_weight,
            training=True,
            optimizer_variables=optimizer_values,
        )
        loss, output, others, metrics_values = auxiliary
        trained, optimizer_values = self.optimizer.stateless_apply(optimizer_values, grads, trained)
        logs, metrics_values = self._logs(metrics_values, loss, weight, output, data)
        return logs, (trained, others, optimizer_values, metrics_values)

    def _pure_test_step(self, state, data):
        """Run one step of `evaluate` with JAX, as a pure function of the state."""
        trained, others, metrics_values = state
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        _, auxiliary = self.compute_loss_and_updates(
            trained, others, metrics_values, x, y, sample_weight, training=False
        )
        loss, output, others, metrics_values = auxiliary
        weight = self._weight(x, y, sample_weight)
        logs, metrics_values = self._logs(metrics_values, loss, weight, output, data)
        return logs, (trained, others, metrics_values)

    def _logs(self, values, loss, weight, output, data):
        """Return the logs of a step of JAX, and the new values of the metrics' variables."""
        mapping = list(zip(self.metrics_variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self._record(loss, weight)
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
            logs = self.compute_metrics(x, y, output, sample_weight)
        return logs, [scope.get_current_value(variable) for variable in self.metrics_variables]


def _unpacked(data):
    """Return inputs, labels and weights of a batch; on PyTorch, Keras leaves them on the CPU."""
    parts = keras.utils.unpack_x_y_sample_weight(data)
    if BACKEND != "torch":
        return parts
    return keras.tree.map_structure(
        lambda x: x if x is None else ops.convert_to_tensor(x), tuple(parts)
    )
