"""Which weight of ours is which of a Hugging Face checkpoint: a map a family, as data.

A family is the `model_type`s of its `config.json`, what our config makes of that file and back,
and `Rule`s from weight to weight.
"""

from keras_transformer.checkpoints.families import (
    bart,
    bert,
    esm,
    gpt,
    llama,
    t5,
    vit,
    whisper,
)
from keras_transformer.checkpoints.families.family import Family, Rule

FAMILIES: dict[str, Family] = {
    kind: family
    for home in (bart, t5, gpt, llama, bert, esm, vit, whisper)
    for kind, family in home.FAMILIES.items()
}

__all__ = ["FAMILIES", "Family", "Rule"]
