"""Vectors of texts from hidden states: pooling, and the modules of sentence-transformers after it.

Reimers and Gurevych 2019, section 3, pool the hidden states of a BERT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole

POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
STEPS = ("dense", "layer_norm", "normalize")
ACTIVATIONS: Mapping[str, Callable] = {
    "linear": lambda x: x,
    "tanh": ops.tanh,
    "relu": ops.relu,
    "sigmoid": ops.sigmoid,
    "silu": ops.silu,
    "gelu": lambda x: ops.gelu(x, approximate=False),
}


def pool(x_BTD: Any, counts_BT: Any, modes: Sequence[str]) -> Any:
    """Return a vector for each text, the results of all modes concatenated: (B, D * modes).

    Args:
        x_BTD: Hidden states.
        counts_BT: Whether each token counts, boolean. In each row, tokens that count are adjacent.
        modes: Some of `POOLINGS`: "mean" of all tokens; "cls", the first token; "lasttoken", the
            last one; "max", the maximum of each element; "mean_sqrt_len_tokens", the sum divided by
            the square root of the number of tokens; "weightedmean", the mean with the weights
            1, 2, ... of the positions.
    """
    weights_BT1 = ops.expand_dims(ops.cast(counts_BT, x_BTD.dtype), -1)
    positions_BT1 = ops.cumsum(ops.ones_like(weights_BT1), axis=1)

    def total(weights):
        return ops.sum(ops.where(weights > 0, x_BTD, 0) * weights, axis=1)

    def at(order):
        """Return the hidden state of the token with the highest value in `order`."""
        return total(ops.cast(ops.equal(order, ops.max(order, axis=1, keepdims=True)), x_BTD.dtype))

    count_B1 = ops.maximum(ops.sum(weights_BT1, axis=1), 1e-9)
    weighted_BT1 = weights_BT1 * positions_BT1
    vectors = {
        "mean": lambda: total(weights_BT1) / count_B1,
        "mean_sqrt_len_tokens": lambda: total(weights_BT1) / ops.sqrt(count_B1),
        "weightedmean": lambda: (
            total(weighted_BT1) / ops.maximum(ops.sum(weighted_BT1, axis=1), 1e-9)
        ),
        "max": lambda: ops.max(ops.where(weights_BT1 > 0, x_BTD, -float("inf")), axis=1),
        "lasttoken": lambda: at(weighted_BT1),
        "cls": lambda: at(weights_BT1 / positions_BT1),
    }
    return ops.concatenate([vectors[mode]() for mode in modes], axis=-1)


@dataclass(frozen=True, eq=False)
class Step:
    """A module of sentence-transformers after the pooling: a function of vectors (B, D).

    Args:
        kind: One of `STEPS`: "dense", activation(x W + b); "layer_norm"; or "normalize", the vector
            scaled to norm 1.
        activation: One of `ACTIVATIONS`, for "dense".
        weights: For "dense" `kernel` (D, E), and optionally `bias` (E,) and `residual` R (D, E);
            for "layer_norm" `gamma` and `beta` (D,).
        residual: Whether "dense" adds its input, times R if there is one.
    """

    kind: str
    activation: str = "linear"
    residual: bool = False
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)

    WEIGHTS: ClassVar = {"dense": ("kernel",), "layer_norm": ("gamma", "beta"), "normalize": ()}

    def __post_init__(self):
        require(self.kind in STEPS, "a step's kind", self.kind, f"one of {STEPS}")
        known = tuple(ACTIVATIONS)
        require(self.activation in known, "a step's activation", self.activation, f"one of {known}")
        for name in self.WEIGHTS[self.kind]:
            require(name in self.weights, f"weights of a {self.kind}", [*self.weights], name)

    def width(self, before: int) -> int:
        """Return the width of the step's output, for input vectors of the width `before`."""
        return self.weights["kernel"].shape[1] if self.kind == "dense" else before

    def __call__(self, x_BD: Any) -> Any:
        """Return the output of the step for vectors (B, D)."""
        weights = {name: ops.convert_to_tensor(x) for name, x in self.weights.items()}
        if self.kind == "normalize":
            norm_B1 = ops.sqrt(ops.sum(ops.square(x_BD), axis=-1, keepdims=True))
            return x_BD / ops.maximum(norm_B1, 1e-12)
        if self.kind == "layer_norm":
            centered = x_BD - ops.mean(x_BD, axis=-1, keepdims=True)
            variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
            return centered / ops.sqrt(variance + 1e-5) * weights["gamma"] + weights["beta"]
        y_BE = ops.matmul(x_BD, weights["kernel"])
        y_BE = y_BE + weights["bias"] if "bias" in weights else y_BE
        y_BE = ACTIVATIONS[self.activation](y_BE)
        if not self.residual:
            return y_BE
        return y_BE + (ops.matmul(x_BD, weights["residual"]) if "residual" in weights else x_BD)


@dataclass(frozen=True, eq=False)
class Embedding:
    """Settings of a text embedder, besides its encoder and the pooling.

    Args:
        steps: Modules after the pooling.
        prompts: Texts to put in front of the input texts, by name.
        default_prompt_name: Name of the prompt to use if none is chosen; None: no prompt.
        include_prompt: Whether tokens of a prompt count in the pooling.
        max_length: Maximum tokens of a text; None: the model's maximum.
        similarity: How vectors are compared, one of `SIMILARITIES`.
        dimension: Number of leading elements of a vector that are kept; None: all.

    Raises:
        ValueError: If a value is unknown or out of range.
    """

    steps: tuple[Step, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    include_prompt: bool = True
    max_length: int | None = None
    similarity: str = "cosine"
    dimension: int | None = None

    def __post_init__(self):
        texts = isinstance(self.prompts, Mapping)
        texts = texts and all(isinstance(x, str) for pair in self.prompts.items() for x in pair)
        require(texts, "prompts", self.prompts, "texts by name")
        for name in ("max_length", "dimension"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), 1)
        known = f"one of {SIMILARITIES}"
        require(self.similarity in SIMILARITIES, "similarity", self.similarity, known)
        is_flag = isinstance(self.include_prompt, bool)
        require(is_flag, "include_prompt", self.include_prompt, "true or false")
        self.prompt(None, self.default_prompt_name)

    def prompt(self, text: str | None, name: str | None) -> str:
        """Return the text to put in front of the input texts.

        Args:
            text: The text itself; None: that of the name.
            name: One of `prompts`; None: the default.

        Raises:
            ValueError: If `text` is not a string, or `name` is not in `prompts`.
        """
        if text is not None:
            require(isinstance(text, str), "prompt", text, "a string or None")
            return text
        name = self.default_prompt_name if name is None else name
        known = sorted(self.prompts) or "none: the model has no prompts"
        require(name is None or name in self.prompts, "prompt_name", name, f"one of {known}")
        return "" if name is None else self.prompts[name]

    def prompt_name(self, *names: str) -> str | None:
        """Return the first of these names that has a prompt; None if none has."""
        return next((name for name in names if name in self.prompts), None)

    def width(self, pooled: int) -> int:
        """Return the width of the final vectors, for pooled vectors of the width `pooled`."""
        for step in self.steps:
            pooled = step.width(pooled)
        return min(pooled, self.dimension or pooled)

    def __call__(self, x_BD: Any) -> Any:
        """Return the final vectors of texts from their pooled vectors (B, D), float32."""
        for step in self.steps:
            x_BD = step(x_BD)
        return x_BD[:, : self.dimension] if self.dimension else x_BD

    def facts(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, as plain values without weights."""
        steps = [{**asdict(x), "weights": sorted(x.weights)} for x in self.steps]
        names = ("prompts", "default_prompt_name", "include_prompt", "max_length", "similarity")
        settings = {"steps": steps} | {x: getattr(self, x) for x in (*names, "dimension")}
        usual = Embedding()
        return {x: y for x, y in settings.items() if y != getattr(usual, x) and y != []}

    def weights(self) -> dict[str, np.ndarray]:
        """Return the weights of the steps by keys such as "0/kernel", for step 0."""
        named = [(i, *item) for i, step in enumerate(self.steps) for item in step.weights.items()]
        return {f"{i}/{name}": np.asarray(x, "float32") for i, name, x in named}

    @classmethod
    def of(cls, facts: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> Embedding:
        """Return the settings that `facts` and `weights` were made from.

        Raises:
            ValueError: If a value or a weight is missing or wrong.
        """
        steps = []
        try:
            for i, values in enumerate(facts.get("steps", ())):
                arrays = {name: weights[f"{i}/{name}"] for name in values["weights"]}
                steps.append(Step(**{**values, "weights": arrays}))
            return cls(**{**facts, "steps": tuple(steps)})
        except (KeyError, TypeError) as error:
            raise ValueError(f"the embedding of the model does not fit: {error!r}") from error
