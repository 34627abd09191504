"""Folders that sentence-transformers wrote: our vectors are theirs, or the field is refused."""

import json

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers.base.modules import Dense, Normalize
from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling

from keras_transformer import TextEmbedder, load_pretrained
from keras_transformer.hub.sentence_fields import LEGACY_POOLINGS
from tests.backends import cases
from tests.hub.sentence_folders import (
    PROMPTS,
    TEXTS,
    check,
    edit,
    write_decoder,
    write_source,
    write_whole,
    written,
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_source(tmp_path_factory.mktemp("source"))


MODES = Pooling.POOLING_MODES
MODULES = {mode: [lambda mode=mode: Pooling(16, mode)] for mode in MODES} | {
    "several": [lambda: Pooling(16, ("weightedmean", "cls", "max"))],
    "LaBSE": [lambda: Pooling(16, "cls"), lambda: Dense(16, 12), Normalize],
    "all": [
        lambda: Pooling(16, ("mean", "lasttoken")),
        lambda: Dense(32, 8, bias=False, activation_function=torch.nn.GELU(), use_residual=True),
        lambda: Dropout(0.5),
        lambda: LayerNorm(8),
        lambda: Dense(8, 8, activation_function=None, use_residual=True),
        Normalize,
    ],
}


@pytest.mark.parametrize("name", cases(MODULES, "several", "all"))
def test_modules(name, source, tmp_path):
    folder = written(source, tmp_path / "theirs", MODULES[name])
    if name == "LaBSE":  # older folders have a pickle
        tensors = {
            name: value.clone()
            for name, value in Dense(16, 12).linear.state_dict(prefix="linear.").items()
        }
        torch.save(tensors, folder / "2_Dense" / "pytorch_model.bin")
        (folder / "2_Dense" / "model.safetensors").unlink()
    check(folder, tmp_path)


GEMMA = dict(use_bidirectional_attention=True, sliding_window=4, query_pre_attn_scalar=8)
GEMMA |= dict(layer_types=["sliding_attention", "full_attention"])


@pytest.mark.parametrize(
    "model,mode,options", [("Qwen3", "lasttoken", {}), ("Gemma3Text", "mean", GEMMA)]
)
def test_a_decoder(model, mode, options, tmp_path):
    """Qwen3-Embedding: the state of the last token, which also pads; EmbeddingGemma."""
    source = write_decoder(tmp_path / "source", model, **options)
    modules = [lambda: Pooling(16, mode), lambda: Dense(16, 24, bias=False), Normalize]
    folder = written(source, tmp_path / "theirs", modules, prompts=PROMPTS)
    found, _ = check(folder, tmp_path, prompt_name="query")
    (ids,) = found.tokenizer.encode(TEXTS[:1])
    assert ids[-1] == found.model.config.pad_id
    with pytest.raises(ValueError, match="the model to train must be an encoder, got '"):
        found.trainable()


@pytest.mark.parametrize("activation", ["Identity", "Tanh", "ReLU", "Sigmoid", "SiLU", "GELU"])
@pytest.mark.once("each activation is a function of the backend")
def test_activations(activation, source, tmp_path):
    function = getattr(torch.nn, activation)()
    modules = [lambda: Pooling(16), lambda: Dense(16, 4, activation_function=function)]
    check(written(source, tmp_path / "theirs", modules), tmp_path)


@pytest.mark.once("texts and files")
def test_settings(source, tmp_path):
    """Length, case, prompts, similarity and truncation, all at once."""
    folder = written(
        source, tmp_path / "theirs", transformer=dict(max_seq_length=6),
        prompts=PROMPTS, default_prompt_name="query", similarity_fn_name="dot", truncate_dim=5,
    )  # fmt: skip
    edit(folder / "sentence_bert_config.json", do_lower_case=True)
    found, theirs = check(folder, tmp_path)
    assert found.max_length == 6
    for asked in (dict(prompt_name="document"), dict(prompt=""), dict(prompt="bad ")):
        found, theirs = check(folder, tmp_path, **asked)
    with pytest.raises(ValueError, match="prompt_name must be one of .*'document', 'query'.*"):
        found.embed(TEXTS, prompt_name="passage")
    np.testing.assert_allclose(found.embed(TEXTS), theirs.encode(TEXTS), atol=1e-5)


@pytest.mark.once("vectors in NumPy")
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_searches(similarity, source, tmp_path):
    options = dict(prompts=PROMPTS, similarity_fn_name=similarity)
    folder = written(source, tmp_path / "theirs", **options)
    theirs = sentence_transformers.SentenceTransformer(str(folder))
    load_pretrained(folder).save(tmp_path / "ours")
    found = TextEmbedder.load(tmp_path / "ours").similar(TEXTS[:2], TEXTS, 4)
    vectors = theirs.encode_query(TEXTS[:2]), theirs.encode_document(TEXTS)
    expected = theirs.similarity(*vectors).numpy()
    for row, own in zip(expected, found, strict=True):
        assert [x.index for x in own] == list(np.argsort(-row))
        np.testing.assert_allclose([x.score for x in own], np.sort(row)[::-1], atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("mode", cases(MODES, "cls"))
def test_a_prompt_that_does_not_count(mode, source, tmp_path):
    modules = [lambda: Pooling(16, mode, include_prompt=False)]
    folder = written(source, tmp_path / "theirs", modules, prompts=PROMPTS)
    check(folder, tmp_path, prompt_name="query")
    check(folder, tmp_path)


@pytest.mark.once("files")
@pytest.mark.parametrize("name", ["sentence_bert_config.json", "sentence_roberta_config.json"])
def test_the_length_of_older_folders(name, source, tmp_path):
    folder = written(source, tmp_path / "theirs", [lambda: Pooling(16)])
    (folder / "sentence_bert_config.json").unlink()
    (folder / name).write_text(json.dumps({"max_seq_length": 4, "do_lower_case": False}))
    assert check(folder, tmp_path)[0].max_length == 4


@pytest.mark.once("files")
def test_older_poolings(source, tmp_path):
    folder = written(source, tmp_path / "theirs", [lambda: Pooling(16)])
    for modes in (["mean_tokens"], ["lasttoken", "cls_token"], []):
        flags = {name: name.removeprefix("pooling_mode_") in modes for name in LEGACY_POOLINGS}
        facts = {"word_embedding_dimension": 16} | flags
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(facts))
        check(folder, tmp_path)


@pytest.mark.once("files")
def test_modules_that_are_not_supported(source, tmp_path):
    folder = write_whole(tmp_path / "folder", source)
    modules = json.loads((folder / "modules.json").read_text())
    for change, message in (
        ({"type": "sentence_transformers.models.CNN"}, "type of a module in .* got '.*CNN'"),
        ({"type": "pylate.models.Dense.Dense"}, "type of a module in .* got 'pylate"),
        ({"type": modules[0]["type"]}, "the modules in .* must be Transformer, Pooling and"),
        ({"kwargs": ["task"]}, r"kwargs in .*modules.json is \['task'\], which is not supported"),
        ({"path": "../other"}, "path of a module in .* must be a folder inside the model's"),
    ):
        changed = [*modules[:2], modules[2] | change, *modules[3:]]
        (folder / "modules.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=message):
            load_pretrained(folder)
    (folder / "modules.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"modules.json must be a list of objects, got \{'a'"):
        load_pretrained(folder)
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="1_Pooling"):
        load_pretrained(folder)
