"""Folders of COMET: scores equal those of unbabel-comet, and errors that name the setting."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from keras_transformer.pretrained import load_pretrained
from keras_transformer.tasks.learned_metric import LearnedMetric

HERE = Path(__file__).parent / "comet"
MISSING = "left out"
NAMES = ("regression", "referenceless", "one_layer", "kiwi", "unified")


@pytest.fixture
def folder(tmp_path):
    """Makes a folder of COMET; the files of the encoder lie beside its settings."""

    def make(name="regression", **changes):
        shutil.copytree(HERE / name, tmp_path / "comet")
        shutil.copytree(HERE / "encoder", tmp_path / "comet", dirs_exist_ok=True)
        path = tmp_path / "comet" / "hparams.yaml"
        settings = yaml.safe_load(path.read_text()) | changes
        path.write_text(yaml.safe_dump({k: x for k, x in settings.items() if x != MISSING}))
        return tmp_path / "comet"

    return make


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*it is cut")
def test_scores_are_those_of_unbabel_comet(folder, name):
    expected = json.loads((HERE / name / "scores.json").read_text())
    texts = [[sample[key] for sample in expected["samples"]] for key in ("src", "mt", "ref")]
    metric = load_pretrained(folder(name))
    np.testing.assert_allclose(metric.score(*texts), expected["with_reference"], atol=1e-5)
    if alone := expected.get("without_reference"):
        np.testing.assert_allclose(metric.score(*texts[:2]), alone, atol=1e-5)
    assert metric.needs_reference == (name in ("regression", "one_layer"))


def test_saved_and_loaded(folder, tmp_path):
    metric = load_pretrained(folder("unified"))
    metric.save(tmp_path / "ours")
    texts = ["the dog"], ["der Hund"], ["den Hund"]
    again = LearnedMetric.load(tmp_path / "ours")
    np.testing.assert_allclose(again.score(*texts), metric.score(*texts), atol=1e-6)


@pytest.mark.once("settings are read without a backend")
@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("class_identifier", "ranking_metric", "one of ('regression_metric'"),
        ("class_identifier", MISSING, "lacks 'class_identifier'"),
        ("encoder_model", "BERT", "must be 'XLM-RoBERTa', got 'BERT'"),
        ("pool", "default", "pool must be one of ('avg', 'cls', 'max')"),
        ("layer", -1, "layer must be 'mix' or a whole number"),
        ("layer", 9, "layer must be a whole number from 0 to 3, or None, got 9"),
        ("layer_transformation", "entmax", "softmax, sparsemax or sparsemax_patch"),
        ("hidden_sizes", [], "hidden_sizes must be a list of whole numbers above 0"),
        ("hidden_sizes", [24, 13], "estimator.ff.3.weight must have the shape (13, 24)"),
        ("activations", "Mish", "activations must be one of"),
        ("final_activation", "Mish", "final_activation must be one of"),
        ("input_segments", ["src"], "input_segments must be mt, then src, ref or both"),
        ("pretrained_model", MISSING, "must be the name of a model, or a folder"),
    ],
)
def test_settings_are_checked(folder, name, value, accepted):
    with pytest.raises(ValueError, match=re.escape(accepted)):
        load_pretrained(folder(**{name: value}))


@pytest.mark.once("checkpoints are read by PyTorch on each backend")
def test_checkpoints_are_not_unpickled(folder):
    torch = pytest.importorskip("torch")
    place = folder()
    path = place / "checkpoints" / "model.ckpt"
    torch.save({"state_dict": {}, "hook": Path("touched")}, path)
    with pytest.raises(ValueError, match=r"model.ckpt cannot be read: [^|]*weights_only"):
        load_pretrained(place)
    torch.save({"state_dict": {"encoder": 1}}, path)
    with pytest.raises(ValueError, match="must hold a dict of tensors: 'encoder' is a int"):
        load_pretrained(place)
    torch.save({"epoch": 1}, path)
    with pytest.raises(ValueError, match="must hold a dict of tensors, got a NoneType"):
        load_pretrained(place)


@pytest.mark.once("folders are found without a backend")
def test_the_encoder_is_found_by_its_name(folder, tmp_path, monkeypatch):
    place = folder()
    (place / "config.json").unlink()
    (place / "sentencepiece.bpe.model").unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConnectionError, match="there is no folder xlm-roberta-large"):
        load_pretrained(place)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(HERE / "encoder", "xlm-roberta-large")
    assert load_pretrained(place).needs_reference
