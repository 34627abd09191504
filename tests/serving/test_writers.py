"""Folders of language models, beside others."""

from unittest import mock

import pytest
from fastapi.testclient import TestClient

from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.language.reply import Event
from keras_transformer.serving import Catalogue, Replicas, create_app
from keras_transformer.serving.writers import LanguageModel, is_language_model
from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.text.translation_prompt import TranslationPrompt


def test_which_folder_is_one(writer_folder, folders, tmp_path):
    assert is_language_model(writer_folder)
    assert not is_language_model(folders[0]) and not is_language_model(tmp_path / "none")


def test_loaded_with_and_without_a_template(writer, writer_folder, tmp_path):
    model = LanguageModel.load(writer_folder)
    assert model.name == "poet" and model.chat.encode([{"role": "user", "content": "one"}])
    pieces = model.names.pieces([], [])
    _, token = model.names.add(Event(0, 0, -1.0, (), None, 0), pieces)
    assert token.text == "<|endoftext|>"
    CausalLM(writer.model, writer.tokenizer).save(tmp_path / "plain")
    assert LanguageModel.load(tmp_path / "plain").chat is None


def test_beside_translators(writer_folder, folders):
    catalogue = Catalogue.load([folders[0], writer_folder])
    assert list(catalogue.models) == ["en-de"] and list(catalogue.writers) == ["poet"]
    with pytest.raises(ValueError, match="different names"):
        Catalogue.load([writer_folder, writer_folder])
    with pytest.raises(ValueError, match="only translators have pairs"):
        Catalogue.load([f"en-de={writer_folder}"])
    alone = Catalogue.load([writer_folder])
    with pytest.raises(ValueError, match="no translator is served"):
        alone.route("en", "de")


def test_with_a_prompt_it_is_served_as_a_translator(writer, tmp_path):
    prompt = TranslationPrompt("{text}", chat=False, directions=[["en", "de"]])
    CausalLM(writer.model, writer.tokenizer, prompt=prompt).save(tmp_path / "asked")
    assert not is_language_model(tmp_path / "asked")
    catalogue = Catalogue.load([tmp_path / "asked"], warm_up=False)
    assert list(catalogue.models) == ["asked"] and not catalogue.writers
    (handler,) = catalogue.route("en", "de")
    assert not handler.can_attend and catalogue.targets("en") == ["de"]


def test_style_and_terms_reach_the_prompt(writer, tmp_path):
    templates = dict(with_terms="{terms} {text}", with_style="{style} {text}")
    prompt = TranslationPrompt("{text}", chat=False, directions=[["en", "de"]], **templates)
    CausalLM(writer.model, writer.tokenizer, prompt=prompt).save(tmp_path / "asked")
    catalogue = Catalogue.load([tmp_path / "asked"], warm_up=False, max_extra_length=2)
    asked, ask_for = [], PromptTokenizer.asking_for

    def asking_for(tokenizer, glossary, style):
        asked.append((glossary, style))
        return ask_for(tokenizer, glossary, style)

    pair = dict(source_lang="en", target_lang="de")
    with (
        mock.patch.object(PromptTokenizer, "asking_for", asking_for),
        TestClient(create_app(lambda: catalogue)) as client,
    ):
        common = dict(q="one", source="en", target="de")
        client.post("/translate", json={**common, "style": "terse"}).raise_for_status()
        client.post("/translate", json={**common, "glossary": {"one": "two"}}).raise_for_status()
        for formality in ("less", "prefer_more", "default"):
            fields = dict(text=["one"], formality=formality, **pair)
            client.post("/v2/translate", json=fields).raise_for_status()
        (target,) = client.get("/v2/languages?type=target").json()
    wishes = [x for x in asked if x != (None, None)]
    assert [style for _, style in wishes] == ["terse", None, "informal", "formal"]
    assert [glossary is not None for glossary, _ in wishes] == [False, True, False, False]
    assert target["supports_formality"]


def test_replicas_are_refused_by_name(writer_folder):
    with pytest.raises(NotImplementedError, match="poet is a language model, which replicas"):
        Replicas([writer_folder], 2)
