"""Maps between our models and Hugging Face checkpoints, as data.

`FAMILIES` has a `Family` for each `model_type` of a `config.json`: conversions between this file
and our config, and `Rule`s that map our weights to tensors of the checkpoint.
"""

from keras_transformer.hub.families import (
    bart_classifier_map,
    bart_map,
    bert_map,
    deberta_map,
    dinov2_map,
    distilbert_map,
    electra_map,
    esm_map,
    eurobert_map,
    gemma_map,
    gpt_map,
    granite_map,
    hunyuan_map,
    llama_map,
    metric_map,
    mixture_map,
    modernbert_map,
    mpnet_map,
    olmo_map,
    phi_map,
    qwen_map,
    t5_encoder_map,
    t5_map,
    t5gemma_map,
    vit_map,
    whisper_map,
)
from keras_transformer.hub.families.family import Family, Rule

FAMILIES: dict[str, Family] = {
    kind: family
    for home in (
        bart_map,
        t5_map,
        t5gemma_map,
        gpt_map,
        llama_map,
        qwen_map,
        mixture_map,
        hunyuan_map,
        phi_map,
        olmo_map,
        granite_map,
        gemma_map,
        bert_map,
        deberta_map,
        distilbert_map,
        mpnet_map,
        electra_map,
        esm_map,
        modernbert_map,
        eurobert_map,
        vit_map,
        dinov2_map,
        whisper_map,
    )
    for kind, family in home.FAMILIES.items()
}

# Families of checkpoints whose model class is not the usual one of their `model_type`. The keys are
# pairs of a `model_type` and a class name of `transformers`, the first one in `architectures`.
VARIANTS: dict[tuple[str, str], Family] = (
    bart_classifier_map.VARIANTS | t5_encoder_map.VARIANTS | metric_map.VARIANTS
)

__all__ = ["FAMILIES", "VARIANTS", "Family", "Rule"]
