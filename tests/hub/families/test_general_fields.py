"""Every field that `transformers` 5 knows, at an unusual value: used, refused by name, or harmless.

A field that is used changes our config, and then our model computes what theirs does. A harmless
one does not change what their model computes.
"""

import dataclasses
import json

import pytest
from transformers import CONFIG_MAPPING, GenerationConfig

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.hugging_face_checkpoint import read_config
from tests.hub.families.minimal import completed, minimal
from tests.hub.families.test_fields import settled

# Fields of the base class that are no attribute before they are set.
BASE = {
    "per_layer_config", "tie_last_hidden_states", "output_attentions", "attn_implementation",
    "experts_implementation", "name_or_path", "torch_dtype", "num_labels", "use_return_dict",
}  # fmt: skip
INTERNAL = {"_post_init_done", "_output_attentions"}


def known_fields(kind):
    """Names that the class of `transformers` gives a meaning to."""
    cls = CONFIG_MAPPING[kind]
    own = {x.name for x in dataclasses.fields(cls)} | vars(cls()).keys() | cls.attribute_map.keys()
    generation = GenerationConfig._get_default_generation_params()
    own = {name for name in own | BASE if not name.startswith("_")}
    return own | generation.keys() | {"rope_scaling", "rope_theta"}


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_field_is_in_a_column(kind):
    table = FAMILIES[kind].table
    columns = {*table.read, *table.harmless, *table.refused}
    rotary = set() if "rope_parameters" in columns else {"rope_scaling", "rope_theta"}
    assert known_fields(kind) - rotary <= columns


# Values other than the usual one; of other fields: see `unusual`.
VALUES = {
    "activation": "relu",
    "activation_function": "silu",
    "hidden_act": "relu",
    "hidden_activation": "relu",
    "feed_forward_proj": "gated-silu",
    "dense_act_fn": "silu",
    "pooler_hidden_act": "tanh",
    "conv_act": "silu",
    "norm_rel_ebd": "none",
    "pos_att_type": ["c2p"],
    "position_embedding_type": "relative_key",
    "architectures": ["XForMultipleChoice"],
    "layer_types": ["full_attention"],
    "id2label": {"0": "a", "1": "b", "2": "c"},
    "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0},
    "rope_scaling": {"rope_type": "linear", "factor": 3.0},
    "original_max_position_embeddings": 7,
    "text_config": {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 4},
    "no_rope_layers": [0],
    "no_rope_layer_interval": 1,
    "max_window_layers": 0,
    "mlp_only_layers": [0],
    "partial_rotary_factor": 0.75,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 5,
    "num_key_value_heads": 1,
    "pad_token_id": 7,
    "mask_token_id": 7,
    "final_logit_softcapping": 2.5,
    "attn_logit_softcapping": 2.5,
    "query_pre_attn_scalar": 64,
    "conv_kernel_size": 3,
    "conv_groups": 4,
    "sliding_window_pattern": 1,
    "global_attn_every_n_layers": 1,
    "classifier_pooling": "mean",
}  # fmt: skip
WINDOW = dict(use_sliding_window=True, sliding_window=8, max_window_layers=0, no_rope_layers=[0])
# Fields without which the field has no effect.
WITH = {
    "use_sliding_window": WINDOW,
    "sliding_window": WINDOW,
    "max_window_layers": WINDOW,
    "layer_types": WINDOW,
    "original_max_position_embeddings": dict(rope_scaling=dict(rope_type="yarn", factor=2.0)),
    "conv_kernel_size": dict(conv_act="gelu"),
    "conv_act": dict(conv_kernel_size=3),
    "conv_groups": dict(conv_kernel_size=3, conv_act="gelu"),
    "num_key_value_heads": dict(num_attention_heads=64, hidden_size=256),
}
# Texts in front of a source, which the tokenizer reads; what a classifier alone reads, and tests
# of classifiers check; and what the weights tell.
ELSEWHERE = {
    *((kind, "problem_type") for kind in FAMILIES),
    *((kind, "task_specific_params") for kind in ("t5", "mt5", "umt5")),
    *((kind, "num_hidden_layers") for kind, x in FAMILIES.items() if x.synonyms),
    ("mt5", "tie_word_embeddings"),
    ("phi3", "original_max_position_embeddings"),  # test_phi_map.py
    ("t5gemma", "bos_token_id"),  # test_t5gemma_map.py
    ("hunyuan_v1_dense", "eod_token_id"),  # between documents in training: no model reads it
}
# Not as `transformers` 5.23: see docs/pretrained.md.
OTHERWISE = {("umt5", "tie_word_embeddings"), ("umt5", "scale_decoder_outputs")}


def unusual(name, value):
    if name in VALUES:
        return VALUES[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value * 2 if value > 1 else value + 1
    if isinstance(value, float):
        return 0.4
    return 6 if value is None else None


def read(kind, config, folder):
    """Our config of a folder, with weights of an output."""
    (folder / "config.json").write_text(json.dumps(config))
    theirs, family = read_config(folder)
    try:
        found = family.read(theirs, ["lm_head.weight", "classifier.weight"])
    except ValueError as error:  # as `read_model` does
        raise ValueError(family.in_their_words(str(error))) from error
    return settled(found)


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_field_that_is_read(kind, tmp_path):
    """Our config is another one, the same as with the file that `transformers` would write."""
    family, problems, defaults = FAMILIES[kind], [], CONFIG_MAPPING[kind]().to_dict()
    least = minimal(kind)
    for name in sorted({*family.fields, *family.also_read, *family.synonyms}):
        others = WITH.get(name, {}) if name in family.table.read - family.synonyms.keys() else {}
        base = least | {x: others[x] for x in family.table.read & others.keys() - {name}}
        value = unusual(name, base.get(family.synonyms.get(name, name), defaults.get(name)))
        changed = base | {name: value}
        try:
            found = read(kind, changed, tmp_path)
        except ValueError as error:
            if name not in str(error):
                problems.append((name, value, str(error)))
            continue
        if found == read(kind, base, tmp_path):
            problems.append((name, value, "ignored"))
        elif found != read(kind, completed(changed), tmp_path):
            problems.append((name, value, "not as in transformers"))
    assert not [x for x in problems if (kind, x[0]) not in ELSEWHERE | OTHERWISE]
