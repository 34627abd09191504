"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers import Decoder, Encoder, PositionalEmbedding, padding_mask


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(keras.Model):
    """Figure 1: a functional model from `source_ids` and `target_ids` to logits.

    ```python
    model = Transformer(TransformerConfig.base(vocab_size=37_000))
    model.compile(optimizer, LabelSmoothedCrossentropy())
    model.fit(batches)
    ```

    Args:
        config: sizes and choices.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None takes the global one.

    Call arguments:
        inputs: dict of `source_ids` (B, S) and `target_ids` (B, T), int32, padded with
            `config.pad_id`; the target starts with `config.bos_id` and is one place behind
            the labels.

    Returns:
        logits (B, T, V).
    """

    def __init__(self, config: TransformerConfig, dtype: Any = None, **kwargs):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = dict(
            num_heads=config.num_heads,
            d_ff=config.d_ff,
            dropout=config.dropout,
            activation=config.activation,
            norm_first=config.norm_first,
            dtype=policy,
        )
        target_embedding = _embedding(config, config.target_vocab_size, policy, "target_embedding")
        source_embedding = target_embedding
        if not config.share_embeddings:
            source_embedding = _embedding(
                config, config.source_vocab_size, policy, "source_embedding"
            )
        encoder = Encoder(config.num_encoder_layers, **stack, name="encoder")
        decoder = Decoder(config.num_decoder_layers, **stack, name="decoder")
        output = None
        if not config.tie_output:
            output = keras.layers.Dense(
                config.target_vocab_size, use_bias=False, dtype=policy, name="output"
            )

        def project(x):
            return output(x) if output else target_embedding(x, reverse=True)

        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        source_mask = padding_mask(source_ids, config.pad_id)
        memory = encoder(source_embedding(source_ids), attention_mask=source_mask)
        x, _ = decoder(
            target_embedding(target_ids), memory=memory, cross_attention_mask=source_mask
        )
        super().__init__(
            inputs={"source_ids": source_ids, "target_ids": target_ids},
            outputs=project(x),
            **kwargs,
        )
        self.config = config
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self._policy = policy
        self._project = project

    def prefill(self, source_ids: Any, first_ids: Any, length: Any) -> tuple[Any, Any, Callable]:
        """Reads the source and the first target tokens; what a search needs to go on.

        Args:
            source_ids: (B, S) int32, padded.
            first_ids: (B, P) int32, the target's first tokens, from `config.bos_id` on.
            length: positions the target may have in all, P and those to come.

        Returns:
            The logits (B, V) of the next token; the state, a tree of tensors whose first axis
            is B and which a search repeats and reorders for its beams; and
            `step(token_ids, state, index) -> logits, state`, which takes one token a row at
            position `index`. The rows may be any whole multiple of B, a sentence's side by
            side: the keys and values of the source exist once a sentence. On PyTorch a step may
            write into the state it is given: to go two ways from one state, copy it.
        """
        mask = padding_mask(source_ids, self.config.pad_id)
        memory = self.encoder(self.source_embedding(source_ids), attention_mask=mask)
        x, caches = self.decoder(
            self.target_embedding(first_ids), memory=memory, cross_attention_mask=mask
        )
        room = ((0, 0), (0, 0), (0, length - ops.shape(first_ids)[1]), (0, 0))
        state = [
            {name: ops.pad(tensor, room) for name, tensor in cache["self"].items()}
            for cache in caches
        ]

        def step(token_ids, state, index):
            x, stepped = self.decoder(
                self.target_embedding(ops.expand_dims(token_ids, 1), index=index),
                cross_attention_mask=mask,
                cache=[
                    {"self": own, "cross": cache["cross"]}
                    for own, cache in zip(state, caches, strict=True)
                ],
                index=index,
            )
            return self._project(x)[:, 0], [cache["self"] for cache in stepped]

        return self._project(x[:, -1:])[:, 0], state, step

    def get_config(self):
        return {
            "config": self.config.to_dict(),
            "dtype": keras.dtype_policies.serialize(self._policy),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        sizes = TransformerConfig.from_dict(config.pop("config"))
        dtype = config.pop("dtype", None)
        if isinstance(dtype, dict):
            dtype = keras.dtype_policies.deserialize(dtype)
        return cls(sizes, dtype=dtype, **config)


def _embedding(config, vocab_size, policy, name):
    return PositionalEmbedding(
        vocab_size,
        config.d_model,
        positions=config.positions,
        max_length=config.max_length,
        dropout=config.dropout,
        dtype=policy,
        name=name,
    )
