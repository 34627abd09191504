"""Folders that sentence-transformers wrote: our vectors are theirs, or the field is refused."""

import json
import shutil

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling

from keras_transformer import TextEmbedder, load_pretrained
from keras_transformer.checkpoints import sentence_transformers as tables
from tests.backends import cases

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s query : GOOD".split()
TEXTS = ["a good film", "the bad films the good film a film", "bad", "A GOOD film"]
PROMPTS = {"query": "query : ", "document": "the : "}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A bare BERT that tells case, by `transformers`."""
    folder = tmp_path_factory.mktemp("source")
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    tokenizer.save_pretrained(folder)
    return folder


def written(source, folder, modules=(), transformer=None, **options):
    """The folder of a SentenceTransformer with these modules, by default a pooling."""
    torch.manual_seed(1)
    first = Transformer(str(source), **(transformer or {}))
    modules = [make() for make in modules] or [Pooling(16)]
    model = sentence_transformers.SentenceTransformer(modules=[first, *modules], **options)
    model.save(str(folder))
    return folder


def edit(path, **changes):
    facts = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(facts | changes))


def check(folder, tmp_path, texts=TEXTS, theirs=None, **asked):
    """Our vectors, imported and saved, are those of sentence-transformers."""
    theirs = theirs or sentence_transformers.SentenceTransformer(str(folder))
    load_pretrained(folder).save(tmp_path / "ours")
    found = TextEmbedder.load(tmp_path / "ours")
    vectors = found.embed(texts, normalize=False, **asked)
    expected = theirs.encode(texts, batch_size=2, **asked)
    assert found.dimension == vectors.shape[1] == expected.shape[1]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    return found, theirs


@pytest.fixture(autouse=True)
def cut_quietly(recwarn):
    """Texts that are cut give a warning."""


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
        flags = {
            name: name.removeprefix("pooling_mode_") in modes for name in tables.LEGACY_POOLINGS
        }
        facts = {"word_embedding_dimension": 16} | flags
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(facts))
        check(folder, tmp_path)


# File, table, class whose arguments it has, and unusual values of each field.
TEXT = {"method": "forward", "method_output_name": "pooler_output"}
FIELDS = {
    "sentence_bert_config.json": (
        tables.OF_TRANSFORMER, Transformer,
        dict(
            max_seq_length=5, do_lower_case=True, transformer_task="fill-mask",
            modality_config={"text": TEXT}, module_output_name="sentence_embedding",
            processing_kwargs={"text": {"padding": "max_length"}}, unpad_inputs=False,
            query_length=4, document_length=4, query_expansion={"length": 4},
            model_args={"a": 1}, model_kwargs={"a": 1}, tokenizer_args={"a": 1},
            processor_kwargs={"model_max_length": 4}, config_args={"a": 1},
            config_kwargs={"hidden_dropout_prob": 0.5}, tokenizer_name_or_path="x",
            backend="torch", cache_dir="x",
        ),
    ),
    "config_sentence_transformers.json": (
        tables.OF_SETTINGS, None,
        dict(
            prompts={"x": "bad "}, default_prompt_name="document", similarity_fn_name="maxsim",
            truncate_dim=3, model_type="SparseEncoder", activation_fn="torch.nn.ReLU",
            __version__={"sentence_transformers": "1.0"}, requirements={"torch": ">=1"},
            keep_in_fp32_modules=[],
        ),
    ),
    "1_Pooling/config.json": (
        tables.OF_POOLING, Pooling,
        dict(
            embedding_dimension=8, word_embedding_dimension=8, pooling_mode=["max", "cls"],
            include_prompt=False, **dict.fromkeys(tables.LEGACY_POOLINGS, True),
        ),
    ),
    "2_Dense/config.json": (
        tables.OF_DENSE, Dense,
        dict(
            in_features=8, out_features=5, bias=False, use_residual=True,
            activation_function="torch.nn.modules.activation.ELU",
            module_input_name="token_embeddings", module_output_name="scores",
        ),
    ),
    "3_LayerNorm/config.json": (tables.OF_LAYER_NORM, LayerNorm, dict(dimension=5)),
    "4_Normalize/config.json": (
        tables.OF_NORMALIZE, Normalize,
        dict(module_input_name="token_embeddings", module_output_name="scores"),
    ),
    "5_Dropout/config.json": (tables.OF_DROPOUT, Dropout, dict(dropout=0.5)),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """A folder with every module."""
    modules = [
        lambda: Pooling(16), lambda: Dense(16, 8), lambda: LayerNorm(8), Normalize, Dropout
    ]  # fmt: skip
    folder = tmp_path_factory.mktemp("whole")
    return written(source, folder, modules, prompts=PROMPTS)


@pytest.mark.once("files")
@pytest.mark.parametrize("file", FIELDS)
def test_every_field_is_used_or_refused(file, whole, tmp_path):
    """Set to an unusual value, our vectors are theirs, or the field is named."""
    table, kind, values = FIELDS[file]
    known = {*table.read, *table.harmless, *table.refused}
    assert known == set(values) and (kind is None or set(kind.config_keys) <= known)
    used = []
    for name, value in values.items():
        folder = tmp_path / name
        shutil.copytree(whole, folder)
        edit(folder / file, **{name: value})
        if name.startswith("pooling_mode_"):
            facts = json.loads((folder / file).read_text())
            (folder / file).write_text(
                json.dumps({x: facts[x] for x in facts if x != "pooling_mode"})
            )
        try:
            load_pretrained(folder)
        except ValueError as error:
            assert name in str(error) or "the tensors in" in str(error), (name, error)
        else:
            check(folder, folder)
            used.append(name)
    assert set(used) <= {*table.read, *table.harmless}


@pytest.mark.once("files")
def test_modules_that_are_not_supported(source, whole, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(whole, folder)
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
