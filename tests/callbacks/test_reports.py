"""Reports of a real `fit`: quality, progress, TensorBoard."""

from types import SimpleNamespace

import pytest
import sacrebleu

from keras_transformer.callbacks import (
    Checkpoints,
    Progress,
    TensorBoard,
    TranslationQuality,
)
from keras_transformer.text import Tokenizer
from keras_transformer.translate.translator import Translator
from tests.callbacks.common import fit, new_model


class Words(Tokenizer):
    """A tokenizer of two-letter words, enough for a Translator."""

    shared, unk_id = True, None
    source_vocab_size = target_vocab_size = 16
    pad_id, bos_id, eos_id = 0, 2, 3
    _source = _target = None

    def _encode(self, side, texts, sampling, seed):
        return [[4 + ord(c) % 12 for c in text] + [3] for text in texts]

    def _decode(self, side, ids):
        return [" ".join(chr(97 + i) for i in row if i > 3) for row in ids]

    def _files(self):
        return {}

    def _config(self):
        return {}


@pytest.mark.once("tests/translate/test_pipeline.py translates under each")
def test_translation_quality_logs_bleu_of_the_model_in_training(tmp_path, data):
    model = new_model()
    translator = Translator(model, Words())
    pairs = [("abc", "e f g"), ("bcd", "f g h")]
    quality = TranslationQuality(translator, pairs, every=2, options={"beam_size": 2})
    checkpoints = Checkpoints(tmp_path)
    fit(model, data, 3, quality, checkpoints)
    scores = [logs["val_bleu"] for logs in checkpoints.history]
    assert all(0 <= score <= 100 for score in scores)
    assert scores[2] == scores[1]  # the third epoch repeats the second's
    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        TranslationQuality(translator, pairs, every=0)
    with pytest.raises(ValueError, match="pairs must be at least one pair"):
        TranslationQuality(translator, [])


@pytest.mark.once("texts: no tensor is read")
def test_quality_of_chinese_counts_characters():
    """`val_bleu` is what early stopping monitors: with the tokenizer 13a it stays at 0."""
    reference = "老人在公园里看见了一只狗。"
    found = SimpleNamespace(
        translate=lambda texts: ["老人在公园里看见了一只猫。"], target_language="zh_CN"
    )
    quality = TranslationQuality(found, [("x", reference)])
    quality.on_epoch_end(0, logs := {})
    expected = sacrebleu.corpus_bleu(found.translate([]), [[reference]], tokenize="zh").score
    assert logs["val_bleu"] == expected > 50


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_progress_shows_speed_and_time_left(tmp_path, data, capsys):
    progress = Progress(tokens_per_step=20, interval=0.0)
    checkpoints = Checkpoints(tmp_path)
    fit(new_model(), data, 2, progress, checkpoints)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("epoch 1/2 step 2/3 loss ")
    assert "tokens/s" in lines[0] and lines[0].endswith("left")
    assert lines[-1].startswith("epoch 2/2 loss ") and lines[-1].endswith("so far")
    assert checkpoints.history[0]["seconds"] > 0
    assert progress.seconds == pytest.approx(sum(e["seconds"] for e in checkpoints.history))


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_the_line_of_an_epoch_shows_bleu_the_best_epoch_and_the_time_left(tmp_path, data, capsys):
    model = new_model()
    checkpoints = Checkpoints(tmp_path, monitor="val_bleu", mode="max")
    quality = TranslationQuality(Translator(model, Words()), [("abc", "e f g")])
    quality.translator = SimpleNamespace(translate=lambda x: [next(found)], target_language="de")
    found = iter(["e f g h", "e f g h i", "e"])
    fit(model, data, 3, quality, Progress(20, checkpoints=checkpoints), checkpoints)
    lines = [x for x in capsys.readouterr().err.splitlines() if " so far" in x]
    assert [" val_bleu " in x and " val_chrf " in x for x in lines] == [True] * 3
    best = [x.partition("best epoch ")[2].partition(" ")[0] for x in lines]
    bleu = [x["val_bleu"] for x in checkpoints.history]
    assert best == [str(1 + bleu[: i + 1].index(max(bleu[: i + 1]))) for i in range(3)]
    assert all("(val_bleu)" in x for x in lines)
    assert [x.endswith(" left") for x in lines] == [True, True, False]


@pytest.mark.once("counts: no tensor differs")
def test_progress_counts_the_steps_before_a_run_was_stopped(capsys):
    progress = Progress(tokens_per_step=20, interval=0.0)
    progress.set_params(dict(epochs=2, steps=5, first_step=84))
    progress.on_epoch_begin(0)
    for batch in range(3):
        progress.on_train_batch_end(batch, {"loss": 1.0})
    lines = capsys.readouterr().err.splitlines()
    assert [line[:20] for line in lines] == ["epoch 1/2 step 86/89", "epoch 1/2 step 87/89"]


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_tensorboard_writes_events(tmp_path, data):
    pytest.importorskip("tensorboardX")
    fit(new_model(), data, 2, TensorBoard(tmp_path))
    (events,) = tmp_path.glob("events.*")
    content = events.read_bytes()
    assert b"learning_rate" in content and b"loss" in content
