"""Callbacks in a real `fit`: checkpoints and early stopping, quality, progress, TensorBoard."""

import json

import keras
import numpy as np
import pytest

from keras_transformer import callbacks as module
from keras_transformer.callbacks import Checkpoints, Progress, TensorBoard, TranslationQuality
from keras_transformer.config import TransformerConfig
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.models import Transformer
from keras_transformer.schedules import WarmupSchedule, adam
from keras_transformer.text import Tokenizer
from keras_transformer.translator import Translator

CONFIG = TransformerConfig(
    16, 16, d_model=8, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, num_heads=2
)


@pytest.fixture
def data():
    ids = np.random.default_rng(0).integers(4, 16, (12, 5)).astype("int32")
    return {"source_ids": ids, "target_ids": np.roll(ids, 1, axis=1)}, ids


def new_model(seed=0):
    keras.utils.set_random_seed(seed)
    model = Transformer(CONFIG)
    model.compile(adam(WarmupSchedule(1e-2, 5)), LabelSmoothedCrossentropy())
    return model


def fit(model, data, epochs, *callbacks, initial_epoch=0):
    model.fit(
        *data,
        batch_size=4,
        epochs=epochs,
        initial_epoch=initial_epoch,
        shuffle=False,
        verbose=0,
        callbacks=list(callbacks),
    )


def test_going_on_gives_the_same_weights_bit_for_bit(tmp_path, data):
    whole = new_model()
    fit(whole, data, 4, Checkpoints(tmp_path / "whole"))
    fit(new_model(), data, 2, Checkpoints(tmp_path / "halves"))
    checkpoints = Checkpoints(tmp_path / "halves")
    assert checkpoints.epoch == 2
    other = new_model(seed=1)  # everything must come from the checkpoint
    fit(other, data, 4, checkpoints, initial_epoch=checkpoints.epoch)
    assert checkpoints.epoch == 4
    for expected, found in zip(whole.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(expected, found)
    states = [
        json.loads((tmp_path / name / "epoch-0004" / "state.json").read_text())
        for name in ("whole", "halves")
    ]
    assert states[0]["history"] == states[1]["history"]


def test_only_the_last_are_kept_and_partial_ones_ignored(tmp_path, data):
    (tmp_path / ".epoch-0009.x.partial").mkdir()
    (tmp_path / "epoch-0008").mkdir()  # without a state: never finished
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.epoch == 0
    fit(new_model(), data, 3, checkpoints)
    assert [path.name for path in checkpoints.paths()] == ["epoch-0002", "epoch-0003"]


def test_an_error_while_saving_leaves_the_old_checkpoints(tmp_path, data, monkeypatch):
    fit(new_model(), data, 1, Checkpoints(tmp_path))

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_json", full_disk)
    with pytest.raises(OSError, match="No space left"):
        fit(new_model(), data, 2, Checkpoints(tmp_path), initial_epoch=1)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-0001"]


class Scripted(keras.callbacks.Callback):
    """Puts given values into the logs, as a validation would."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = self.values[epoch]


def test_early_stopping_counts_over_a_restart(tmp_path, data):
    values = [10.0, 20.0, 19.0, 18.0, 17.0, 30.0]
    options = dict(monitor="val_bleu", mode="max", patience=3)
    fit(new_model(), data, 3, Scripted(values), Checkpoints(tmp_path, **options))
    checkpoints = Checkpoints(tmp_path, **options)
    assert not checkpoints.finished
    fit(new_model(), data, 6, Scripted(values), checkpoints, initial_epoch=3)
    assert checkpoints.finished and checkpoints.epoch == 5


def test_early_stopping_on_the_smallest(tmp_path, data):
    options = dict(monitor="val_bleu", mode="min", patience=1)
    checkpoints = Checkpoints(tmp_path, **options)
    fit(new_model(), data, 6, Scripted([3.0, 2.0, 2.5, 1.0, 1.0, 1.0]), checkpoints)
    assert checkpoints.epoch == 3


def test_bad_checkpoint_arguments(tmp_path, data):
    for options, message in [
        (dict(keep=0), "keep must be at least 1, got 0"),
        (dict(patience=0), "patience must be at least 1 or None, got 0"),
        (dict(mode="best"), "mode must be 'max' or 'min', got 'best'"),
    ]:
        with pytest.raises(ValueError, match=message):
            Checkpoints(tmp_path, **options)
    with pytest.raises(ValueError, match="monitor must be one of .*'loss'.* got 'val_blue'"):
        fit(new_model(), data, 1, Checkpoints(tmp_path / "x", monitor="val_blue", patience=1))
    fit(new_model(), data, 1, Checkpoints(tmp_path / "y", run={"seed": 1}))
    with pytest.raises(ValueError, match=r"another run \(seed: 1 then, 2 now\)"):
        Checkpoints(tmp_path / "y", run={"seed": 2})


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


def test_progress_shows_speed_and_time_left(tmp_path, data, capsys):
    progress = Progress(tokens_per_step=20, interval=0.0)
    checkpoints = Checkpoints(tmp_path)
    fit(new_model(), data, 2, progress, checkpoints)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("epoch 1/2 step 1/3 loss ")
    assert "tokens/s" in lines[0] and lines[0].endswith("left")
    assert lines[-1].startswith("epoch 2/2 loss ") and lines[-1].endswith("so far")
    assert checkpoints.history[0]["seconds"] > 0
    assert progress.seconds == pytest.approx(sum(e["seconds"] for e in checkpoints.history))


def test_tensorboard_writes_events(tmp_path, data):
    pytest.importorskip("tensorboardX")
    fit(new_model(), data, 2, TensorBoard(tmp_path))
    (events,) = tmp_path.glob("events.*")
    content = events.read_bytes()
    assert b"learning_rate" in content and b"loss" in content
