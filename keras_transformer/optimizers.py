"""Learning rate schedule and optimizer of the paper; weights of accumulated batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import (
    BACKEND,
    adam_update,
    has_adam_update,
    is_portable,
    replica_sums,
    stochastically_rounded,
)
from keras_transformer.config import require

Variables = Sequence[keras.Variable]
DECAYS = ("linear", "cosine", "cooldown")  # these end at zero
COOLDOWN = 0.2  # share of a run in which "cooldown" falls to zero
UNDECAYED = ["(^|/)(bias|gamma|beta|scale)$"]  # paths of biases and of the weights of norms


@keras.saving.register_keras_serializable("keras_transformer")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warmup, then the inverse square root of the step (section 5.3, equation 3).

    rate(step) = peak * min(step / warmup_steps, sqrt(warmup_steps / step)), where steps count from
    1. In a run of known length the rate may instead fall to zero, see `decay`.

    Args:
        peak: Highest rate, reached at step `warmup_steps`. In the paper it is
            `d_model**-0.5 * warmup_steps**-0.5`; see `WarmupSchedule.paper`.
        warmup_steps: Updates until the peak, at least 1.
        total_steps: Update at which the rate reaches zero, more than `warmup_steps`; None: the
            paper's inverse square root.
        name: Name of the schedule.
        decay: How the rate falls to zero: "linear"; "cosine", a half period (Loshchilov and Hutter
            2017, equation 5, without restarts); or "cooldown", the inverse square root, which in
            the last fifth of the run is multiplied by a factor that falls linearly from 1 to 0
            (Zhai et al. 2022, section 3.5). Ignored without `total_steps`.

    Raises:
        ValueError: If an argument is not positive, `decay` is unknown, or `total_steps` is within
            the warmup.
    """

    def __init__(
        self,
        peak: float,
        warmup_steps: int = 4000,
        total_steps: int | None = None,
        name: str = "warmup",
        decay: str = "linear",
    ):
        super().__init__()
        require(decay in DECAYS, "decay", decay, f"one of {DECAYS}")
        for argument, value in (("peak", peak), ("warmup_steps", warmup_steps)):
            require(value > 0, argument, value, "positive")
        if total_steps is not None and total_steps <= warmup_steps:
            raise ValueError(
                f"total_steps must be more than warmup_steps={warmup_steps}, got {total_steps!r}"
            )
        self.peak = float(peak)
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.name = name
        self.decay = decay

    @classmethod
    def paper(cls, d_model: int, warmup_steps: int = 4000) -> WarmupSchedule:
        """Return the schedule d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)."""
        return cls((d_model * warmup_steps) ** -0.5, warmup_steps)

    def __call__(self, step: Any) -> Any:
        # Keras counts steps from 0, the paper from 1.
        step = ops.cast(step, "float32") + 1.0
        warmup = float(self.warmup_steps)
        if self.total_steps is None:
            return self.peak * ops.minimum(step / warmup, ops.sqrt(warmup / step))
        left = ops.maximum((self.total_steps - step) / (self.total_steps - warmup), 0.0)
        if self.decay == "cooldown":
            cooldown = (self.total_steps - step) / (COOLDOWN * self.total_steps)
            root = ops.minimum(step / warmup, ops.sqrt(warmup / step))
            return self.peak * root * ops.clip(cooldown, 0.0, 1.0)
        if self.decay == "cosine":
            left = 0.5 * (1.0 - ops.cos(math.pi * ops.minimum(left, 1.0)))
        return self.peak * ops.minimum(step / warmup, left)

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "name": self.name,
            "decay": self.decay,
        }


@keras.saving.register_keras_serializable("keras_transformer")
class Adam(keras.optimizers.Adam):
    """Keras's Adam, with each weight updated in one pass over memory where the backend can.

    With PyTorch's fused kernel or `state_dtype`, epsilon is added to the bias-corrected root, as in
    Algorithm 1 of Kingma and Ba 2015. Keras's Adam adds it before the correction; with the paper's
    1e-9 the difference does not matter. `weight_decay` is not applied to biases and weights of
    norms, also after the optimizer was saved and loaded. With `use_ema`, the decay of the average
    is smaller at first, so that the first weights are soon forgotten. Further arguments are those
    of `keras.optimizers.Adam`.

    Args:
        state_dtype: Dtype of the two moments of each weight: None, that of the weight; or
            "bfloat16", which takes half the memory. Updates are computed in float32 and the moments
            rounded stochastically.

    Raises:
        ValueError: If `state_dtype` is unknown, or set together with `amsgrad`.
    """

    def __init__(self, *arguments: Any, state_dtype: str | None = None, **options: Any):
        super().__init__(*arguments, **options)
        accepted = "None or 'bfloat16', and None with amsgrad"
        is_possible = state_dtype is None or (state_dtype == "bfloat16" and not self.amsgrad)
        require(is_possible, "state_dtype", state_dtype, accepted)
        self.state_dtype = state_dtype
        if self.weight_decay:
            self.exclude_from_weight_decay(var_names=UNDECAYED)

    def add_variable(self, *arguments: Any, **options: Any) -> keras.Variable:
        """Add a variable of the optimizer; moments have `state_dtype`."""
        is_moment = str(options.get("name")).endswith(("_momentum", "_velocity"))
        if self.state_dtype and is_moment:
            options["dtype"] = self.state_dtype
        return super().add_variable(*arguments, **options)

    def _backend_apply_gradients(
        self, grads: Sequence[Any], trainable_variables: Variables
    ) -> None:
        # Keras 3.15 sums the gradients of a TensorFlow strategy's replicas after it has clipped and
        # accumulated them, and inside a `cond`, where TensorFlow cannot. Here they are summed
        # first; the methods below then update each replica's own copies of the variables.
        if BACKEND == "tensorflow":
            grads = replica_sums(grads)
        super()._backend_apply_gradients(grads, trainable_variables)

    def _backend_update_step(
        self, grads: Sequence[Any], trainable_variables: Variables, learning_rate: Any
    ) -> None:
        if BACKEND == "tensorflow" or self.state_dtype:
            for gradient, variable in zip(grads, trainable_variables, strict=True):
                self.update_step(gradient, variable, learning_rate)
            return
        if BACKEND != "torch" or self.amsgrad or is_portable() or not has_adam_update():
            return super()._backend_update_step(grads, trainable_variables, learning_rate)
        values = [variable.value for variable in trainable_variables]
        self._update(values, grads, trainable_variables, learning_rate)

    def _backend_increment_gradient_accumulators(
        self, grads: Sequence[Any], acc_grads: Variables
    ) -> None:
        if BACKEND != "tensorflow":
            return super()._backend_increment_gradient_accumulators(grads, acc_grads)
        for gradient, accumulated in zip(grads, acc_grads, strict=True):
            accumulated.assign_add(gradient)

    def _update_model_variables_moving_average(self, trainable_variables: Variables) -> None:
        """Update the average with a smaller decay at first, to forget the first weights sooner.

        Marian and `tf.train.ExponentialMovingAverage` do the same. With Keras's constant decay, the
        first weights keep a share of decay^updates.
        """
        if not self.use_ema:
            return
        updates = ops.cast(self.iterations, "float32")
        decay = ops.minimum(self.ema_momentum, updates / (updates + 9))
        for variable, average in zip(
            trainable_variables, self._model_variables_moving_average, strict=True
        ):
            if average is not None:
                share = ops.cast(1 - decay, average.dtype)
                average.assign(average + share * (ops.convert_to_tensor(variable) - average))

    def _apply_weight_decay(self, variables: Variables) -> None:
        if BACKEND != "tensorflow" or self.weight_decay is None:
            return super()._apply_weight_decay(variables)
        for variable in filter(self._use_weight_decay, variables):
            variable.assign_sub(variable * self.weight_decay * self.learning_rate)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if self.state_dtype:
            return self._update_small(gradient, variable, learning_rate)
        if BACKEND != "tensorflow" or self.amsgrad:
            return super().update_step(gradient, variable, learning_rate)
        self._update([variable], [gradient], [variable], learning_rate)

    def _update(self, values: Any, grads: Any, variables: Variables, learning_rate: Any) -> None:
        """Update weights with the kernel of PyTorch, for all at once, or TensorFlow, for one."""
        indices = [self._get_variable_index(variable) for variable in variables]
        adam_update(
            values,
            grads,
            [self._momentums[i].value for i in indices],
            [self._velocities[i].value for i in indices],
            learning_rate,
            ops.convert_to_tensor(self.iterations) + 1,
            self.beta_1,
            self.beta_2,
            self.epsilon,
        )

    def _update_small(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update a weight by Algorithm 1 of Kingma and Ba 2015 with moments of `state_dtype`."""
        i = self._get_variable_index(variable)
        step = ops.cast(self.iterations + 1, "float32")
        gradient = ops.cast(gradient, "float32")
        means = []
        for moment, value, beta in (
            (self._momentums[i], gradient, self.beta_1),
            (self._velocities[i], ops.square(gradient), self.beta_2),
        ):
            before = ops.cast(moment, "float32")
            mean = before + (value - before) * (1 - beta)
            moment.assign(stochastically_rounded(mean, self.iterations))
            means.append(mean / (1 - ops.power(beta, step)))
        change = learning_rate * means[0] / (ops.sqrt(means[1]) + self.epsilon)
        variable.assign_sub(ops.cast(change, variable.dtype))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "state_dtype": self.state_dtype}


def weigh_batches(optimizer: keras.optimizers.Optimizer) -> None:
    """Make an optimizer that accumulates gradients weight each batch of an update.

    Keras's optimizers average the gradients of the batches, each the gradient of a mean over
    tokens. From now on this is a weighted average. Assign the weight of each batch to
    `weight_variable(optimizer)` before its gradients are applied; the default is 1. With numbers of
    tokens as weights, the average is the gradient of one batch of all rows. Gradients are clipped
    after the average. An optimizer that does not accumulate stays as it is.
    """
    # A `LossScaleOptimizer` wraps the optimizer that accumulates.
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    steps = optimizer.gradient_accumulation_steps
    if not steps or hasattr(optimizer, "accumulated_weights"):
        return
    build, apply = optimizer.build, optimizer.apply
    optimizer.accumulated_weights = ()

    def add_weights() -> None:
        shape = dict(shape=(), dtype="float32", aggregation="only_first_replica")
        optimizer.accumulated_weights = (
            optimizer.add_variable(name="batch_weight", initializer="ones", **shape),
            optimizer.add_variable(name="total_weight", **shape),
        )

    def build_with_weights(variables: Variables) -> None:
        build(variables)
        if not optimizer.accumulated_weights:
            add_weights()

    def apply_weighted(grads: Sequence[Any], trainable_variables: Variables | None = None) -> None:
        if not optimizer.built:
            optimizer.build(trainable_variables)
        weight, total = map(ops.convert_to_tensor, optimizer.accumulated_weights)
        new_total = ops.maximum(total + weight, 1e-9)
        # Accumulators hold `steps` times the mean so far: at an update, Keras divides by `steps`.
        for variable in optimizer.variables:
            if variable.name.endswith("gradient_accumulator"):
                variable.assign(variable * ops.cast(total / new_total, variable.dtype))
        grads = [x if x is None else ops.convert_to_tensor(x) for x in grads]
        share = steps * weight / new_total
        grads = [x if x is None else x * ops.cast(share, x.dtype) for x in grads]
        (count,) = (x for x in optimizer.variables if x.name == "iteration")
        is_last = (ops.convert_to_tensor(count) + 1) % steps == 0
        optimizer.accumulated_weights[1].assign(ops.where(is_last, 0.0, total + weight))
        apply(grads, trainable_variables)

    optimizer.build, optimizer.apply = build_with_weights, apply_weighted
    if optimizer.built:
        add_weights()


def weight_variable(optimizer: Any) -> Any:
    """Return the variable of a batch's weight, see `weigh_batches`; None without accumulation."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return next(iter(getattr(inner, "accumulated_weights", ())), None)


def adam(learning_rate: Any, **options: Any) -> Adam:
    """Return Adam with the paper's beta_1 = 0.9, beta_2 = 0.98, epsilon = 1e-9 (section 5.3).

    Args:
        learning_rate: A number or a schedule.
        options: Further arguments of `Adam`, such as `state_dtype`, `global_clipnorm` or
            `gradient_accumulation_steps`. With accumulation, Keras 3.15 asks a schedule for the
            rate of each batch, so its steps are batches, not updates. In models of this package, an
            update equals that of one batch with all tokens (`weigh_batches`); in other models,
            gradients are averaged over batches.
    """
    settings = dict(beta_1=0.9, beta_2=0.98, epsilon=1e-9) | options
    return Adam(learning_rate, **settings)
