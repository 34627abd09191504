"""Recipes: reading, changing, and every way to get one wrong."""

import pytest

from keras_transformer.config import TransformerConfig, TranslationRecipe
from training.recipes import names, read_recipe


@pytest.mark.parametrize("name", names())
def test_every_recipe_makes_a_model_config(name):
    recipe = read_recipe(name)
    config = TransformerConfig(100, 100, **recipe.model)
    assert config.d_model % config.num_heads == 0
    assert TranslationRecipe.from_dict(recipe.to_dict()) == recipe


def test_multi30k_has_the_shape_of_transformer_tiny():
    config = TransformerConfig(100, 100, **read_recipe("multi30k").model)
    free = dict(max_length=config.max_length, dropout=config.dropout, norm_first=config.norm_first)
    assert config == TransformerConfig.tiny(100, **free)


def test_changes_take_toml_values():
    changes = ["epochs=3", "model.d_model=64", "lowercase=true", "corpus=files", "patience=none"]
    recipe = read_recipe("multi30k", changes)
    assert (recipe.epochs, recipe.lowercase, recipe.corpus, recipe.patience) == (
        3,
        True,
        "files",
        None,
    )
    assert recipe.model["d_model"] == 64


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("epochs = 7\n[model]\nd_model = 32\n")
    recipe = read_recipe(str(path))
    assert recipe.epochs == 7 and recipe.model == {"d_model": 32}


@pytest.mark.parametrize(
    "recipe, changes, message",
    [
        ("gigantic", [], "recipe must be one of .*'grammar'.* got 'gigantic'"),
        ("none_such.toml", [], "recipe must be one of .* got 'none_such.toml'"),
        ("grammar", ["epochs"], "must read option=value, got 'epochs'"),
        ("grammar", ["epoch=3"], r"unknown recipe options \['epoch'\]; accepted are .*'epochs'"),
        ("grammar", ["data.size=3"], "got 'data.size=3'"),
        ("grammar", ["epochs=0"], "epochs must be at least 1, got 0"),
        ("grammar", ["precision=float8"], "precision must be one of .* got 'float8'"),
        ("grammar", ["packed_length=0"], "packed_length .* 1 to tokens_per_batch=2048, got 0"),
        ("grammar", ["packed_length=4096"], "packed_length .* tokens_per_batch=2048, got 4096"),
        ("grammar", ["monitor=bleu"], "monitor must be one of .* got 'bleu'"),
        ("grammar", ["monitor=val_bleu", "patience=2"], "bleu_every must be 1 to monitor val_bleu"),
    ],
)
def test_bad_recipes(recipe, changes, message):
    with pytest.raises(ValueError, match=message):
        read_recipe(recipe, changes)


def test_broken_toml(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("epochs = = 3\n")
    with pytest.raises(ValueError, match=r"broken.toml is not valid TOML"):
        read_recipe(str(path))
