"""Adam's update with a kernel of the backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.backend import private
from keras_transformer.backend.compilation import BACKEND

if BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels
elif BACKEND == "torch":
    import torch


def has_adam_update() -> bool:
    """Return whether `adam_update` is available."""
    return BACKEND == "tensorflow" or private.FUSED_ADAM is not None


def adam_update(
    parameters: Sequence[Any],
    gradients: Sequence[Any],
    momentums: Sequence[Any],
    velocities: Sequence[Any],
    rate: Any,
    step: Any,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> None:
    """Apply one Adam update in place with the backend's own kernel, if `has_adam_update()`.

    Args:
        parameters, momentums, velocities: Tensors of PyTorch, or variables of TensorFlow: one of
            each for each weight.
        gradients: Gradients of the parameters, tensors.
        rate: Learning rate.
        step: Number of this update, from 1.
        beta_1, beta_2, epsilon: See `keras.optimizers.Adam`.
    """
    if BACKEND == "tensorflow":
        for parameter, gradient, momentum, velocity in zip(
            parameters, gradients, momentums, velocities, strict=True
        ):
            tensorflow_kernels.adam_update(
                parameter, gradient, momentum, velocity, rate, step, beta_1, beta_2, epsilon
            )
        return
    steps = [torch.as_tensor(step, dtype=torch.float32, device=parameters[0].device)]
    private.FUSED_ADAM(
        parameters,
        gradients,
        momentums,
        velocities,
        [],
        steps * len(parameters),
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        weight_decay=0.0,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )
    # `backend.torch.matrix_products.kept` detects changed weights by their version, which this
    # operation does not increment (PyTorch 2.13).
    torch.autograd.graph.increment_version(parameters)
