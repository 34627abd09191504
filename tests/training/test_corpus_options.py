"""Tables of corpora: defaults and every way to get one wrong."""

import pytest

from keras_transformer.training.corpus_options import CorpusOptions, checked
from keras_transformer.training.recipe import TranslationRecipe, read_recipe

GOOD = dict(source="a.en", target="a.de")


def test_languages_are_those_of_the_recipe_unless_named():
    first, second = checked([GOOD, GOOD | {"target_language": "fr"}], 5, "en", "de")
    assert first == CorpusOptions("a.en", "a.de", "en", "de")
    assert second.target_language == "fr" and second.weight == 1
    assert first.files("") == ("a.en", "a.de") and first.files("validation_") == ()


def test_tables_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'temperature = 2\n[[corpora]]\nsource = "a.tsv"\n[[corpora]]\nsource = "b.tmx"\n'
    )
    recipe = read_recipe(str(path))
    assert [x["source"] for x in recipe.corpora] == ["a.tsv", "b.tmx"] and recipe.temperature == 2
    assert TranslationRecipe.from_dict(recipe.to_dict()) == recipe
    changed = read_recipe(str(path), ['corpora=[{source="c.tsv", weight=2}]', "temperature=1"])
    assert changed.corpora == [{"source": "c.tsv", "weight": 2}]


@pytest.mark.parametrize(
    "table, message",
    [
        ({"wieght": 2}, r"corpora\[1\] \['wieght'\], did you mean 'weight'\?; accepted are"),
        ({"weight": "2"}, r"corpora\[1\].weight must be a number, got '2'"),
        ({"weight": True}, r"corpora\[1\].weight must be a number, got True"),
        ({"weight": 0}, r"corpora\[1\].weight must be above 0 and at most 1000, got 0"),
        ({"weight": -1.0}, r"corpora\[1\].weight must be above 0 .*, got -1.0"),
        ({"weight": float("nan")}, r"corpora\[1\].weight must be above 0 .*, got nan"),
        ({"weight": float("inf")}, r"corpora\[1\].weight must be above 0 .*, got inf"),
        ({"source": ""}, r"corpora\[1\].source must be the name of a file, got ''"),
        ({"source": 3}, r"corpora\[1\].source must be a string, got 3"),
        ({"tag": "a b"}, r"corpora\[1\].tag must be a word without white space, got 'a b'"),
        ({"tag": " "}, r"corpora\[1\].tag must be a word without white space, got ' '"),
        ({"both_directions": 1}, r"corpora\[1\].both_directions must be true or false, got 1"),
        ({"target_language": "d e"}, r"corpora\[1\].target_language must be a code .* got 'd e'"),
        ({"validation_target": "x"}, r"corpora\[1\].validation_target must be named together"),
        ({"documents": True, "target": ""}, r"corpora\[1\].target must be the second of two text"),
        (
            {"documents": True, "validation_source": "v.tsv"},
            r"corpora\[1\].validation_target must be the second of two text files: .*, got ''",
        ),
    ],
)
def test_wrong_tables(table, message):
    with pytest.raises(ValueError, match=message):
        TranslationRecipe(corpora=[GOOD, GOOD | table])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"corpora": GOOD}, "corpora must be a list of tables, got {'source'"),
        ({"corpora": ["a.en"]}, r"corpora must be a list of tables, got \['a.en'\]"),
        ({"corpora": [{"target": "b"}]}, r"corpora\[0\].source must be the name of a file"),
        ({"corpora": [GOOD], "temperature": 0.5}, "temperature must be from 1 to 1000, got 0.5"),
        ({"corpora": [GOOD], "temperature": float("inf")}, "temperature must be from 1 to 1000"),
        ({"temperature": 5}, "temperature must be 1 without tables corpora, got 5"),
        (
            {"corpora": [GOOD, GOOD | {"weight": 2}], "temperature": 5},
            "temperature must be 1 if there are weights, got 5",
        ),
    ],
)
def test_wrong_recipes(options, message):
    with pytest.raises(ValueError, match=message):
        TranslationRecipe(**options)
