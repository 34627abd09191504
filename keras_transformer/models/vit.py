"""ViT: a Transformer encoder on patches of images (Dosovitskiy et al. 2021, section 3.1)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import ACTIVATIONS, Config, require
from keras_transformer.layers import Encoder, PatchEmbedding, resized_positions
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.layer import skip_init
from keras_transformer.models.configured import ConfiguredModel
from keras_transformer.models.problems import check_problem


@dataclass(frozen=True)
class ViTConfig(Config):
    """Config of a ViT (defaults: ViT-Base/16, Dosovitskiy et al. 2021, Table 1).

    Args:
        num_classes: Number of image classes; 0: a bare model, without a classifier.
        image_size: Height and width in pixels, multiples of `patch_size`; or one number for both.
        patch_size: Side of a patch in pixels.
        num_channels: Number of channels per pixel.
        d_model: Width of the residual stream; a multiple of `num_heads`.
        d_ff: Width inside the feed-forward; None: 4 `d_model`.
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        activation: Activation of the feed-forward, one of `ACTIVATIONS`.
        qkv_bias: Whether the projections to queries, keys and values add a bias.
        epsilon: Epsilon of the norms.
        problem_type: Meaning of a classifier's outputs, one of `problems.PROBLEM_TYPES`; None: see
            `problems.problem_of`.
        distillation: "none"; "token": a second token, which learned from a teacher, follows the
            class token (DeiT; Touvron et al. 2021, section 4); or "head": it has a classifier, too,
            and the logits are the mean of both.
        gated: Whether the feed-forward has a gate (DINOv2's largest model).
        layer_scale: See `AddNormOptions` (DINOv2).
        num_registers: Number of registers, see `PatchEmbedding` (Darcet et al. 2024).
        pooling: Input of the classifier: "class", the class token's last hidden state; or
            "class_and_mean", this and the mean of those of the patches (DINOv2).
        antialias: Whether `resized` interpolates positions with `antialias`, see
            `resized_positions`.

    Raises:
        ValueError: If a value is out of range.
    """

    num_classes: int
    image_size: tuple[int, int] | int = 224
    patch_size: int = 16
    num_channels: int = 3
    d_model: int = 768
    d_ff: int | None = None
    num_layers: int = 12
    num_heads: int = 12
    dropout: float = 0.0
    activation: str = "gelu"
    qkv_bias: bool = True
    epsilon: float = 1e-6
    problem_type: str | None = None
    distillation: str = "none"
    gated: bool = False
    layer_scale: float | None = None
    num_registers: int = 0
    pooling: str = "class"
    antialias: bool = False

    def __post_init__(self):
        self._fill_d_ff()
        self._check_whole("num_classes", "num_registers", least=0)
        self._check_whole("patch_size", "num_channels", "d_model", "d_ff", "num_layers")
        self._check_whole("num_heads")
        size = self.image_size
        size = (size, size) if isinstance(size, int) else size
        step, is_pair = self.patch_size, isinstance(size, list | tuple) and len(size) == 2
        is_multiple = is_pair and all(isinstance(x, int) and x > 0 and x % step == 0 for x in size)
        accepted = f"one or two multiples of patch_size={step}"
        require(is_multiple, "image_size", self.image_size, accepted)
        object.__setattr__(self, "image_size", tuple(size))
        self._check_multiple("d_model", "num_heads")
        self._check_rates()
        self._check_choice("activation", ACTIVATIONS)
        choices = ("none", "token", "head") if self.num_classes else ("none", "token")
        self._check_choice("distillation", choices)
        self._check_choice("pooling", ("class", "class_and_mean"))
        scale = self.layer_scale
        require(scale is None or scale > 0, "layer_scale", scale, "a number above 0 or None")
        check_problem(self.problem_type, self.num_classes)

    @property
    def patches(self) -> tuple[int, int]:
        """Number of rows and of columns of patches."""
        size: Any = self.image_size
        rows, columns = size
        return rows // self.patch_size, columns // self.patch_size

    @property
    def first_patch(self) -> int:
        """Index of the first patch in the hidden states."""
        return 1 + (self.distillation != "none") + self.num_registers


@keras.saving.register_keras_serializable("keras_transformer")
class ViT(ConfiguredModel):
    """A functional model from images to logits of classes, or to hidden states.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments:
        images: (B, height, width, channels), floats, normalized as in the model's training.

    Returns:
        Logits (B, classes) from the class token's last hidden state, see `pooling`; with
        `distillation` "head", the mean of these and of the distillation token's. `hidden(images)`
        returns the last hidden states of all tokens, (B, config.first_patch + patches, D), and so
        does a model without classes.

    Raises:
        ValueError: If images have another shape; `resized` makes a model for other sizes.
    """

    config_class = ViTConfig

    def __init__(self, config: ViTConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PatchEmbedding(
            config.d_model,
            config.image_size,  # type: ignore[arg-type]  # a pair now
            config.patch_size,
            dropout=config.dropout,
            distillation=config.distillation != "none",
            num_registers=config.num_registers,
            dtype=policy,
            name="embedding",
        )
        encoder = Encoder(
            config.num_layers,
            **BlockOptions.fields_of(config),
            norm_first=True,
            dtype=policy,
            name="encoder",
        )
        head = second = None
        if config.num_classes:
            head = Dense(config.num_classes, dtype=policy, name="head")
        if config.distillation == "head":
            second = Dense(config.num_classes, dtype=policy, name="distillation_head")

        def hidden(images):
            return encoder(embedding(images))

        size: Any = config.image_size
        images = keras.Input((*size, config.num_channels), name="images")
        x = hidden(images)
        outputs = x
        if head:
            pooled = x[:, 0]
            if config.pooling == "class_and_mean":
                mean = keras.ops.mean(x[:, config.first_patch :], axis=1)
                pooled = keras.ops.concatenate([pooled, mean], axis=-1)
            outputs = head(pooled)
        if second:
            outputs = keras.ops.multiply(outputs + second(x[:, 1]), 0.5)
        super().__init__(inputs=images, outputs=outputs, **kwargs)
        self.config = config
        self.embedding = embedding
        self.encoder = encoder
        self.head = head
        self.hidden = hidden
        self.input_spec = None  # the embedding raises a clearer error
        self._policy = policy


def with_classes(model: ViT, num_classes: int) -> ViT:
    """Return a copy of a ViT with a new classifier, whose weights are zeros.

    Dosovitskiy et al. 2021 (appendix B.1.1) also start fine-tuning from zeros.

    Args:
        model: The model to copy; not changed.
        num_classes: Number of image classes; 0: no classifier.
    """
    changes: dict[str, Any] = dict(num_classes=num_classes, problem_type=None)
    if not num_classes and model.config.distillation == "head":
        changes["distillation"] = "token"
    config = dataclasses.replace(model.config, **changes)
    with skip_init():
        new = ViT(config, dtype=model._policy)
    by_path = {weight.path: weight for weight in model.weights}
    for weight in new.weights:
        if not weight.path.startswith(("head/", "distillation_head/")):
            weight.assign(by_path[weight.path])
    return new


def resized(model: ViT, image_size: tuple[int, int] | int) -> ViT:
    """Return a copy of a ViT for another image size, with interpolated positions.

    Args:
        model: The model to copy; not changed.
        image_size: Height and width in pixels, or one number for both.

    Raises:
        ValueError: If `image_size` is not a multiple of the model's `patch_size`.
    """
    config = dataclasses.replace(model.config, image_size=image_size)
    with skip_init():
        new = ViT(config, dtype=model._policy)
    for before, after in zip(model.weights, new.weights, strict=True):
        value = keras.ops.convert_to_numpy(before)
        if after is new.embedding.positions:
            patches = model.config.patches, config.patches
            value = resized_positions(value, *patches, config.antialias)
        after.assign(value)
    return new
