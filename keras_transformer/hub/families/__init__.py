"""Maps between our weights and those of Hugging Face checkpoints: one map per family, as data.

A family has the `model_type`s of its `config.json`, conversions between that file and our config,
and `Rule`s that map one weight to another.
"""

from keras_transformer.hub.families import (
    bart,
    bart_classifier,
    bert,
    deberta,
    distilbert,
    electra,
    esm,
    gemma,
    gpt,
    llama,
    mpnet,
    phi,
    qwen,
    t5,
    t5_encoder,
    vit,
    whisper,
)
from keras_transformer.hub.families.family import Family, Rule

FAMILIES: dict[str, Family] = {
    kind: family
    for home in (
        bart,
        t5,
        gpt,
        llama,
        qwen,
        phi,
        gemma,
        bert,
        deberta,
        distilbert,
        mpnet,
        electra,
        esm,
        vit,
        whisper,
    )
    for kind, family in home.FAMILIES.items()
}

# Families of checkpoints whose model class is not the usual one of their `model_type`. The keys are
# pairs of a `model_type` and a class name of `transformers`, the first one in `architectures`.
VARIANTS: dict[tuple[str, str], Family] = bart_classifier.VARIANTS | t5_encoder.VARIANTS

__all__ = ["FAMILIES", "VARIANTS", "Family", "Rule"]
