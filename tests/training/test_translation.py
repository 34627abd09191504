"""The training script as a user runs it: files in, a kill in the middle, a folder out."""

import contextlib
import csv
import io
import json
import os
import signal
import time

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_transformer.callbacks import Progress
from keras_transformer.training import translation as module
from keras_transformer.training.translation import train
from keras_transformer.translate.translator import Translator
from tests.backends import cases
from tests.training.made_up import SETTINGS, start, train_here, write_corpus


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of a corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def runs(files, tmp_path_factory):
    """A run that was never killed, and one that was, in the middle of its second epoch."""
    folder = tmp_path_factory.mktemp("runs")
    process = start(files, folder / "killed")
    first = folder / "killed" / "checkpoints" / "epoch-0001" / "state.json"
    while not first.exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert [path.name for path in (folder / "killed" / "checkpoints").glob("epoch-*")] == [
        "epoch-0001"
    ]
    assert not (folder / "killed" / "model.keras").exists()
    with contextlib.redirect_stderr(io.StringIO()) as said:
        for name in ("killed", "whole"):
            train_here(files, folder / name)
    assert said.getvalue().count("resuming after epoch 1") == 1
    return folder


@pytest.mark.once("files; tests/callbacks see under each that a state resumes bit for bit")
def test_a_killed_run_ends_with_the_same_state_bit_for_bit(runs):
    for file in ("weights.safetensors", "optimizer.safetensors", "random.safetensors"):
        killed, whole = (
            load_file(runs / name / "checkpoints" / "epoch-0003" / file)
            for name in ("killed", "whole")
        )
        assert killed.keys() == whole.keys() and killed
        for name in whole:
            np.testing.assert_array_equal(killed[name], whole[name], err_msg=name)


@pytest.mark.once("files; tests/callbacks see under each that a state resumes bit for bit")
def test_a_killed_run_ends_with_the_same_translations(runs, files):
    sources = [line.split("\t")[0] for line in (files / "test.tsv").read_text().splitlines()]
    killed, whole = (
        Translator.load(runs / name).nbest(sources, beam_size=3) for name in ("killed", "whole")
    )
    assert killed == whole


@pytest.mark.once("files; tests/callbacks see under each that a state resumes bit for bit")
def test_a_killed_run_has_the_log_of_one_that_was_not(runs):
    rows = {}
    for name in ("killed", "whole"):
        with (runs / name / "log.csv").open(newline="") as file:
            rows[name] = [row | {"seconds": ""} for row in csv.DictReader(file)]
    assert rows["killed"] == rows["whole"]
    assert [row["epoch"] for row in rows["whole"]] == ["1", "2", "3"]
    assert {"loss", "perplexity", "val_loss"} <= rows["whole"][0].keys()


@pytest.mark.once("files; tests/callbacks see under each that a state resumes bit for bit")
def test_the_run_folder_holds_what_the_readme_says(runs):
    folder = runs / "whole"
    names = {path.name for path in folder.iterdir()}
    assert {"model.keras", "tokenizer.json", "config.json", "metrics.json"} <= names
    metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
    expected = {"bleu", "bleu_signature", "chrf", "ter", "exact_match", "perplexity", "seconds"}
    assert expected <= metrics["test"].keys()
    assert metrics["training"]["epochs"] == 3 and metrics["training"]["seconds"] > 0
    state = json.loads((folder / "checkpoints" / "epoch-0003" / "state.json").read_text())
    losses = [logs["val_loss"] for logs in state["history"]]
    assert losses[-1] < losses[0]


class Terminated(Progress):
    """The line of progress, and a SIGTERM after the third batch of the second epoch."""

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._epoch == 1 and batch == 2:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_packed_run_has_one_shape_and_resumes_bit_for_bit(files, tmp_path, capsys, monkeypatch):
    paths = [files / "train.tsv"], [files / "validation.tsv"]
    settings = [*SETTINGS, "packed_length=64", "decay=inverse_sqrt"]

    def run(folder, epochs):
        train(
            output=tmp_path / folder,
            train_files=paths[0],
            validation_files=paths[1],
            changes=[*settings, f"epochs={epochs}"],
        )

    run("stopped", 1)
    with monkeypatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr(module, "Progress", Terminated)
        run("stopped", 2)
    assert ended.value.code == 143
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("stopped by SIGTERM; ") and "at step 3 of epoch 2," in line
    run("stopped", 2)
    run("whole", 2)
    said = capsys.readouterr().err
    assert said.count("of shapes [(5, 64, 64)]") == 2
    assert said.count("resuming after epoch 1 and step 3") == 1
    for file in ("weights.safetensors", "optimizer.safetensors"):
        stopped, whole = (
            load_file(tmp_path / folder / "checkpoints" / "epoch-0002" / file)
            for folder in ("stopped", "whole")
        )
        for name in whole:
            np.testing.assert_array_equal(stopped[name], whole[name], err_msg=name)
    state = json.loads(
        (tmp_path / "whole" / "checkpoints" / "epoch-0002" / "state.json").read_text()
    )
    losses = [logs["val_loss"] for logs in state["history"]]
    assert losses[1] < losses[0]
    with pytest.raises(ValueError, match="another run .*packed_length: 64 before, None now"):
        train(
            output=tmp_path / "whole",
            train_files=paths[0],
            validation_files=paths[1],
            changes=[*settings, "packed_length=none"],
        )


@pytest.mark.once("options of the run: batches, weights and files")
@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_run_starts_from_a_translator(runs, files, tmp_path, lora_rank):
    paths = [files / "train.tsv"], [files / "validation.tsv"]
    settings = [x for x in SETTINGS if not x.startswith(("model.", "subword"))]
    settings += ["epochs=1", "warmup_steps=5", "average_last=1", f"lora_rank={lora_rank}"]
    start = Translator.load(runs / "whole")
    start.search = {"beam_size": 2, "no_repeat_ngram_size": 3}
    start.save(tmp_path / "start")
    train(
        output=tmp_path / "run",
        train_files=paths[0],
        validation_files=paths[1],
        start_from=tmp_path / "start",
        changes=[*settings, "model.dropout=0.0", "model.d_model=7"],
    )
    before, after = (Translator.load(tmp_path / name) for name in ("start", "run"))
    assert after.search == before.search == start.search
    assert after.tokenizer.fingerprint() == before.tokenizer.fingerprint()
    assert after.model.config.d_model == 32 and after.model.config.dropout == 0.0
    pairs = [line.split("\t") for line in (files / "test.tsv").read_text().splitlines()]
    sources, targets = map(list, zip(*pairs, strict=True))
    assert np.mean(after.score(sources, targets)) > np.mean(before.score(sources, targets))
    for one, other in zip(before.model.weights, after.model.weights, strict=True):
        same = np.array_equal(*(keras.ops.convert_to_numpy(x) for x in (one, other)))
        frozen = lora_rank and not one.path.endswith("kernel")
        assert one.path == other.path and same == bool(frozen or "seed" in one.path), one.path
    if lora_rank:  # the run leaves an adapter of the translator, too
        adapted = Translator.load(tmp_path / "run" / "adapter").score(sources, targets)
        np.testing.assert_allclose(adapted, after.score(sources, targets), atol=1e-4)


@pytest.mark.once("the averages are Keras's")
@pytest.mark.parametrize("accumulation", cases([1, 2], 2))
def test_a_moving_average_of_the_weights_is_saved(files, tmp_path, accumulation):
    # Of one batch per epoch, so that the checkpoints hold the weights after each update.
    epochs = 4 * accumulation
    settings = [f"epochs={epochs}", f"average_last={epochs}"]
    settings += ["tokens_per_batch=4096", "num_buckets=1"]
    settings += ["peak_learning_rate=0.1", "warmup_steps=1", "ema_decay=0.9"]
    settings += [f"gradient_accumulation={accumulation}"]
    # Keras averages in each batch, from the first update on; the decay begins at 1/10.
    decay = 0.9 ** (1 / accumulation)
    train(
        output=tmp_path,
        train_files=[files / "test.tsv"],
        validation_files=[files / "validation.tsv"],
        changes=[*SETTINGS, *settings],
    )
    paths = sorted((tmp_path / "checkpoints").glob("epoch-*/weights.safetensors"))
    first, *later = [load_file(path) for path in paths][accumulation - 1 :]
    assert len(later) == 3 * accumulation
    saved = {x.path: keras.ops.convert_to_numpy(x) for x in Translator.load(tmp_path).model.weights}
    for name, average in first.items():
        for batch, weights in enumerate(later):
            updates = (batch + accumulation) // accumulation
            share = min(decay, updates / (updates + 9))
            average = share * average + (1 - share) * weights[name]
        np.testing.assert_allclose(saved[name], average, atol=1e-5, err_msg=name)
        assert np.abs(average - later[-1][name]).max() > 1e-4, name
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["training"]["averaged_checkpoints"] == 1


@pytest.mark.once("options of the run: batches, weights and files")
def test_lora_needs_a_start(files, tmp_path):
    with pytest.raises(ValueError, match="lora_rank needs --start-from"):
        train(
            output=tmp_path,
            train_files=[files / "train.tsv"],
            validation_files=[files / "validation.tsv"],
            changes=[*SETTINGS, "lora_rank=2"],
        )


@pytest.mark.once("options of the run: batches, weights and files")
def test_another_run_into_the_same_folder_is_refused(runs, files):
    paths = [files / "train.tsv"], [files / "validation.tsv"]
    advice = "another length .total_steps: .* decays.*--start-from .*whole into another output"
    for change, message in (
        ("seed=1", "another run .*seed: 0 before, 1 now"),
        ("epochs=4", advice),
    ):
        with pytest.raises(ValueError, match=message):
            train(
                output=runs / "whole",
                train_files=paths[0],
                validation_files=paths[1],
                changes=[*SETTINGS, change],
            )


@pytest.mark.once("options of the run: batches, weights and files")
def test_a_warmup_longer_than_the_run_becomes_one_that_fits(files, tmp_path, capsys):
    train(
        output=tmp_path,
        train_files=[files / "test.tsv"],
        validation_files=[files / "validation.tsv"],
        changes=[*SETTINGS, "epochs=1", "decay=linear", "bleu_every=0"],
    )
    assert "\nwarmup_steps is 1, not 60: the run has " in capsys.readouterr().err


@pytest.mark.once("options of the run: batches, weights and files")
def test_overwriting_keeps_nothing_of_the_run_before(files, tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints" / "epoch-0009").mkdir(parents=True)
    for name in ("metrics.json", "thesis.txt"):
        (run / name).write_text("{")
    before = sorted(run.rglob("*"))
    with pytest.raises(ValueError, match="--validation is required"):
        train(output=run, train_files=[files / "test.tsv"], overwrite=True)
    with pytest.raises(ValueError, match="there is no folder .*missing"):
        train(output=run, start_from=tmp_path / "missing", overwrite=True)
    assert sorted(run.rglob("*")) == before
    train(
        output=run,
        train_files=[files / "test.tsv"],
        validation_files=[files / "validation.tsv"],
        changes=[*SETTINGS, "epochs=1", "bleu_every=0"],
        overwrite=True,
    )
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["epoch-0001"]
    assert (run / "thesis.txt").read_text() == "{"


@pytest.mark.once("options of the run: batches, weights and files")
def test_files_must_be_given(tmp_path, files):
    with pytest.raises(ValueError, match="--train is required"):
        train(output=tmp_path, changes=["corpus=files"])
    with pytest.raises(ValueError, match="--validation is required"):
        train(output=tmp_path, train_files=[files / "train.tsv"])
    for name in ("train", "validation"):
        own = dict(train_files=[files / "train.tsv"], validation_files=[files / "test.tsv"])
        own[f"{name}_files"] = [tmp_path / "x.en"]
        with pytest.raises(ValueError, match=f"--{name} names one side only, .*x.en: give"):
            train(output=tmp_path, **own)
    with pytest.raises(ValueError, match="--train takes one file or two, got 3"):
        train(output=tmp_path, train_files=[files / "train.tsv"] * 3)


@pytest.mark.once("options of the run: batches, weights and files")
def test_cleaning_may_leave_nothing(tmp_path, files):
    same = tmp_path / "same.tsv"
    same.write_text("a b\ta b\n")
    with pytest.raises(ValueError, match="empty after cleaning"):
        train(output=tmp_path, train_files=[same], validation_files=[files / "validation.tsv"])
