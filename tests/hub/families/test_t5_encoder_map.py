"""The encoder of a T5 alone, of `transformers`: the same states, and the same weights back."""

import json

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file

from keras_transformer import TextEmbedder, load_pretrained
from keras_transformer.hub.families import VARIANTS
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import T5Encoder
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import cases
from tests.hub.families.encoder_parity import assert_same
from tests.hub.families.parity import fill
from tests.hub.families.test_general_fields import known_fields

SIZES = dict(vocab_size=37, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=3)
KINDS = {
    "t5": ("T5", dict(relative_attention_num_buckets=8, relative_attention_max_distance=9)),
    "mt5": ("MT5", {}),
    "umt5": ("UMT5", dict(feed_forward_proj="gated-silu")),
}


@pytest.fixture(scope="module", params=cases(KINDS, "umt5"))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    name, options = KINDS[request.param]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES | options)
    theirs = getattr(transformers, f"{name}EncoderModel")(config).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def test_hidden_states(pair):
    theirs, _, ours = pair
    assert type(ours) is T5Encoder
    ids = np.random.default_rng(0).integers(2, 37, (3, 14)).astype("int32")
    ids[1, 5:] = ids[2, 1:] = 0
    is_token = ids != 0
    with torch.no_grad():
        inputs = dict(input_ids=torch.tensor(ids).long(), attention_mask=torch.tensor(is_token))
        expected = theirs(**inputs).last_hidden_state
    assert_same(ours({"token_ids": ops.convert_to_tensor(ids)}), expected, is_token)


@pytest.mark.once("files")
def test_a_folder_of_sentence_transformers(tmp_path):
    """A folder of sentence-t5 embeds texts; without its modules it is a model to fine-tune."""
    tokenizer = TextTokenizer.train(["a cat sleeps", "it rains"], "wordpiece", 37)
    tokenizer.save(tmp_path)
    torch.manual_seed(0)
    sizes = SIZES | dict(vocab_size=tokenizer.vocab_size)
    theirs = transformers.T5EncoderModel(transformers.T5Config(**sizes)).eval()
    theirs.save_pretrained(tmp_path)
    assert isinstance(load_pretrained(tmp_path).model, T5Encoder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [{"path": x, "type": f"sentence_transformers.models.{y}"} for x, y in kinds.items()]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    pooling = dict(word_embedding_dimension=16, pooling_mode_mean_tokens=True)
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    load_pretrained(tmp_path).save(tmp_path / "ours")
    (ids,) = tokenizer.encode(["a cat rains"])
    with torch.no_grad():
        expected = theirs(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0).numpy()
    found = TextEmbedder.load(tmp_path / "ours").embed(["a cat rains"], normalize=False)[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.once("weights are written as arrays")
def test_round_trip(pair, tmp_path):
    theirs, folder, ours = pair
    write_model(tmp_path, ours, theirs.config.model_type)
    before, after = (load_file(x / "model.safetensors") for x in (folder, tmp_path))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    again = type(theirs).from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(again[name], x) for name, x in theirs.state_dict().items())
    assert read_model(tmp_path).config == ours.config


@pytest.mark.once("what the files say")
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_in_a_column(kind):
    table = VARIANTS[kind, f"{KINDS[kind][0]}EncoderModel"].table
    columns = {*table.read, *table.harmless, *table.refused}
    assert known_fields(kind) - {"rope_scaling", "rope_theta"} <= columns
