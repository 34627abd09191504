"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017)."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.config import TransformerConfig, require
from keras_transformer.layers import Decoder, Encoder, PositionalEmbedding, record_attention
from keras_transformer.layers.basic import Bias, Dense
from keras_transformer.losses import alignment_loss
from keras_transformer.models.encoder_decoder import EncoderDecoder, Parts


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(EncoderDecoder):
    """The model of Figure 1: a functional model from `source_ids` and `target_ids` to logits.

    ```python
    model = Transformer(TransformerConfig.base(vocab_size=37_000))
    model.compile(optimizer, LabelSmoothedCrossentropy())
    model.fit(batches)
    ```

    The fields of its config also cover BART, Marian, Pegasus, M2M-100, NLLB and mBART.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderDecoder`. With
    `guided_alignment` in the config, `inputs` may also have `alignment` (B, T), int32: for each
    label the index of the source token that it translates, or -1. A call then adds the
    `alignment_loss` of the first head of `Decoder.aligning`.
    """

    config_class = TransformerConfig
    optional_inputs = EncoderDecoder.optional_inputs | {"alignment"}

    def __init__(self, config: TransformerConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        super().__init__(config, policy, parts_of(config, policy), **kwargs)

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Return the last hidden states (B, T, D); add the loss of an `alignment` in the inputs."""
        alignment_BT, weight = inputs.get("alignment"), self.config.guided_alignment
        if alignment_BT is None:
            return super().compute_hidden(inputs)
        require(weight > 0, "guided_alignment", weight, "above 0 for an alignment in the inputs")
        require(not self.decoder.remat, "guided_alignment", weight, "0 with remat")
        with record_attention(self.decoder.aligning.path) as weights:
            hidden = super().compute_hidden(inputs)
        weights_BNTS = weights[self.decoder.aligning.path]
        is_token_BT = ops.not_equal(inputs["target_ids"], self.config.pad_id)
        loss = alignment_loss(weights_BNTS[:, 0], alignment_BT, is_token_BT)
        self.decoder.add_loss(weight * loss)
        return hidden


def parts_of(config: TransformerConfig, policy: Any) -> Parts:
    """Return the layers of a model with this config and dtype policy."""
    stack = dict(
        num_heads=config.num_heads,
        d_ff=config.d_ff,
        dropout=config.dropout,
        layer_drop=config.layer_drop,
        activation=config.activation,
        norm_first=config.norm_first,
        epsilon=config.epsilon,
        dtype=policy,
    )
    target_embedding = _embedding(config, config.target_vocab_size, policy, "target_embedding")
    source_embedding, tokens = target_embedding, None
    if config.share_embeddings:
        tokens = target_embedding.tokens
        target_embedding.build((None, None))  # first, so that it names the shared table
    if not config.share_embeddings or config.norm_embeddings:
        source_embedding = _embedding(
            config, config.source_vocab_size, policy, "source_embedding", tokens
        )
    output_layer = target_embedding.tokens
    if not config.tie_output:
        output_layer = Dense(config.target_vocab_size, use_bias=False, dtype=policy, name="output")
    return Parts(
        config.pad_id,
        source_embedding,
        target_embedding,
        Encoder(config.num_encoder_layers, **stack, name="encoder"),
        Decoder(
            config.num_decoder_layers,
            **stack | config.decoder_sizes,
            recurrence=config.decoder_recurrence,
            name="decoder",
        ),
        output_layer,
        Bias(dtype=policy, name="output_bias") if config.output_bias else None,
    )


def _embedding(config, vocab_size, policy, name, tokens=None):
    """Return the embedding of the source or the target; `tokens` is a table to share."""
    return PositionalEmbedding(
        vocab_size,
        config.d_model,
        positions=config.positions,
        max_length=config.max_length,
        dropout=config.dropout,
        scale=config.scale_embeddings,
        position_offset=config.position_offset,
        norm=config.norm_embeddings,
        epsilon=config.epsilon,
        tokens=tokens,
        dtype=policy,
        name=name,
    )
