"""Marian itself as a contestant: its files, its log, and the same translations as ours."""

import sys

import numpy as np
import pytest

from benchmarks import decoders, marian_program, trainers
from benchmarks.contest import Contestant
from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer
from keras_transformer.translate.translator import Translator
from tests.hub.marian.models import needs_marian
from tests.small_translator import TEXTS, made_tokenizer

LOG = """[2026-01-01 10:00:00] Ep. 1 : Up. 2 : Sen. 8 : Cost 9.6 * 9 @ 2 after 9 : Time 1s : 9.00 words/s
[2026-01-01 10:00:01] Ep. 1 : Up. 4 : Sen. 16 : Cost 9.5 * 1,024 @ 512 after 1,033 : Time 0.50s : 2046.25 words/s : gNorm 1.2
"""  # noqa: E501 - a log


@pytest.mark.once("arithmetic")
def test_rows_of_batches():
    ids = [[5] * length for length in (3, 8, 6, 2, 4)]
    rows, places = marian_program.rows_of(ids, 3)
    assert [len(row) for row in rows] == [9, 8, 6, 5, 4, 3, 2]  # 9 and 5 are added
    assert places == [None, 1, 2, None, 4, 0, 3]
    assert marian_program.rows_of([[5] * 4], 3) == ([[5] * 4], [0])  # no padding


@pytest.mark.once("reads text")
def test_the_last_line_of_progress():
    assert marian_program.last_shown(LOG) == (1024, 2046.25)


@pytest.mark.once("a peer of a benchmark")
@needs_marian
@pytest.mark.parametrize("norm_first", [False, True])
def test_translations_are_ours(norm_first, tmp_path):
    tokenizer = made_tokenizer()
    config = TransformerConfig(
        tokenizer.source_vocab_size, tokenizer.target_vocab_size, d_model=16, d_ff=16,
        num_encoder_layers=2, num_decoder_layers=2, num_heads=2, max_length=128,
        norm_first=norm_first,
    )  # fmt: skip
    model, random = Transformer(config), np.random.default_rng(1)
    model.set_weights([x + 0.3 * random.normal(size=x.shape) for x in model.get_weights()])
    Translator(model, tokenizer).save(tmp_path)
    options = dict(folder=str(tmp_path), lines=TEXTS, beam_size=1, one_by_one=False)
    options["precision"] = "float32"
    _, ours = decoders.ours(**options)
    # In a process of its own, as in a benchmark: a second model in one process crashes Marian.
    contestant = Contestant("pymarian", "benchmarks.decoders:pymarian", options)
    contestant.start()
    contestant.stop()
    theirs = contestant.facts
    for a, b in zip(ours["translations"], theirs["translations"], strict=True):
        shorter = min(len(a), len(b))
        assert a == b or shorter > 40  # the limits of their lengths differ
        assert a[:shorter] == b[:shorter]
    assert len(set(ours["translations"])) > 2


@pytest.mark.once("a peer of a benchmark")
@needs_marian
def test_a_training_step(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run, facts = trainers.pymarian("toy", "", 2, 4, "float32", 2)
    result = run()
    assert result["seconds"] > 0 and result["peak_bytes"] > 0 and "loss" not in facts
    with pytest.raises(ValueError, match="precision must be float32 for pymarian"):
        trainers.pymarian("toy", "", 2, 4, "bfloat16", 2)


@pytest.mark.once("arithmetic")
def test_the_command_of_a_training(tmp_path):
    files = {x: tmp_path / x for x in ("source", "target", "pieces.yml", "model.npz")}
    config = TransformerConfig.base(100)
    command = marian_program.training_command(config, files, 8, 3, {"clip-norm": 0})
    assert command[:4] == [sys.executable, "-m", "pymarian", "train"]
    text = " ".join(command)
    assert "--transformer-postprocess dan --tied-embeddings-all" in text
    assert "--after 6u --disp-freq 3u --clip-norm 0" in text
