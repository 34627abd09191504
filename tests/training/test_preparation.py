"""What a run begins with."""

import dataclasses
import warnings

import pytest

from keras_transformer.models import T5Config, Transformer
from keras_transformer.text.context import reads_context
from keras_transformer.training import preparation
from keras_transformer.training.preparation import prepare_run, read_text
from keras_transformer.training.recipe import TranslationRecipe
from tests.small_translator import made_tokenizer, make

OPTIONS = dict(vocab_size=400, model=dict(d_model=16, d_ff=32, num_heads=2), train_size=200)
FILES = dict(train=None, validation=None, test=None)


def test_a_corpus_a_tokenizer_and_sizes():
    options = TranslationRecipe(**OPTIONS)
    corpus, pairs = read_text(options, None, FILES)
    assert corpus.name == "grammar" and 0 < len(pairs) <= 200
    setup = prepare_run(options, corpus, pairs, None)
    assert setup.start is None and setup.family is Transformer
    assert setup.config.d_model == 16 and setup.languages == ("en", "de")
    assert setup.config.source_vocab_size == setup.tokenizer.source_vocab_size
    again = prepare_run(options, corpus, pairs, None)
    assert again.tokenizer.fingerprint() == setup.tokenizer.fingerprint()


def test_a_corpus_with_documents():
    given = OPTIONS | dict(train_size=50, context_sentences=2)
    options = TranslationRecipe(corpus="documents", **given)
    corpus, pairs = read_text(options, None, FILES)
    setup = prepare_run(options, corpus, pairs, None)
    assert reads_context(setup.tokenizer)
    for side in (0, 1):
        assert {x[side].count("<sep>") for x in pairs} == {0, 1, 2}
    assert sum("<sep>" in source for source, _ in pairs) > 50  # each document, and more
    assert all("<sep>" not in x for pair in corpus.tests["test"] for x in pair)
    with pytest.raises(ValueError, match="context_sentences must be 0 for the corpus grammar"):
        read_text(TranslationRecipe(**given), None, FILES)


def test_a_part_with_exchanged_sides(tmp_path):
    for name, lines in {"en": ["a man sleeps", "the dog"], "de": ["ein Mann", "der Hund"]}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    both = [tmp_path / "en", tmp_path / "de"]
    options = TranslationRecipe(corpus="files", **OPTIONS)
    with pytest.warns(UserWarning, match="sources of the validation text have the words of train"):
        read_text(options, None, FILES | dict(train=both, validation=both[::-1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_text(options, None, FILES | dict(train=both, validation=both))


def test_a_start_keeps_its_sizes_and_takes_what_training_can_change(tmp_path):
    make(made_tokenizer(), guided_alignment=0.1).save(tmp_path)
    changed = dict(d_model=64, dropout=0.2, layer_drop=0.1, guided_alignment=0.0)
    options = TranslationRecipe(model=changed, train_size=50)
    corpus, pairs = read_text(options, None, FILES)
    config = prepare_run(options, corpus, pairs, tmp_path).config
    assert (config.d_model, config.dropout) == (16, 0.2)
    assert (config.layer_drop, config.guided_alignment) == (0.1, 0.0)
    same = TranslationRecipe(train_size=50)
    assert prepare_run(same, corpus, pairs, tmp_path).config.guided_alignment == 0.1
    sampled = dataclasses.replace(options, subword_sampling=0.1)
    assert prepare_run(sampled, corpus, pairs, tmp_path).config.guided_alignment == 0.0
    with pytest.raises(ValueError, match="subword_sampling must be 0 or false for this start_from"):
        prepare_run(dataclasses.replace(same, subword_sampling=0.1), corpus, pairs, tmp_path)


def test_a_start_of_a_family_without_a_field():
    options = TranslationRecipe(model={"layer_drop": 0.1, "guided_alignment": 0.0, "dropout": 0.2})
    with pytest.raises(ValueError, match="model.layer_drop must be 0 for T5Config, .* got 0.1"):
        preparation._changes(options, T5Config(vocab_size=8))
    options = TranslationRecipe(model={"layer_drop": 0.0, "dropout": 0.2})
    assert preparation._changes(options, T5Config(vocab_size=8)) == {"dropout": 0.2}


def test_a_start_without_terms(tmp_path):
    make(made_tokenizer()).save(tmp_path)
    options = TranslationRecipe(train_size=50, inline_terms=0.1)
    corpus, pairs = read_text(options, None, FILES)
    with pytest.raises(ValueError, match="start_from must be .* trained with inline_terms, got"):
        prepare_run(options, corpus, pairs, tmp_path)


def test_prefixes_are_in_the_training_text_alone():
    options = TranslationRecipe()
    corpus, pairs = read_text(options, None, FILES)
    other_corpus, more = read_text(dataclasses.replace(options, prefix_pairs=0.9), None, FILES)
    assert len(more) > len(pairs) and set(pairs) <= set(more)
    assert other_corpus.validation == corpus.validation


def test_noise_is_in_the_training_text_alone():
    options = TranslationRecipe(train_size=50)
    corpus, pairs = read_text(options, None, FILES)
    noisy_corpus, noisy_pairs = read_text(dataclasses.replace(options, noise=0.9), None, FILES)
    assert len(noisy_pairs) == len(pairs) and noisy_pairs != pairs
    assert noisy_corpus.validation == corpus.validation


def test_documents_are_two_files(tmp_path):
    options = TranslationRecipe(corpus="files", context_sentences=1)
    (tmp_path / "a.tsv").write_text("a\tb\n")
    files = {"train": [tmp_path / "a.tsv"], "validation": [tmp_path / "a.tsv"], "test": None}
    with pytest.raises(ValueError, match="--train must be two text files: others have no empty"):
        read_text(options, None, files)


def test_a_start_without_context(tmp_path):
    make(made_tokenizer()).save(tmp_path)
    options = TranslationRecipe(corpus="documents", **OPTIONS | dict(context_sentences=1))
    corpus, pairs = read_text(options, None, FILES)
    with pytest.raises(ValueError, match="start_from must be a translator that was trained with"):
        prepare_run(options, corpus, pairs, tmp_path)


def test_a_side_that_is_missing():
    options = TranslationRecipe(corpus="files")
    with pytest.raises(ValueError, match="--train is required"):
        read_text(options, None, FILES)
