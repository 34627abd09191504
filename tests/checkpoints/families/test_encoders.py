"""Encoder-only families: what `transformers` computes, we compute; and back again."""

import json

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file, save_file

from keras_transformer.checkpoints.hugging_face import read_model, write_model

SIZES = dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=2)
SIZES |= dict(intermediate_size=20, max_position_embeddings=24, initializer_range=0.3)
LABELS = dict(id2label={0: "O", 1: "B-x", 2: "I-x"}, label2id={"O": 0, "B-x": 1, "I-x": 2})
ALBERT = dict(embedding_size=8, hidden_dropout_prob=0.0)
ESM = dict(position_embedding_type="rotary", token_dropout=True, mask_token_id=36, pad_token_id=1)
ESM |= dict(layer_norm_eps=1e-5, hidden_dropout_prob=0.0)
KINDS = {  # what classes are called, and options
    "bert": ("Bert", {}),
    "bert-relu": ("Bert", dict(hidden_act="relu", layer_norm_eps=1e-2, num_attention_heads=3)),
    "bert-types": ("Bert", dict(type_vocab_size=3, pad_token_id=5, num_hidden_layers=1)),
    "roberta": ("Roberta", dict(type_vocab_size=1, layer_norm_eps=1e-5)),
    "roberta-pad": ("Roberta", dict(pad_token_id=3)),
    "albert": ("Albert", ALBERT),
    "albert-deep": ("Albert", ALBERT | dict(num_hidden_layers=5, embedding_size=12)),
    "esm": ("Esm", ESM),
    "esm-plain": ("Esm", ESM | dict(token_dropout=False, rope_theta=50.0, layer_norm_eps=1e-12)),
}
ENDS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
ENDS += ("ForQuestionAnswering",)
CASES = [(kind, "ForMaskedLM") for kind in KINDS]
CASES += [
    (kind, end)
    for kind in ("bert", "roberta", "albert", "esm")
    for end in ENDS
    if end != "ForMaskedLM" and (kind, end) != ("esm", "ForQuestionAnswering")
]
CASES += [("bert", "ForPreTraining"), ("bert", "ForNextSentencePrediction")]
CASES += [("albert", "ForPreTraining")]
OUTPUTS = {  # the names of their outputs and of ours
    "Model": {"last_hidden_state": "hidden", "pooler_output": "pooled"},
    "ForPreTraining": {"prediction_logits": "masked_lm", 1: "next_sentence"},
    "ForQuestionAnswering": {"start_logits": "start", "end_logits": "end"},
}


def build(kind, end):
    name, options = KINDS[kind]
    options = dict(pad_token_id=1) | options if name == "Roberta" else options
    options = SIZES | options
    if end in ("ForSequenceClassification", "ForTokenClassification"):
        options |= LABELS
    torch.manual_seed(0)
    theirs = getattr(transformers, name + end)(getattr(transformers, f"{name}Config")(**options))
    with torch.no_grad():
        for path, weight in theirs.named_parameters():
            is_norm = weight.ndim == 1 and path.endswith("weight")
            weight.normal_(1.0 if is_norm else 0.0, 0.3)
    return theirs.eval()


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there; the kind of head."""
    kind, end = request.param
    theirs = build(kind, end)
    folder = tmp_path_factory.mktemp("-".join(request.param))
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32"), end


def batch(config):
    """Rows as long as there are positions, some padded, with all types and some masked tokens."""
    rng = np.random.default_rng(0)
    ids = rng.integers(6, 36, (3, config.max_length)).astype("int32")
    ids[:, [3, 5]] = getattr(config, "mask_id", 36)
    ids[1, 9:] = config.pad_id
    ids[2, 1:] = config.pad_id
    num_types = getattr(config, "num_types", 1)
    types = rng.integers(0, num_types, ids.shape).astype("int32")
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


def test_outputs(pair):
    theirs, _, ours, end = pair
    inputs = batch(ours.config)
    is_token = inputs["token_ids"] != ours.config.pad_id
    expected, found = run(theirs, inputs, ours.config.pad_id), ours(inputs)
    for name, own in OUTPUTS.get(end, {"logits": None}).items():
        assert_same(found[own] if own else found, expected[name], is_token)
    tensors = {name: ops.convert_to_tensor(value) for name, value in inputs.items()}
    bare = run(theirs.base_model, inputs, ours.config.pad_id).last_hidden_state
    assert_same(ours.encode(tensors), bare, is_token)


def test_without_types(pair):
    theirs, _, ours, end = pair
    inputs = {"token_ids": batch(ours.config)["token_ids"]}
    is_token = inputs["token_ids"] != ours.config.pad_id
    name, own = next(iter(OUTPUTS.get(end, {"logits": None}).items()))
    expected, found = run(theirs, inputs, ours.config.pad_id), ours(inputs)
    assert_same(found[own] if own else found, expected[name], is_token)


def test_round_trip(pair, tmp_path):
    theirs, folder, ours, _ = pair
    write_model(tmp_path, ours)
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
    inputs = batch(ours.config)
    one, other = (run(model, inputs, ours.config.pad_id)[0] for model in (again, theirs))
    np.testing.assert_array_equal(one, other)
    for name in ("id2label", "architectures", "num_labels", "layer_norm_eps", "pad_token_id"):
        assert getattr(again.config, name) == getattr(theirs.config, name), name
    assert read_model(tmp_path).config == ours.config


def edit(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def configure(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def folder(tmp_path):
    build("bert", "ForMaskedLM").save_pretrained(tmp_path)
    return tmp_path


def test_as_the_first_berts_were_saved(folder, tmp_path):
    """With TensorFlow's names of norms, copies of tied weights, and another head's weights."""
    inputs = batch(read_model(folder).config)
    expected = ops.convert_to_numpy(read_model(folder)(inputs))

    def older(tensors):
        for name in [name for name in tensors if "LayerNorm" in name]:
            other = name.replace(".weight", ".gamma").replace(".bias", ".beta")
            tensors[other] = tensors.pop(name)
        words = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.weight"] = words.copy()
        tensors["cls.seq_relationship.weight"] = np.zeros((2, 12), "float32")
        tensors["cls.seq_relationship.bias"] = np.zeros(2, "float32")
        tensors["bert.pooler.dense.weight"] = np.zeros((12, 12), "float32")
        tensors["bert.pooler.dense.bias"] = np.zeros(12, "float32")
        tensors["bert.embeddings.position_ids"] = np.zeros((1, 24), "int64")

    edit(folder, older)
    np.testing.assert_array_equal(ops.convert_to_numpy(read_model(folder)(inputs)), expected)


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(is_decoder=True), "is_decoder must be False, got True"),
        (dict(tie_word_embeddings=False), "tie_word_embeddings must be True"),
        (dict(position_embedding_type="relative_key"), "type must be 'absolute', got 'relat"),
        (dict(hidden_act="mish"), "activation must be one of .*, got 'mish'"),
        (dict(architectures=["BertGenerator"]), "architectures must be one of .*'BertForMa"),
        (dict(model_type="esm"), "position_embedding_type must be 'rotary', got None"),
        (dict(model_type="roberta", hidden_act="relu"), "hidden_act must be 'gelu', got 'relu'"),
        (
            dict(model_type="albert", num_hidden_groups=2, architectures=["AlbertModel"]),
            "num_hidden_groups must be 1, got 2",
        ),
    ],
)
def test_configs_that_do_not_fit(folder, changes, message):
    configure(folder, **changes)
    with pytest.raises(ValueError, match=message):
        read_model(folder)


def test_labels_by_number_alone(folder):
    configure(folder, num_labels=3)
    assert read_model(folder).config.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_heads_that_cannot_be_written(folder, tmp_path):
    model = read_model(folder)
    embedding = model.with_head("sentence_embedding")
    with pytest.raises(ValueError, match="bert: head must be one of .*, got 'sentence_embedding'"):
        write_model(tmp_path / "out", embedding)
    with pytest.raises(ValueError, match="esm: its models are ESMs"):
        write_model(tmp_path / "out", embedding, kind="esm")
    with pytest.raises(ValueError, match="window must be None: the layout has none, got 2"):
        write_model(tmp_path / "out", model.with_head("masked_lm", window=2))
    with pytest.raises(ValueError, match="roberta: it has .*position_offset=1"):
        write_model(tmp_path / "out", model, kind="roberta")
    with pytest.raises(ValueError, match="roberta: head must be .*, got 'next_sentence'"):
        write_model(tmp_path / "out", model.with_head("next_sentence"), kind="roberta")
