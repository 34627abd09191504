"""The options of a training run: defaults, ranges and plain values."""

import dataclasses
import json

import pytest

from keras_transformer.training.recipe import (
    DECAYS,
    MONITORS,
    PRECISIONS,
    TranslationRecipe,
    read_recipe,
    settings,
)


def test_there_and_back_by_json():
    recipe = TranslationRecipe(epochs=3, model={"d_model": 64, "norm_first": True}, patience=2)
    values = json.loads(json.dumps(recipe.to_dict()))
    assert TranslationRecipe.from_dict(values) == recipe
    assert TranslationRecipe.from_dict({}) == TranslationRecipe()


def test_a_recipe_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TranslationRecipe().epochs = 3


@pytest.mark.parametrize(
    "name,choices",
    [("monitor", MONITORS), ("decay", DECAYS), ("precision", PRECISIONS)],
)
def test_each_choice_is_accepted(name, choices):
    for choice in choices:
        assert getattr(TranslationRecipe(**{name: choice}), name) == choice


@pytest.mark.parametrize(
    "name,least,wrong",
    [
        ("epochs", 1, 0),
        ("warmup_steps", 1, 0),
        ("tokens_per_batch", 1, 0),
        ("patience", 1, 0),
        ("bleu_every", 0, -1),
        ("seed", 0, -1),
        ("max_length_ratio", 1.0, 0.9),
        ("subword_sampling", 0.0, -0.1),
        ("subword_sampling", 0.9, 1.0),
        ("label_smoothing", 0.0, 1.0),
        ("peak_learning_rate", 1e-9, 0.0),
        ("clip_norm", 1e-9, 0.0),
        ("weight_decay", 0.0, 1.0),
        ("r_drop", 0.0, -0.1),
        ("ema_decay", 0.0, 1.0),
        ("inline_terms", 1.0, 1.1),
        ("noise", 1.0, 1.1),
        ("prefix_pairs", 1.0, 1.1),
        ("context_sentences", 0, -1),
    ],
)
def test_the_end_of_each_range(name, least, wrong):
    assert getattr(TranslationRecipe(**{name: least}), name) == least
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got {wrong}"):
        TranslationRecipe(**{name: wrong})


def test_a_packed_row_fits_into_a_batch():
    assert TranslationRecipe(tokens_per_batch=64, packed_length=64).packed_length == 64
    with pytest.raises(ValueError, match="packed_length must be .*tokens_per_batch=64, got 65"):
        TranslationRecipe(tokens_per_batch=64, packed_length=65)


@pytest.mark.parametrize("name,value", [("subword_sampling", 0.1), ("remat", True)])
def test_guided_alignment_needs_fixed_tokens_and_weights_of_attention(name, value):
    with pytest.raises(ValueError, match=f"{name} must be 0 or false with model.guided_alignment"):
        TranslationRecipe(model={"guided_alignment": 0.1}, **{name: value})
    assert TranslationRecipe(model={"guided_alignment": 0.0}, **{name: value})


def test_stopping_by_bleu_needs_bleu():
    with pytest.raises(ValueError, match="bleu_every must be .*, got 0"):
        TranslationRecipe(monitor="val_bleu", patience=3)
    assert TranslationRecipe(monitor="val_bleu", patience=3, bleu_every=1).patience == 3


def test_unknown_options():
    with pytest.raises(ValueError, match=r"\['epoch'\].*'epochs'"):
        TranslationRecipe.from_dict({"epoch": 3})
    with pytest.raises(ValueError, match=r"\['width'\].*'d_model'"):
        TranslationRecipe(model={"width": 3})


def test_every_value_has_a_type_and_its_error_the_name():
    for field in dataclasses.fields(TranslationRecipe):
        with pytest.raises(ValueError, match=rf"^{field.name} must be .*, got \(1,\)"):
            TranslationRecipe.from_dict({field.name: (1,)})


def test_each_setting_is_accepted_and_none_is_missing(tmp_path):
    (tmp_path / "empty.toml").write_text("")
    recipe = read_recipe(str(tmp_path / "empty.toml"), settings())
    named = {x.partition("=")[0].partition(".")[0] for x in settings()}
    fields = {x.name for x in dataclasses.fields(TranslationRecipe)}
    assert named == fields - {"corpora"}  # tables, which only a file has
    plain = TranslationRecipe()
    tables = "model", "distribution"
    assert dataclasses.replace(recipe, **{x: getattr(plain, x) for x in tables}) == plain
    assert {"epochs=20", "patience=none", "model.norm_first=false"} <= {*settings()}
    assert recipe.model["d_model"] == 512 and recipe.distribution["data"] == -1
