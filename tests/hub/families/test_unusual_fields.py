"""Models of unusual configs: ours computes what theirs does, whose harmless fields do nothing."""

import copy

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from transformers import CONFIG_MAPPING

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.families.general_fields import GENERATION
from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.hub.families.minimal import IMAGES, completed, minimal
from tests.hub.families.parity import fill
from tests.hub.families.test_general_fields import (
    ELSEWHERE,
    OTHERWISE,
    WITH,
    known_fields,
    read,
    unusual,
)

# Their fields are inside others: those of gemma3_text, and of gemma2.
KINDS = sorted(set(FAMILIES) - {"gemma3", "t5gemma"})
MODELS = ("Seq2SeqLM", "SpeechSeq2Seq", "CausalLM", "MaskedLM", "ImageClassification")
SINUSOIDS = "embed_positions.weight"


def model_of(kind, config):
    """A filled model of `transformers`."""
    config = CONFIG_MAPPING[kind].from_dict(copy.deepcopy(config))
    encoder = "type_vocab_size" in CONFIG_MAPPING[kind]().to_dict() or kind in ("esm", "distilbert")
    for name in ("MaskedLM",) if encoder else MODELS:
        auto = getattr(transformers, f"AutoModelFor{name}")
        if type(config) in auto._model_mapping:
            torch.manual_seed(0)
            config.architectures = config.architectures or []  # of a DeiT it must be a list
            model = auto.from_config(config, attn_implementation="eager").eval()
            fill(model, None if kind in ("bart", "mbart") else SINUSOIDS)
            return model
    raise AssertionError(kind)


@torch.no_grad()
def outputs(kind, theirs, ours=None):
    """Their logits, and ours."""
    rng, config = np.random.default_rng(0), theirs.config
    if kind in IMAGES:
        size = config.image_size, config.image_size, config.num_channels
        images = rng.normal(size=(2, *size)).astype("float32")
        inputs, mine = dict(pixel_values=images.transpose(0, 3, 1, 2)), images
    elif kind == "whisper":
        shape = 2, 2 * config.max_source_positions, config.num_mel_bins
        sounds = rng.normal(size=shape).astype("float32")
        target = rng.integers(10, 29, (2, 5))
        inputs = dict(input_features=sounds.transpose(0, 2, 1), decoder_input_ids=target)
        mine = dict(features=sounds, target_ids=target.astype("int32"))
    elif config.is_encoder_decoder:
        source, target = rng.integers(10, 29, (2, 7)), rng.integers(10, 29, (2, 5))
        inputs = dict(input_ids=source, decoder_input_ids=target)
        mine = dict(source_ids=source.astype("int32"), target_ids=target.astype("int32"))
    else:
        ids = rng.integers(10, 29, (2, 9))
        inputs, mine = dict(input_ids=ids), dict(token_ids=ids.astype("int32"))
    found = theirs(**{name: torch.tensor(x) for name, x in inputs.items()}, return_dict=True)
    return found.logits.numpy(), None if ours is None else ops.convert_to_numpy(ours(mine))


def all_unusual(kind, folder):
    """A config with every field that is read at an unusual value, if that can be."""
    family, config, defaults = FAMILIES[kind], minimal(kind), CONFIG_MAPPING[kind]().to_dict()
    names = {*family.fields, *family.also_read} - {x for y, x in ELSEWHERE | OTHERWISE if y == kind}
    for name in sorted(names - {"architectures", "num_labels"}):
        others = {x: y for x, y in WITH.get(name, {}).items() if x in family.table.read}
        value = {name: unusual(name, config.get(name, defaults.get(name)))}
        changed = config | others | value
        try:
            before, after = (read(kind, x, folder) for x in (changed, completed(changed)))
        except Exception:  # refused: see test_general_fields.py
            continue
        config = changed if before == after else config
    return config


@pytest.mark.parametrize("kind", KINDS)
def test_all_fields_at_once(kind, tmp_path):
    config = all_unusual(kind, tmp_path)
    assert sum(config.get(x) != y for x, y in minimal(kind).items()) >= 4
    theirs = model_of(kind, config)
    theirs.save_pretrained(tmp_path)
    expected, found = outputs(kind, theirs, read_model(tmp_path, "float32"))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max(), rtol=1e-4)


# Fields that decide how outputs are computed, and in which form and precision they come; and the
# names of the weights of DeBERTa's masked LM head, see test_deberta_map.py; and whether there is a
# weight of DINOv2's pretraining, see test_dinov2_map.py.
FORMS = {
    "return_dict", "use_return_dict", "dtype", "torch_dtype", "use_cache", "attn_implementation",
    "experts_implementation", "legacy", "use_mask_token",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_harmless_fields(kind):
    """All at once change nothing of what their model computes."""
    family = FAMILIES[kind]
    base = completed(minimal(kind))
    names = known_fields(kind) & family.table.harmless - GENERATION - family.table.read - FORMS
    values = {name: unusual(name, base.get(name)) for name in sorted(names)}
    changed = {}
    for name, value in values.items():
        try:
            completed(base | changed | {name: value})
        except Exception:  # of another type than this
            continue
        changed[name] = value
    one, other = model_of(kind, base), model_of(kind, base | changed)
    other.load_state_dict(one.state_dict())
    assert len(changed) > 3
    found, expected = (outputs(kind, model)[0] for model in (other, one))
    np.testing.assert_allclose(found, expected, atol=1e-5)  # a feed-forward in chunks rounds
