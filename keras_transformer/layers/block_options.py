"""Options of blocks, declared, validated and serialized in one place.

A layer takes them as keyword arguments and keeps them in `options`. A stack passes all of them to
its blocks, and a block passes to each sub-layer those that the sub-layer's class declares. The
paper's model sets six, the first fields of each class: `d_ff`, `activation`; `norm_first`,
`dropout`, `epsilon`; `num_heads`. It leaves the others, which are for later models, at their
defaults.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from keras_transformer.config import KERNELS, is_number, require, require_whole

QK_NORMS = (False, True, "rotated", "whole")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of the options of a layer."""

    old_names: ClassVar[tuple[str, ...]] = ()  # names in older files, accepted by `pop_from`

    @classmethod
    def pop_from(cls, given: dict[str, Any], **others: Any) -> Self:
        """Pop the options from a layer's keyword arguments and return them.

        Args:
            given: Keyword arguments of the layer; changed in place.
            others: Options that the layer takes as named arguments.
        """
        names = {field.name for field in dataclasses.fields(cls)} & given.keys()
        return cls(**others, **{name: given.pop(name) for name in names})

    @classmethod
    def fields_of(cls, config: Any) -> dict[str, Any]:
        """Return the options that are fields of a model's config, as keyword arguments.

        Args:
            config: A dataclass; each field with the name of an option must have its meaning.
        """
        names = (field.name for field in dataclasses.fields(cls))
        return {name: getattr(config, name) for name in names if hasattr(config, name)}

    def part(self, cls: type[Options]) -> dict[str, Any]:
        """Return the options that `cls` declares, as keyword arguments of a sub-layer.

        Args:
            cls: Options class of the sub-layer, a base class of this one.
        """
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(cls)}

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name as plain values, for `get_config`."""
        return dataclasses.asdict(self)

    def __post_init__(self):
        pass  # each subclass checks its own fields after `super().__post_init__()`


@dataclass(frozen=True, kw_only=True)
class FeedForwardOptions(Options):
    """Options of `FeedForward`.

    Args:
        d_ff: Width of the hidden layer.
        activation: Activation of the hidden layer, a Keras name or "gelu_tanh".
        gated: Whether the hidden layer is multiplied by a gate, see `FeedForward`.
        use_bias: Whether the projections add a bias.
    """

    d_ff: int
    activation: str = "relu"
    gated: bool = False
    use_bias: bool = True


@dataclass(frozen=True, kw_only=True)
class ExpertOptions(FeedForwardOptions):
    """Options of `MixtureOfExperts`, which replaces the `FeedForward` of a block.

    Args:
        num_experts: E, the number of experts; None: the block has a `FeedForward`.
        experts_per_token: K, the number of experts that each token uses.
        normalize_routing: Whether the weights of these K experts are scaled to sum to 1.
        balance_loss: Coefficient of the loss that balances the experts in training; 0: none.

    Raises:
        ValueError: If E is below 1, K is not in [1, E], `balance_loss` is below 0, or experts are
            to have biases.
    """

    num_experts: int | None = None
    experts_per_token: int = 2
    normalize_routing: bool = True
    balance_loss: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        loss = self.balance_loss
        require(is_number(loss) and loss >= 0, "balance_loss", loss, "a number of at least 0")
        if self.num_experts is None:
            return
        require_whole("num_experts", self.num_experts, 1)
        require_whole("experts_per_token", self.experts_per_token, 1)
        accepted = f"at most num_experts={self.num_experts}"
        is_part = self.experts_per_token <= self.num_experts
        require(is_part, "experts_per_token", self.experts_per_token, accepted)
        require(not self.use_bias, "use_bias", self.use_bias, "False with num_experts")


@dataclass(frozen=True, kw_only=True)
class AddNormOptions(Options):
    """Options of `AddNorm`.

    Args:
        norm_first: False is post-norm, as in the paper; True is pre-norm.
        dropout: Dropout rate in [0, 1) on the output of each sub-layer.
        epsilon: Epsilon of the norm.
        norm: Kind of norm, "layer", "layer_no_bias" or "rms".
        norm_input: Whether pre-norm normalizes the input of the sub-layer; False needs
            `norm_first`.
        norm_output: Whether the output of the sub-layer is normalized before it is added (Gemma 2;
            without `norm_input` OLMo 2); needs `norm_first`.
        residual_scale: Factor of the output of the sub-layer, above 0 (Granite).
        layer_scale: Initial value, above 0, of a trained factor for each feature of the output of
            the sub-layer (LayerScale, Touvron et al. 2021, section 2; DINOv2); None: no factor.

    Raises:
        ValueError: If `residual_scale` or `layer_scale` is not above 0, or `norm_first` is needed.
    """

    norm_first: bool = False
    dropout: float = 0.0
    epsilon: float = 1e-6
    norm: str = "layer"
    norm_input: bool = True
    norm_output: bool = False
    residual_scale: float = 1.0
    layer_scale: float | None = None

    def __post_init__(self):
        super().__post_init__()
        for name, usual in (("norm_input", True), ("norm_output", False)):
            value = getattr(self, name)
            require(self.norm_first or value is usual, name, value, f"{usual} without norm_first")
        require(self.residual_scale > 0, "residual_scale", self.residual_scale, "above 0")
        scale = self.layer_scale
        require(scale is None or scale > 0, "layer_scale", scale, "above 0 or None")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
    """Options of `MultiHeadAttention`.

    Args:
        num_heads: N; must divide the width of the query, unless `head_dim` is given.
        num_kv_heads: G, the number of key and value heads, each shared by N / G query heads
            (Ainslie et al. 2023; G = 1: Shazeer 2019); None: N.
        head_dim: H; None: D / N.
        use_bias: Whether the projections add a bias.
        qkv_bias: Whether the projections to queries, keys and values add a bias; None: the value
            of `use_bias`.
        output_bias: Whether the output projection adds a bias; None: the value of `use_bias`.
        qk_norm: Whether queries and keys have an RMS norm over each head (Henry et al. 2020): True,
            before the rotation (Qwen3, Gemma 3); "rotated", after it (Hunyuan); "whole", before it
            and over all heads together (OLMo 2).
        epsilon: Epsilon of these norms.
        query_scale: Factor of the products of queries and keys, 1.0 in T5 (Raffel et al. 2020);
            None: 1 / sqrt(H).
        soft_cap: Limits the products smoothly to (-soft_cap, soft_cap), before the mask:
            soft_cap * tanh(products / soft_cap) (Gemma 2); None: no limit.
        kernel: Linear attention, "elu" (Katharopoulos et al. 2020) or "performer" (Choromanski et
            al. 2021), see `layers.linear_attention`; None: softmax.
        window: Limits attention to keys less than this many positions away from the query (Beltagy
            et al. 2020, section 3.1; Mistral); None: no limit. With a window and without an
            attention bias, time and memory are linear in the length of a long input.
        global_tokens: Number of leading positions that attend to all positions, and that all
            positions attend to, regardless of the window.

    Raises:
        ValueError: If G does not divide N, the window is below 1, `global_tokens` below 0,
            `query_scale` or `soft_cap` is not above 0, `qk_norm` or the kernel is unknown, or a
            kernel comes with an option that needs the products of queries and keys: `window`,
            `global_tokens`, `query_scale`, `soft_cap`.
    """

    old_names: ClassVar[tuple[str, ...]] = ("scaled",)

    num_heads: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    use_bias: bool = True
    qkv_bias: bool | None = None
    output_bias: bool | None = None
    qk_norm: bool | str = False
    epsilon: float = 1e-6
    query_scale: float | None = None
    soft_cap: float | None = None
    kernel: str | None = None
    window: int | None = None
    global_tokens: int = 0

    @classmethod
    def pop_from(cls, given: dict[str, Any], **others: Any) -> Self:
        """Pop the options; older files have `scaled=False` for a `query_scale` of 1."""
        if not given.pop("scaled", True):
            given["query_scale"] = 1.0
        return super().pop_from(given, **others)

    def __post_init__(self):
        super().__post_init__()
        for name in ("query_scale", "soft_cap"):
            value = getattr(self, name)
            require(value is None or value > 0, name, value, "above 0 or None")
        accepted = f"one of {QK_NORMS}"
        require(self.qk_norm in QK_NORMS, "qk_norm", self.qk_norm, accepted)
        accepted = f"one of {KERNELS} or None"
        require(self.kernel in (*KERNELS, None), "kernel", self.kernel, accepted)
        if self.kernel:
            for name in ("query_scale", "soft_cap", "window"):
                value = getattr(self, name)
                require(value is None, name, value, f"None with kernel={self.kernel!r}")
            require(not self.global_tokens, "global_tokens", self.global_tokens, "0 with a kernel")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window must be at least 1 or None, got {self.window}")
        require(self.global_tokens >= 0, "global_tokens", self.global_tokens, "at least 0")
        if self.num_heads % (self.num_kv_heads or self.num_heads):
            raise ValueError(
                f"num_kv_heads must divide num_heads={self.num_heads}, got {self.num_kv_heads}"
            )


@dataclass(frozen=True, kw_only=True)
class BlockOptions(AttentionOptions, ExpertOptions, AddNormOptions):
    """Options of `EncoderBlock` and `DecoderBlock`: the options of all their sub-layers.

    Args:
        dropout: Dropout rate in [0, 1) on the output of each sub-layer.
        attention_norm_input: `norm_input` of the self-attention; None: the value of `norm_input`.
    """

    dropout: float = 0.1
    attention_norm_input: bool | None = None

    def of_attention_norm(self) -> dict[str, Any]:
        """Return the options of the self-attention's `AddNorm`, as keyword arguments."""
        options, norm_input = self.part(AddNormOptions), self.attention_norm_input
        return options if norm_input is None else options | dict(norm_input=norm_input)
