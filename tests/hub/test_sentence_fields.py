"""Each known field of a folder of sentence-transformers is used, or refused by name."""

import json
import shutil

import pytest
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling

from keras_transformer import load_pretrained
from keras_transformer.hub import sentence_fields as tables
from tests.hub.sentence_folders import check, edit, write_source, write_whole

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
def source(tmp_path_factory):
    return write_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    return write_whole(tmp_path_factory.mktemp("whole"), source)


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
