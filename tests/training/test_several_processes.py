"""The training script in several processes, one of which is killed."""

import os
import signal
import time
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pytest

from keras_transformer.training import translation
from keras_transformer.training.recipe import read_recipe
from keras_transformer.weights import read_weights
from keras_transformer.weights.state import read_state
from tests.training.made_up import start, train_here, write_corpus


def write_few(folder):
    """Writes a corpus with few lengths for validation and test, because each is compiled."""
    write_corpus(folder)
    for name in ("validation", "test"):
        path = folder / f"{name}.tsv"
        path.write_text("".join(path.read_text("utf-8").splitlines(True)[:8]), "utf-8")


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="tests/backend has processes of PyTorch"
)
def test_a_run_killed_in_two_processes_goes_on_in_one(tmp_path, capfd):
    files = tmp_path
    write_few(files)
    few = ["train_size=300", "epochs=2", "model.dropout=0.0", "checkpoint_every=3"]
    few += ["num_buckets=1", "beam_size=1"]
    few += ["subword_sampling=0.1", "distribution.shard_weights=true", "bleu_every=1"]
    launched = start(files, tmp_path / "killed", *few, processes=2, tensorboard=True)
    checkpoints = tmp_path / "killed" / "checkpoints"
    while not all((checkpoints / x / "state.json").exists() for x in ("epoch-0001", "unfinished")):
        assert launched.poll() is None, launched.communicate()[0]
        time.sleep(0.01)
    children = Path(f"/proc/{launched.pid}/task/{launched.pid}/children").read_text().split()
    os.kill(int(children[1]), signal.SIGKILL)
    output, _ = launched.communicate(timeout=300)
    assert launched.returncode and "process 1 of 2 ended with status -9" in output, output
    assert not (tmp_path / "killed" / "model.keras").exists()
    assert 0 <= read_state(checkpoints / "epoch-0001")["history"][0]["val_bleu"] <= 100
    assert len([*(tmp_path / "killed" / "tensorboard").iterdir()]) == 1
    for name in ("killed", "whole"):
        train_here(files, tmp_path / name, *few)
    assert "resuming after epoch" in capfd.readouterr().err
    killed, whole = (
        read_weights(tmp_path / name / "checkpoints" / "epoch-0002") for name in ("killed", "whole")
    )
    for name in whole:
        if name.endswith("key_value/bias"):  # its gradient is zero but for rounding
            continue
        # By the norm: where a gradient is nearly zero, Adam makes full steps of its rounding, too.
        difference = np.linalg.norm(killed[name] - whole[name])
        assert difference <= 1e-3 * np.linalg.norm(whole[name]), (name, difference)


@pytest.mark.once("the texts of processes")
def test_other_validation_text_is_another_run():
    found = []
    team = mock.Mock(count=2, agree=found.append)
    options, pairs = read_recipe("grammar"), [("a", "b")]
    for validation in ([("c", "d")], [("c", "e")]):
        texts = {"training": pairs, "validation": validation}
        translation._agree(team, options, texts, mock.Mock())
    differing = {name for name in found[0] if "text" in name and found[0][name] != found[1][name]}
    assert differing == {"validation text (SHA-256)"}
