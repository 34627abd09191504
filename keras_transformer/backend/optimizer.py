"""Updates of weights by the backend's own kernels."""

from __future__ import annotations

from keras_transformer.backend import private
from keras_transformer.backend.compilation import BACKEND

if BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels
elif BACKEND == "torch":
    import torch


def has_adam_update() -> bool:
    """Return whether `adam_update` is there."""
    return BACKEND == "tensorflow" or private.FUSED_ADAM is not None


def adam_update(parameters, gradients, momentums, velocities, rate, step, beta_1, beta_2, epsilon):
    """One update of Adam in place by the backend's own kernel, where there is one."""
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
    # By its version the kernels see that a weight has changed; this one does not tell it
    # (PyTorch 2.13).
    torch.autograd.graph.increment_version(parameters)
