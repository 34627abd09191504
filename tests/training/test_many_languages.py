"""One model of several corpora and languages as a user trains it and uses it afterwards."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_transformer.saved.description import describe
from keras_transformer.serving import Catalogue
from keras_transformer.training.translation import train
from keras_transformer.translate.translator import Translator
from tests.backends import EVERY_CASE_ASKED
from tests.training.made_up import SETTINGS, write_corpus

RECIPE = """
[[corpora]]
source = "train.tsv"
both_directions = true
validation_source = "validation.tsv"
[[corpora]]
source = "fr.en"
target = "fr.fr"
target_language = "fr"
validation_source = "fr.tsv"
"""
SHORT = [*SETTINGS, "train_size=300", "subword_sampling=0.1", "average_last=1", "beam_size=1"]
SHORT += ["temperature=5", "packed_length=64"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """A recipe beside its files."""
    folder = tmp_path_factory.mktemp("corpora")
    write_corpus(folder)
    lines = (folder / "test.tsv").read_text().splitlines()
    texts = [line.split("\t")[0] for line in lines]
    (folder / "fr.en").write_text("".join(f"{text}\n" for text in texts))
    (folder / "fr.fr").write_text("".join(f"{text.title()}\n" for text in texts))
    (folder / "fr.tsv").write_text("".join(f"{text}\t{text.title()}\n" for text in texts[:9]))
    (folder / "mine.toml").write_text(RECIPE)
    return folder / "mine.toml"


@pytest.fixture(scope="module")
def run(recipe, tmp_path_factory):
    """The folder of a run of two epochs, with BLEU after each."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(str(recipe), folder, changes=[*SHORT, "epochs=2", "bleu_every=1"])
    return folder


@pytest.mark.skipif(not EVERY_CASE_ASKED, reason="test_translation.py resumes runs, too")
def test_a_resumed_run_has_the_same_weights(recipe, run, tmp_path, capsys):
    for epochs in (1, 2):
        changes = [*SHORT, f"epochs={epochs}", "bleu_every=1", "decay=inverse_sqrt"]
        train(str(recipe), tmp_path / "twice", changes=changes)
    said = capsys.readouterr().err
    assert said.count("resuming after epoch 1") == 1
    assert "corpus en-fr of fr.en: kept 50 of 50" in said and "\nen-fr: 50 pairs, " in said
    one, other = (
        load_file(x / "checkpoints" / "epoch-0002" / "weights.safetensors")
        for x in (run, tmp_path / "twice")
    )
    assert one.keys() == other.keys() and one
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    with pytest.raises(ValueError, match="another run .*temperature: 5 before, 4 now"):
        train(str(recipe), tmp_path / "twice", changes=[*SHORT, "temperature=4", "bleu_every=1"])


def test_the_saved_model_knows_its_languages(run):
    translator = Translator.load(run, target_language="fr")
    assert translator.target_language == "fr" and translator.source_language is None
    found = translator.translate(["ba be", ""], beam_size=1, max_extra_length=3)
    assert found == Translator.load(run).between("en", "fr").translate(
        ["ba be", ""], beam_size=1, max_extra_length=3
    )
    assert found[1] == ""
    scores = [Translator.load(run, target_language=x).score(["ba"], ["BA"]) for x in ("de", "fr")]
    assert scores[0] != scores[1]
    with pytest.raises(ValueError, match="target_language must be one of 3 codes: .*fr, got 'es'"):
        Translator.load(run, target_language="es")
    with pytest.raises(ValueError, match="target_language must be one of de, en, fr, got none"):
        Translator.load(run).translate(["ba be"])


def test_scores_of_each_pair_of_languages(run):
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    assert metrics.keys() == {
        "training", "validation en-de", "validation de-en", "validation en-fr",
    }  # fmt: skip
    assert metrics["validation en-fr"]["sentences"] == 9
    assert metrics["training"]["recipe"]["corpora"][0]["source"] == "train.tsv"
    state = json.loads((run / "checkpoints" / "epoch-0002" / "state.json").read_text())
    assert "val_bleu" in state["history"][0]


def test_described_and_served(run):
    facts = describe(run)
    assert facts["source languages"] == "en, de" and facts["target languages"] == "de, en, fr"
    catalogue = Catalogue.load([run])
    assert catalogue.sources == ["de", "en"]
    assert catalogue.targets("de") == ["en", "fr"]  # to French in two steps
    assert Translator.load(run, None, "de", "fr").middle == "en"
    assert facts["directions"] == "en-de, de-en, en-fr"
    assert catalogue.targets("en") == ["de", "fr"]


def test_trained_further(recipe, run, tmp_path):
    own = [x for x in SHORT if not x.startswith(("temperature", "model."))] + ["epochs=1"]
    one_file = [recipe.parent / "fr.tsv"]
    files = dict(train_files=one_file, validation_files=one_file)
    changes = [*own, "target_language=fr"]
    train(output=tmp_path / "one", start_from=run, changes=changes, **files)
    assert Translator.load(tmp_path / "one").target_language == "fr"
    assert Translator.load(tmp_path / "one", target_language="de").translate(["ba"], beam_size=1)
    with pytest.raises(ValueError, match="target_language must be one of 3 codes.*got 'es'"):
        changes = [*own, "target_language=es"]
        train(output=tmp_path / "two", start_from=run, changes=changes, **files)
    train(str(recipe), tmp_path / "all", start_from=run, changes=own)
    assert Translator.load(tmp_path / "all").tokenizer.target_languages == ("de", "en", "fr")
    more = tmp_path / "more.toml"
    more.write_text(RECIPE.replace('"fr"\n', '"es"\n'))
    with pytest.raises(ValueError, match="start_from must be a model that knows es by its tag"):
        train(str(more), tmp_path / "x", recipe.parent, start_from=run, changes=own)


def test_one_target_language_is_the_saved_one(recipe, tmp_path):
    shutil.copytree(recipe.parent, tmp_path / "own")
    text = RECIPE.replace('target_language = "fr"', 'source_language = "fr"')
    (tmp_path / "own/mine.toml").write_text(text.replace("both_directions = true\n", ""))
    train(str(tmp_path / "own/mine.toml"), tmp_path / "run", changes=[*SHORT, "epochs=1"])
    translator = Translator.load(tmp_path / "run")
    assert (translator.source_language, translator.target_language) == (None, "de")
    assert translator.tokenizer.source_languages == ("en", "fr")
    assert translator.translate(["ba"], beam_size=1)


def test_what_does_not_go_together(recipe, tmp_path):
    with pytest.raises(ValueError, match="--train must be left out: the recipe names its corpora"):
        train(str(recipe), tmp_path, train_files=[recipe.parent / "train.tsv"])
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        train(str(recipe), tmp_path, data_folder=tmp_path / "elsewhere")
