"""Heads and labels of encoder-only checkpoints, and configs that do not fit."""

import dataclasses

import numpy as np
import pytest
from keras import ops

from keras_transformer.hub.families import (
    FAMILIES,
    bert_map,
    deberta_map,
    distilbert_map,
    electra_map,
    esm_map,
    mpnet_map,
)
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from tests.hub.families.encoder_parity import encoder, encoder_batch, run
from tests.hub.families.minimal import minimal
from tests.hub.families.parity import configure


@pytest.fixture
def folder(tmp_path):
    encoder("Bert", {}, "ForMaskedLM").save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(is_decoder=True), "is_decoder must be False, got True"),
        (dict(tie_word_embeddings=False), "tie_word_embeddings must be True"),
        (dict(position_embedding_type="relative_key"), "type must be 'absolute', got 'relat"),
        (dict(hidden_act="mish"), "hidden_act must be one of .*, got 'mish'"),
        (dict(architectures=["BertGenerator"]), "architectures must be one of .*'BertForMa"),
        (dict(model_type="esm"), "position_embedding_type must be 'rotary', got 'absolute'"),
        (dict(model_type="roberta", hidden_act="relu"), "hidden_act must be 'gelu', got 'relu'"),
        (
            dict(model_type="albert", num_hidden_groups=3, embedding_size=8),
            "num_hidden_groups must be at most num_hidden_layers=2, got 3",
        ),
        (
            dict(model_type="albert", inner_group_num=2, embedding_size=8),
            "inner_group_num must be 1, got 2",
        ),
    ],
)
def test_configs_that_do_not_fit(folder, changes, message):
    configure(folder, **changes)
    with pytest.raises(ValueError, match=message):
        read_model(folder)


NAMES = bert_map.NAMES | {"distilbert": distilbert_map.NAMES, "electra": electra_map.NAMES}
NAMES |= {"deberta-v2": deberta_map.NAMES, "esm": esm_map.NAMES, "mpnet": mpnet_map.NAMES}


@pytest.mark.once("what the files say")
@pytest.mark.parametrize("kind", NAMES)
def test_the_head_by_the_weights(kind):
    """SciBERT and the small BERTs have no `architectures`."""
    family = FAMILIES[kind]
    config = family.read(minimal(kind), [])
    for head in NAMES[kind].heads:
        rules = family.rules(dataclasses.replace(config, head=head))
        names = {name for rule in rules for name in rule.names}
        assert family.read(minimal(kind), names).head == head


def test_heads_that_the_config_does_not_name(folder):
    """The model is the one that is named; the weights of the others are left out."""
    theirs = encoder("Bert", {}, "ForPreTraining")
    theirs.save_pretrained(folder)
    configure(folder, architectures=["BertModel"])
    with pytest.warns(UserWarning, match="of other heads .* left out: cls.predictions.bias, cls"):
        ours = read_model(folder, dtype="float32")
    inputs = encoder_batch(ours.config)
    found, expected = ours(inputs)["pooled"], run(theirs.bert, inputs, 0).pooler_output
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=1e-4)


def test_heads_that_cannot_be_written(folder, tmp_path):
    model = read_model(folder)
    embedding = model.with_head("sentence_embedding")
    with pytest.raises(ValueError, match="bert: head must be one of .*, got 'sentence_embedding'"):
        write_model(tmp_path / "out", embedding)
    with pytest.raises(ValueError, match="esm: it stores ESM models"):
        write_model(tmp_path / "out", embedding, kind="esm")
    with pytest.raises(
        ValueError, match="window must be None: the checkpoint format has no window, got 2"
    ):
        write_model(tmp_path / "out", model.with_head("masked_lm", window=2))
    with pytest.raises(ValueError, match="roberta: it would be .*position_offset=1"):
        write_model(tmp_path / "out", model, kind="roberta")
    with pytest.raises(ValueError, match="roberta: head must be .*, got 'next_sentence'"):
        write_model(tmp_path / "out", model.with_head("next_sentence"), kind="roberta")
