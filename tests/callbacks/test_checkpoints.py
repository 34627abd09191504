"""Checkpoints in a real `fit`: resuming, early stopping, full disks, damaged files."""

import csv
import json
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_transformer.callbacks import (
    Checkpoints,
    Progress,
    TrainingStopped,
)
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.system.files import write_json
from keras_transformer.weights import state, weight_files
from tests.backends import EVERY_CASE
from tests.callbacks.common import fit, new_model


@pytest.mark.once("a run that is stopped inside an epoch goes on under each backend")
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


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_only_the_last_are_kept_and_partial_ones_ignored(tmp_path, data):
    (tmp_path / ".epoch-0009.x.partial").mkdir()
    (tmp_path / "epoch-0008").mkdir()  # without a state: never finished
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.epoch == 0
    fit(new_model(), data, 3, checkpoints)
    assert [path.name for path in checkpoints.paths()] == ["epoch-0002", "epoch-0003"]


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_an_error_while_saving_leaves_the_old_checkpoints(tmp_path, data, monkeypatch):
    fit(new_model(), data, 1, Checkpoints(tmp_path))

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "write_json", full_disk)
    with pytest.raises(OSError, match="No space left"):
        fit(new_model(), data, 2, Checkpoints(tmp_path), initial_epoch=1)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-0001"]


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_a_disk_that_is_full_at_a_checkpoint_is_one_error(tmp_path, data, monkeypatch, one_epoch):
    folder = shutil.copytree(one_epoch, tmp_path / "run")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def full_disk(arrays, path, metadata=None):
        path.write_bytes(b"half of the weig")
        raise safetensors.SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(weight_files, "save_file", full_disk)
    said = "No space left on device: .*epoch-0002 could not be written; its old content is intact"
    with pytest.raises(OSError, match=said):
        fit(new_model(), data, 2, Checkpoints(folder), initial_epoch=1)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class StopsAt(keras.callbacks.Callback):
    """Asks checkpoints to stop, as a signal's handler would, after so many batches."""

    def __init__(self, checkpoints, count):
        super().__init__()
        self.checkpoints, self.left = checkpoints, count

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        self.checkpoints.stopping = self.left <= 0


def resumed(folder, data, *counts):
    """Three epochs of three steps, stopped after so many batches, then after so many more ..."""
    ids, targets = data[0]["source_ids"], data[1]

    def batch(step):
        rows = slice(4 * (step % 3), 4 * (step % 3) + 4)
        return {"source_ids": ids[rows], "target_ids": data[0]["target_ids"][rows]}, targets[rows]

    stream = lambda step: for_keras(Stream(batch, step))  # noqa: E731
    options = dict(steps_per_epoch=3, epochs=3)
    for seed, count in enumerate((*counts, 99)):  # everything must come from the checkpoint
        model, checkpoints = new_model(seed), Checkpoints(folder, keep=9)
        callbacks = [Progress(20), StopsAt(checkpoints, count)]
        if count == 99:
            checkpoints.fit(model, stream, callbacks=callbacks, **options)
        else:
            with pytest.raises(TrainingStopped):
                checkpoints.fit(model, stream, callbacks=callbacks, **options)
    assert checkpoints.epoch == 3
    for logs in checkpoints.history:
        assert logs.pop("seconds") > 0
    values = [*model.weights, *model.optimizer.variables]
    return checkpoints.history, [keras.ops.convert_to_numpy(x) for x in values]


def test_a_run_that_is_stopped_inside_an_epoch_ends_bit_for_bit_as_one_that_is_not(tmp_path, data):
    history, whole = resumed(tmp_path / "whole", data)
    # In the second epoch, again in the same one, and after its last batch.
    stops = (4, 1, 1) if EVERY_CASE else (4,)
    other_history, other = resumed(tmp_path / "stopped", data, *stops)
    assert history == other_history
    for expected, found in zip(whole, other, strict=True):
        np.testing.assert_array_equal(expected, found)
    names = sorted(path.name for path in (tmp_path / "stopped").iterdir())
    assert names == ["epoch-0001", "epoch-0002", "epoch-0003"]


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_the_log_has_each_epoch_once_whatever_a_kill_left(tmp_path, data):
    log = tmp_path / "log.csv"

    def run(epochs, *callbacks):
        checkpoints = Checkpoints(tmp_path / "checkpoints", log=log)
        model = new_model()
        fit(model, data, epochs, *callbacks, checkpoints, initial_epoch=checkpoints.epoch)
        with log.open(newline="") as file:
            return checkpoints.history, list(csv.DictReader(file))

    history, rows = run(2)
    assert rows == [{"epoch": str(i), "loss": repr(x["loss"])} for i, x in enumerate(history, 1)]
    with log.open("a") as file:
        file.write("3,0.5\n4,0.")  # of an epoch that was not saved, and half a row
    scripted = Scripted({2: 4.0})  # a metric that earlier epochs lack
    history, rows = run(3, scripted)
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert [row["val_bleu"] for row in rows] == ["", "", "4.0"]
    assert [float(row["loss"]) for row in rows] == [x["loss"] for x in history]
    log.unlink()
    assert run(4)[1][:3] == rows


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_more_steps_of_a_learning_rate_that_decays_are_refused_with_advice(tmp_path):
    state = {"run": {"steps": 20, "seed": 0}, "history": [{"loss": 1.0}]}
    write_json(tmp_path / "checkpoints" / "epoch-0001" / "state.json", state)
    message = rf"\(steps: 20 before, 40 now\), over which the .* decays.*--start-from {tmp_path} in"
    with pytest.raises(ValueError, match=message):
        Checkpoints(tmp_path / "checkpoints", run={"steps": 40, "seed": 0})
    with pytest.raises(ValueError, match=r"another run \(seed: 0 before, 1 now, steps: 20 before"):
        Checkpoints(tmp_path / "checkpoints", run={"steps": 40, "seed": 1})


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_an_option_that_older_checkpoints_lack_had_its_default(tmp_path):
    state = {"run": {"seed": 0}, "history": [{"loss": 1.0}]}
    write_json(tmp_path / "epoch-0001" / "state.json", state)
    defaults = {"noise": 0.0, "seed": 3, "epochs": 5}
    assert Checkpoints(tmp_path, run={"seed": 0, "noise": 0.0}, defaults=defaults).epoch == 1
    with pytest.raises(ValueError, match=r"another run \(noise: 0.0 before, 0.1 now\)"):
        Checkpoints(tmp_path, run={"seed": 0, "noise": 0.1}, defaults=defaults)


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_where_a_run_was_stopped_is_known_and_what_is_overtaken_is_not_taken(tmp_path, data):
    run = {"seed": 0}
    state = {"run": run, "history": [{"loss": 1.0}], "step": 2}
    for name in ("epoch-0001", "unfinished"):
        write_json(tmp_path / name / "state.json", state)
    checkpoints = Checkpoints(tmp_path, run=run)
    assert (checkpoints.epoch, checkpoints.step) == (1, 2)
    with pytest.raises(ValueError, match="steps_per_epoch must be more than 2, the step .* got 2"):
        checkpoints.fit(None, None, steps_per_epoch=2, epochs=4)
    with pytest.raises(ValueError, match=r"another run \(seed: 0 before, 1 now\)"):
        Checkpoints(tmp_path, run={"seed": 1})
    write_json(tmp_path / "epoch-0002" / "state.json", {"run": run, "history": [{}, {}]})
    checkpoints = Checkpoints(tmp_path, run=run)
    assert (checkpoints.epoch, checkpoints.step) == (2, 0)


@pytest.mark.once("files, counts and texts: no tensor differs")
@pytest.mark.parametrize(
    "name, content, message",
    [
        ("weights.safetensors", b"half", "is not a complete safetensors file"),
        ("optimizer.safetensors", b"", "is not a complete safetensors file"),
        ("optimizer.safetensors", None, ""),
        ("optimizer.safetensors", {"00000": np.ones(3, "float32")}, "does not fit: .*missing"),
        ("random.safetensors", b"\xff" * 99, "is not a complete safetensors file"),
        ("random.safetensors", {"seed 00000": np.ones(3, "float32")}, "does not fit"),
        ("random.safetensors", {"cpu": np.ones(3, "uint8")}, "does not fit"),
        ("state.json", b"{}", "must be an object with the run and the metrics"),
        ("state.json", b'{"run": {}, "history": null}', "must be .* 'history': None"),
        ("state.json", b'{"run": {}, "history": [{"loss": null}]}', "must be"),
        ("state.json", b'{"run": {}, "history"', "is not valid JSON"),
    ],
)
def test_a_damaged_checkpoint_is_named(tmp_path, data, one_epoch, name, content, message):
    folder = shutil.copytree(one_epoch, tmp_path / "run")
    path = folder / "epoch-0001" / name
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        weight_files.save_weights(path, content)
    model = new_model()
    before = model.get_weights()
    with pytest.raises((ValueError, FileNotFoundError), match=rf"{name}.*{message}") as found:
        fit(model, data, 2, Checkpoints(folder), initial_epoch=1)
    if name != "state.json":
        assert f"remove {path.parent} to resume" in str(found.value)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def one_epoch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    ids = np.full((4, 5), 7, "int32")
    fit(new_model(), ({"source_ids": ids, "target_ids": ids}, ids), 1, Checkpoints(folder))
    return folder


class Scripted(keras.callbacks.Callback):
    """Puts given values into the logs, as a validation would."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = self.values[epoch]


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_early_stopping_counts_over_a_restart(tmp_path, data):
    values = [10.0, 20.0, 19.0, 18.0, 17.0, 30.0]
    options = dict(monitor="val_bleu", mode="max", patience=3)
    fit(new_model(), data, 3, Scripted(values), Checkpoints(tmp_path, **options))
    checkpoints = Checkpoints(tmp_path, **options)
    assert not checkpoints.finished
    fit(new_model(), data, 6, Scripted(values), checkpoints, initial_epoch=3)
    assert checkpoints.finished and checkpoints.epoch == 5


@pytest.mark.once("files, counts and texts: no tensor differs")
def test_early_stopping_on_the_smallest(tmp_path, data):
    options = dict(monitor="val_bleu", mode="min", patience=1)
    checkpoints = Checkpoints(tmp_path, **options)
    fit(new_model(), data, 6, Scripted([3.0, 2.0, 2.5, 1.0, 1.0, 1.0]), checkpoints)
    assert checkpoints.epoch == 3


@pytest.mark.once("files, counts and texts: no tensor differs")
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
    with pytest.raises(ValueError, match=r"another run \(seed: 1 before, 2 now\)"):
        Checkpoints(tmp_path / "y", run={"seed": 2})
