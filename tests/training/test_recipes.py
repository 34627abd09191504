"""Recipes: reading, changing, and every way to get one wrong."""

import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.training.recipe import TranslationRecipe, names, read_recipe


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
        ("grammar", ["epochs"], "must be option=value, got 'epochs'"),
        ("grammar", ["epoch=3"], r"\['epoch'\], did you mean 'epochs'\?; accepted are .*'epochs'"),
        ("grammar", ["data.size=3"], "got 'data.size=3'"),
        ("grammar", ["epochs=0"], "epochs must be at least 1, got 0"),
        ("grammar", ["precision=float8"], "precision must be one of .* got 'float8'"),
        ("grammar", ["packed_length=0"], "packed_length .* 1 to tokens_per_batch=1024, got 0"),
        ("grammar", ["packed_length=4096"], "packed_length .* tokens_per_batch=1024, got 4096"),
        ("grammar", ["monitor=bleu"], "monitor must be one of .* got 'bleu'"),
        ("grammar", ["monitor=val_bleu", "patience=2"], "bleu_every must be at least 1 for val"),
        ("grammar", ["epochs=x"], "epochs must be a whole number, got 'x'"),
        ("grammar", ["epochs=1.5"], "epochs must be a whole number, got 1.5"),
        ("grammar", ["epochs=none"], "epochs must be a whole number, got None"),
        ("grammar", ["seed=true"], "seed must be a whole number, got True"),
        ("grammar", ["patience=x"], "patience must be a whole number or none, got 'x'"),
        ("grammar", ["lowercase=1"], "lowercase must be true or false, got 1"),
        ("grammar", ["corpus=3"], "corpus must be a string, got 3"),
        ("grammar", ["length_penalty=[1]"], r"length_penalty must be a number, got \[1\]"),
        ("grammar", ["model=3"], "model must be a table, got 3"),
        ("grammar", ["model=3", "model.d_ff=3"], "model must be a table, got 3"),
        ("grammar", ["model.d_model=x"], r"model\.d_model must be a whole number, got 'x'"),
        ("grammar", ["model.norm_first=0"], r"model\.norm_first must be true or false, got 0"),
        (
            "grammar",
            ["model.width=3"],
            r"unknown fields of model \['width'\]; accepted are .*'d_ff'",
        ),
        ("grammar", ["subword_sampling=nan"], r"subword_sampling must be in \[0, 1\), got nan"),
        ("grammar", ["label_smoothing=1.0"], r"label_smoothing must be in \[0, 1\), got 1.0"),
        ("grammar", ["tokenizer=words"], r"tokenizer must be one of \('bpe', .* got 'words'"),
        ("grammar", ["beam_size=0"], "beam_size must be at least 1, got 0"),
    ],
)
def test_bad_recipes(recipe, changes, message):
    with pytest.raises(ValueError, match=message):
        read_recipe(recipe, changes)


@pytest.mark.parametrize("text", [b"epochs = = 3\n", b'corpus = "\xff"'])
def test_broken_toml(tmp_path, text):
    path = tmp_path / "broken.toml"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"broken.toml is not valid TOML"):
        read_recipe(str(path))
