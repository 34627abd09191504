"""Folders of graphs: their facts, and nothing left of an export that fails."""

import json
from unittest import mock

import pytest

from keras_transformer.export import graph_folder
from keras_transformer.translate.engines.carried import LITERT
from keras_transformer.translate.translator import Translator
from tests.export.translators import save_translator

pytestmark = pytest.mark.once("writes files: the graphs are made by another process")


@pytest.fixture(scope="module")
def folder(randomize, tmp_path_factory):
    return save_translator(randomize, tmp_path_factory.mktemp("saved"), shared=True)


def write(folder, out, **options):
    return graph_folder.write_folder(folder, out, ("en", "de"), LITERT, "m", "torch", **options)


def test_facts(folder, tmp_path):
    translator = Translator.load(folder)
    translator.search = dict(beam_size=2)
    translator.save(folder)
    with mock.patch.object(graph_folder, "run_elsewhere") as run:
        out = write(folder, tmp_path / "out", quantization="int8")
    (module, task, backend), _ = run.call_args
    assert (module, backend) == ("m", "torch")
    assert task["quantization"] == "int8"
    facts = json.loads((out / "translator.json").read_text("utf-8"))
    config, tokenizer = translator.model.config, translator.tokenizer
    assert facts["search"]["beam_size"] == 2
    assert {config.pad_id, config.bos_id} <= {*facts["never_ids"]}
    assert facts["source_pieces"] == [*tokenizer.pieces_of("source")]
    assert (out / "target.spm").read_bytes() == tokenizer.target_model
    assert "class GraphTranslator" in (out / "translate.py").read_text("utf-8")


def test_what_fails_leaves_nothing(folder, tmp_path):
    failing = mock.patch.object(graph_folder, "run_elsewhere", side_effect=RuntimeError("no"))
    with failing, pytest.raises(RuntimeError, match="no"):
        write(folder, tmp_path / "out")
    translator = Translator.load(folder)
    translator.search = dict(no_repeat_ngram_size=2)
    translator.save(tmp_path / "strict")
    with pytest.raises(ValueError, match="no_repeat_ngram_size must be left out for LiteRT graphs"):
        write(tmp_path / "strict", tmp_path / "out")
    assert not (tmp_path / "out").exists()
