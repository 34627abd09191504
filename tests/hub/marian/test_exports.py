"""Exports of imported models of Marian translate as Marian does."""

import numpy as np
import pytest

from keras_transformer import Translator, export
from keras_transformer.pretrained import load_pretrained
from tests.hub.marian.models import DATA, SOURCES, facts

TEXTS = SOURCES[:30]


@pytest.fixture
def folder(tmp_path):
    return saved("tied_all", tmp_path)


def saved(name, tmp_path):
    load_pretrained(DATA / f"{name}.npz", "en", "de").save(tmp_path / "saved")
    return tmp_path / "saved"


def check(exported, name="tied_all"):
    lists = facts(name)[1]
    best = [rows[0]["text"].strip() for rows in lists[: len(TEXTS)]]
    assert exported.translate(TEXTS) == best
    for ours, theirs in zip(exported.nbest(TEXTS), lists, strict=False):
        np.testing.assert_allclose([x.score for x in ours], [x["score"] for x in theirs], atol=1e-4)


@pytest.mark.once("runs a program of its own")
def test_onnx(folder, tmp_path):
    check(Translator.load(export.onnx(folder, tmp_path / "onnx")))


@pytest.mark.once("runs a program of its own")
def test_saved_model(tmp_path):
    """With an SSRU: each step of the graph has the state of the one before it."""
    out = export.saved_model(saved("ssru", tmp_path), tmp_path / "served")
    check(Translator.load(out), "ssru")


@pytest.mark.once("reads what it writes")
def test_ctranslate2(folder, tmp_path):
    out = export.ctranslate2(folder, tmp_path / "ct2")
    ctranslate2 = pytest.importorskip("ctranslate2")
    tokenizer = Translator.load(folder).tokenizer
    pieces = tokenizer.pieces_of("source")
    rows = [[pieces[i] for i in ids] for ids in tokenizer.encode_source(TEXTS)]
    results = ctranslate2.Translator(str(out)).translate_batch(
        rows, beam_size=1, max_decoding_length=99
    )
    side = tokenizer.side("target")
    texts = [side.processor.decode_pieces(x.hypotheses[0]).strip() for x in results]
    # Marian cuts a translation at three times the length of its source.
    lengths = [len(x.hypotheses[0]) for x in results]
    short = [i for i, row in enumerate(rows) if lengths[i] < 3 * len(row)]
    assert len(short) > 20
    assert [texts[i] for i in short] == [facts("tied_all")[0][i].strip() for i in short]
