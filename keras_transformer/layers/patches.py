"""Images to sequences: patches, a class token and learned positions (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_transformer.backend import dropout, quick
from keras_transformer.layers.layer import Layer, initializer


@keras.saving.register_keras_serializable("keras_transformer")
class PatchEmbedding(Layer):
    """Embeddings of image patches: Dropout([x_class; x_1 E; ... x_N E] + E_pos), equation 1.

    The product of the patches x_i (P x P pixels) with E is one convolution with stride P.

    Args:
        d_model: D.
        image_size: Height and width in pixels, multiples of `patch_size`.
        patch_size: P.
        dropout: Dropout rate in [0, 1) on the sum.
        distillation: Whether a second token, which learns from a teacher, follows the class token
            (Touvron et al. 2021, section 4).
        num_registers: R, the number of trained tokens without positions between the class token
            and the patches (Darcet et al. 2024, section 2.2).

    Call arguments:
        images: (B, height, width, channels), floats.

    Returns:
        (B, 1 + R + N, D), the class token first, then registers, then the patches, row by row; with
        `distillation` (B, 2 + R + N, D).

    Raises:
        ValueError: If images have another size or number of channels.
    """

    def __init__(
        self,
        d_model: int,
        image_size: tuple[int, int],
        patch_size: int,
        dropout: float = 0.0,
        distillation: bool = False,
        num_registers: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = False  # outputs and inputs have different positions
        self.d_model = d_model
        self.image_size = tuple(image_size)
        self.patch_size = patch_size
        self.rate = dropout
        self.distillation = distillation
        self.num_registers = num_registers
        self.patches = keras.layers.Conv2D(
            d_model,
            patch_size,
            strides=patch_size,
            kernel_initializer=initializer("glorot_uniform"),
            data_format="channels_last",
            dtype=self.dtype_policy,
            name="patches",
        )
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, images_shape: Any) -> None:
        self.accepted = (*self.image_size, images_shape[-1])
        self.patches.build((None, *self.accepted))
        height, width = (side // self.patch_size for side in self.image_size)
        # 0.2 is the scale of the projected patches. With the usual 0.02, attention learns slowly to
        # tell positions apart: accuracy after 250 steps on MNIST is 80 %, with 0.2 it is 88 %.
        initial = initializer(keras.initializers.TruncatedNormal(stddev=0.2))
        self.class_token = self.add_weight((1, self.d_model), initial, name="class_token")
        if self.distillation:
            self.distillation_token = self.add_weight(
                (1, self.d_model), initial, name="distillation_token"
            )
        if self.num_registers:
            self.registers = self.add_weight(
                (self.num_registers, self.d_model), initial, name="registers"
            )
        tokens = 1 + self.distillation + height * width
        self.positions = self.add_weight((tokens, self.d_model), initial, name="positions")

    def call(self, images: Any, training: bool = False) -> Any:
        if tuple(images.shape[1:]) != self.accepted:
            raise ValueError(
                f"images must be (batch, {', '.join(map(str, self.accepted))}), got "
                f"{tuple(images.shape)}"
            )
        rows = quick.shape(images)[0]
        x = quick.reshape(self.patches(images), (rows, -1, self.d_model))
        tokens = [self.class_token, *([self.distillation_token] if self.distillation else [])]
        first = [quick.zeros_like(x[:, :1]) + keras.ops.cast(token, x.dtype) for token in tokens]
        x = quick.concatenate([*first, x], axis=1) + keras.ops.cast(self.positions, x.dtype)
        if self.num_registers:
            registers = quick.zeros_like(x[:, :1]) + keras.ops.cast(self.registers, x.dtype)
            x = quick.concatenate([x[:, : len(first)], registers, x[:, len(first) :]], axis=1)
        return dropout(x, self.rate, self.seed_generator) if training and self.rate else x

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "image_size": self.image_size,
            "patch_size": self.patch_size,
            "dropout": self.rate,
            "distillation": self.distillation,
            "num_registers": self.num_registers,
        }


def resized_positions(
    positions_TD: np.ndarray,
    before: tuple[int, int],
    after: tuple[int, int],
    antialias: bool = False,
) -> np.ndarray:
    """Return positions for another number of patches (Dosovitskiy et al. 2021, section 3.2).

    Positions of patches are interpolated in the plane with Keys's bicubic kernel (1981),
    a = -0.75, like `torch.nn.functional.interpolate` with `align_corners=False`. The positions of
    the class token and of a distillation token are kept.

    Args:
        positions_TD: (1 + N, D), the class token's position first; (2 + N, D) with a
            distillation token.
        before, after: Rows and columns of patches, in `positions_TD` and in the result.
        antialias: Whether the kernel, with a = -0.5, is widened where positions become fewer, like
            `torch.nn.functional.interpolate` with `antialias=True`.

    Returns:
        (1 + N', D), or (2 + N', D).
    """
    weights = _antialiased if antialias else _bicubic
    rows, columns = (weights(*sizes) for sizes in zip(before, after, strict=True))
    first = len(positions_TD) - before[0] * before[1]
    plane_HWD = positions_TD[first:].reshape(*before, -1)
    plane_HWD = np.einsum("ih,jw,hwd->ijd", rows, columns, plane_HWD)
    patches_TD = plane_HWD.reshape(-1, positions_TD.shape[1])
    return np.concatenate([positions_TD[:first], patches_TD]).astype(positions_TD.dtype)


def _cubic(x, a):
    """Return Keys's kernel at distances x, in old positions."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _antialiased(before, after):
    """Return the weight of each old position in each new one: (after, before)."""
    distances = np.arange(before) + 0.5 - (np.arange(after)[:, None] + 0.5) * before / after
    shares = _cubic(distances / max(1, before / after), -0.5)
    return shares / shares.sum(1, keepdims=True)


def _bicubic(before, after):
    """Return the weight of each old position in each new one: (after, before)."""
    centers = (np.arange(after) + 0.5) * before / after - 0.5
    shares = np.zeros((after, before))
    for tap in range(-1, 3):
        neighbour = np.floor(centers) + tap
        column = np.clip(neighbour, 0, before - 1).astype(int)
        np.add.at(shares, (np.arange(after), column), _cubic(centers - neighbour, -0.75))
    return shares
