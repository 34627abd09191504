"""Map of checkpoints of the encoder of a T5, mT5 or UMT5 alone, such as sentence-t5."""

from __future__ import annotations

import functools

from keras_transformer.hub.families.family import Family
from keras_transformer.hub.families.fields import flag
from keras_transformer.hub.families.t5_map import (
    FEED_FORWARDS,
    NAMES,
    SYNONYMS,
    fields_of,
    read_shared,
    rules_of,
    write_shared,
)
from keras_transformer.models import T5Encoder, T5EncoderConfig

_CLASSES = {kind: f"{kind.upper()}EncoderModel" for kind in FEED_FORWARDS}


def _config(theirs, names):
    """Return our config of the encoder of a T5."""
    return T5EncoderConfig(num_layers=theirs["num_layers"], head="hidden", **read_shared(theirs))


def _config_file(config, kind):
    """Return the `config.json` of the encoder of a T5."""
    return write_shared(config) | dict(
        architectures=[_CLASSES[kind]],
        is_encoder_decoder=False,
        num_layers=config.num_layers,
        n_positions=config.max_length,
    )


def _rules(config):
    return rules_of(config, {"encoder": config.num_layers})


VARIANTS = {
    (kind, _CLASSES[kind]): Family(
        T5Encoder,
        _config,
        _rules,
        functools.partial(_config_file, kind=kind),
        aliases={"encoder.embed_tokens.weight": ("shared.weight",)},
        free=frozenset({"labels"}),
        fields=fields_of(feed_forward) | {"is_encoder_decoder": flag(True)},
        also_read=("pad_token_id",),
        # Fields of the decoder and of the output, which this model lacks.
        harmless=("num_decoder_layers", "scale_decoder_outputs", "tie_word_embeddings"),
        synonyms=SYNONYMS,
        names=NAMES,
        architectures=(_CLASSES[kind],),
    )
    for kind, feed_forward in FEED_FORWARDS.items()
}
