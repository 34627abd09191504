"""Prompts as data: the built-in ones, files, and what a file must not have."""

import json

import pytest

from keras_transformer.text.translation_prompt import TranslationPrompt, builtin_prompts, guessed


def content(prompt, source, target, template="template", **values):
    """The text that asks for the translation of "Ja." from one language to another."""
    from keras_transformer.text.translation_prompt import filled

    prompt = prompt.variant(source, target)
    fields = prompt.fields_of(source, target) | {"text": "Ja."} | values
    return filled(getattr(prompt, template), fields)


def test_builtin_prompts_are_those_of_the_model_cards():
    read = TranslationPrompt.read
    tower = "Translate the following text from German into English.\nGerman: Ja.\nEnglish:"
    assert content(read("tower"), "de", "en") == tower
    plus = "source text to Portuguese (Portugal):\nGerman: Ja.\nPortuguese (Portugal): "
    assert content(read("tower-plus"), "de", "pt") == f"Translate the following German {plus}"
    seed = "Translate the following German sentence into Chinese:\nJa. <zh>"
    assert content(read("seed-x"), "de", "zh") == seed
    for name in builtin_prompts():
        prompt = read(name)
        assert name == "plain" or prompt.published.startswith("https://")
        assert "Ja." in content(prompt, "de", "en")


def test_a_pair_with_chinese_has_another_prompt():
    prompt = TranslationPrompt.read("hunyuan-mt")
    assert content(prompt, "en", "de") == (
        "Translate the following segment into German, without additional explanation.\n\nJa."
    )
    for pair, name in ((("zh", "de"), "德语"), (("de", "zh"), "中文")):
        assert content(prompt, *pair) == f"把下面的文本翻译成{name}，不要额外解释。\n\nJa."


def test_terms_are_lines():
    prompt = TranslationPrompt.read("hy-mt").variant("zh", "de")
    lines = prompt.lines([("狗", "Hund"), ("猫", "Katze")])
    assert lines == "狗 翻译成 Hund\n猫 翻译成 Katze"
    text = content(prompt, "zh", "de", "with_terms", terms=lines)
    assert text.startswith(f"参考下面的翻译：\n{lines}\n\n") and text.endswith("：\nJa.")


def test_a_style_has_a_place():
    text = content(TranslationPrompt.read("hy-mt2"), "de", "en", "with_style", style="formal")
    assert text.endswith("style must strictly conform to [formal]:\n\nJa.")


def test_a_prompt_survives_as_plain_values():
    for name in builtin_prompts():
        prompt = TranslationPrompt.read(name)
        values = json.loads(json.dumps(prompt.to_dict()))
        assert TranslationPrompt.of(values, "a test") == prompt


@pytest.mark.parametrize(
    ("checkpoint", "prompt"),
    [
        ("TowerInstruct-7B-v0.2", "tower"),
        ("TowerInstruct-Mistral-7B-v0.2", "tower"),
        ("Tower-Plus-9B", "tower-plus"),
        ("EuroLLM-1.7B-Instruct", "eurollm"),
        ("EuroLLM-1.7B", None),
        ("salamandraTA-7b-instruct", "salamandra-ta"),
        ("salamandra-7b-instruct", None),
        ("Seed-X-PPO-7B", "seed-x"),
        ("Seed-X-RM-7B", None),
        ("translategemma-4b-it", "translate-gemma"),
        ("Hunyuan-MT-7B", "hunyuan-mt"),
        ("Hunyuan-MT-Chimera-7B", None),
        ("HY-MT1.5-1.8B", "hy-mt"),
        ("Hy-MT2-7B", "hy-mt2"),
        ("SmolLM2-135M-Instruct", None),
    ],
)
def test_a_prompt_is_guessed_by_the_name(checkpoint, prompt):
    expected = prompt and TranslationPrompt.read(prompt)
    assert guessed(checkpoint) == expected


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('template = "{source} > {target}: {text}"\n[languages]\nen = "Anglish"\n')
    assert content(TranslationPrompt.read(path), "en", "xx") == "Anglish > xx: Ja."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("template = 3", "template must be a text"),
        ('template = "{target}"', "the fields of template must be .*'text'"),
        ('template = "{text} {word}"', "the fields of template must be .*word"),
        ('template = "{text}"\nwith_terms = "{text}"', "the fields of with_terms .*'terms'"),
        ('template = "{text}"\nstop = "x"', "stop must be a list of texts"),
        ('template = "{text}"\nchat = 1', "chat must be true or false"),
        ('template = "{text}"\nnames = "klingon"', "names must be one of"),
        ('template = "{text}"\nsearch = 1', "search must be a table"),
        ('template = "{text}"\nsource_language = 1', "source_language must be a language code"),
        ('template = "{text}"\ndirections = ["en"]', "directions must be pairs"),
        ('template = "{text}"\n[variants]\nde = {template = "x"}', "variants.de: the fields"),
        ('templat = "{text}"', "templat in .* is unknown"),
        ("chat = true", "must be a table with a template"),
        ("template", "is not TOML"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        TranslationPrompt.read(path)


def test_an_unknown_prompt_and_a_missing_language_are_refused():
    with pytest.raises(ValueError, match="prompt must be one of .*'tower'.*, got 'babel'"):
        TranslationPrompt.read("babel")
    with pytest.raises(ValueError, match="target_language must be chosen"):
        content(TranslationPrompt.read("tower"), "en", None)
    with pytest.raises(ValueError, match="must be a table"):
        TranslationPrompt.of([], "a test")
