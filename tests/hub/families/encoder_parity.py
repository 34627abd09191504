"""A class of tests that compare checkpoints of encoders, which families inherit.

The fixture `pair` of a family's file gives a random model of `transformers`, its folder, ours read
from there, and the end of the name of its class, which says the head.
"""

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from tests.hub.families.parity import fill

ENCODER_SIZES = dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=2)
ENCODER_SIZES |= dict(intermediate_size=20, max_position_embeddings=24, initializer_range=0.3)
LABELS = dict(id2label={0: "O", 1: "B-x", 2: "I-x"}, label2id={"O": 0, "B-x": 1, "I-x": 2})
ENDS = "Model ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering"
ENDS = tuple(ENDS.split())
OUTPUTS = {  # the names of their outputs and of ours
    "Model": {"last_hidden_state": "hidden", "pooler_output": "pooled"},
    "ForPreTraining": {"prediction_logits": "masked_lm", 1: "next_sentence"},
    "ForQuestionAnswering": {"start_logits": "start", "end_logits": "end"},
}


WITHOUT_POOLER = ("deberta-v2", "distilbert", "electra", "modernbert", "eurobert")


def outputs(theirs, end):
    """The names of outputs, by kind of model: some have no pooler."""
    if theirs.config.model_type not in WITHOUT_POOLER:
        return OUTPUTS.get(end, {"logits": None})
    plain = {"Model": {"last_hidden_state": None}, "ForPreTraining": {"logits": None}}
    return (OUTPUTS | plain).get(end, {"logits": None})


def encoder(name, options, end):
    options = dict(pad_token_id=1) | options if name == "Roberta" else options
    options = ENCODER_SIZES | options
    if end in ("ForSequenceClassification", "ForTokenClassification"):
        options |= LABELS
    torch.manual_seed(0)
    theirs = getattr(transformers, name + end)(getattr(transformers, f"{name}Config")(**options))
    fill(theirs)
    return theirs.eval()


def encoder_pair(kind, end, folder):
    theirs = encoder(*kind, end)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32"), end


def encoder_batch(config):
    """Rows as long as there are positions, some padded, with all types and some masked tokens."""
    rng = np.random.default_rng(0)
    ids = rng.integers(6, 36, (3, config.max_length)).astype("int32")
    ids[:, [3, 5]] = getattr(config, "mask_id", 36)
    ids[1, 9:] = config.pad_id
    ids[2, 1:] = config.pad_id
    num_types = getattr(config, "num_types", 1)
    types = rng.integers(0, max(num_types, 1), ids.shape).astype("int32")
    return {"token_ids": ids} | ({"type_ids": types} if num_types > 1 else {})


def run(theirs, inputs, pad_id):
    ids = torch.tensor(inputs["token_ids"]).long()
    options = dict(input_ids=ids, attention_mask=(ids != pad_id).long())
    if "type_ids" in inputs:
        options["token_type_ids"] = torch.tensor(inputs["type_ids"]).long()
    with torch.no_grad():
        return theirs(**options)


def assert_same(found, expected, is_token):
    found, expected = ops.convert_to_numpy(found), expected.numpy()
    assert found.shape == expected.shape
    if found.shape[:2] == is_token.shape:
        found, expected = found[is_token], expected[is_token]
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


class EncoderParity:
    """The same outputs of each head, and the same weights and facts back."""

    def test_outputs(self, pair):
        theirs, _, ours, end = pair
        inputs = encoder_batch(ours.config)
        is_token = inputs["token_ids"] != ours.config.pad_id
        expected, found = run(theirs, inputs, ours.config.pad_id), ours(inputs)
        for name, own in outputs(theirs, end).items():
            assert_same(found[own] if own else found, expected[name], is_token)
        tensors = {name: ops.convert_to_tensor(value) for name, value in inputs.items()}
        bare = run(theirs.base_model, inputs, ours.config.pad_id).last_hidden_state
        assert_same(ours.encode(tensors), bare, is_token)

    def test_without_types(self, pair):
        theirs, _, ours, end = pair
        inputs = {"token_ids": encoder_batch(ours.config)["token_ids"]}
        is_token = inputs["token_ids"] != ours.config.pad_id
        name, own = next(iter(outputs(theirs, end).items()))
        expected, found = run(theirs, inputs, ours.config.pad_id), ours(inputs)
        assert_same(found[own] if own else found, expected[name], is_token)

    @pytest.mark.once("weights are written as arrays")
    def test_round_trip(self, pair, tmp_path):
        theirs, folder, ours, _ = pair
        write_model(tmp_path, ours, theirs.config.model_type)
        written, before = (load_file(x / "model.safetensors") for x in (tmp_path, folder))
        prefix = theirs.base_model_prefix + "."
        if theirs.base_model is theirs:
            written = {name.removeprefix(prefix): value for name, value in written.items()}
        lost = ("contact_head.regression.weight", "contact_head.regression.bias", "inv_freq")
        before = {
            name.replace(".gamma", ".weight").replace(".beta", ".bias"): value
            for name, value in before.items()
            if not name.endswith(lost)
        }
        assert set(written) == set(before)
        for name, value in before.items():
            np.testing.assert_array_equal(written[name], value)
        again = type(theirs).from_pretrained(tmp_path).eval()
        inputs = encoder_batch(ours.config)
        one, other = (run(model, inputs, ours.config.pad_id)[0] for model in (again, theirs))
        np.testing.assert_array_equal(one, other)
        for name in ("id2label", "architectures", "num_labels", "layer_norm_eps", "pad_token_id"):
            assert getattr(again.config, name, None) == getattr(theirs.config, name, None), name
        assert read_model(tmp_path).config == ours.config
