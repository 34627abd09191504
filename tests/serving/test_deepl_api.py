"""DeepL's API, as its own client calls it."""

import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Settings, create_app

pytestmark = pytest.mark.once("tests/serving/test_handlers.py translates on each backend")


@pytest.fixture(scope="module")
def server(catalogue):
    """An application with a key."""
    return create_app(lambda: catalogue, Settings(api_key="secret"))


@pytest.fixture(scope="module")
def api(server, served):
    """The official client of such a server."""
    deepl = pytest.importorskip("deepl")
    with served(server) as url:
        yield deepl.DeepLClient("secret", server_url=url)


def test_texts_of_the_client(api, translators):
    expected = translators[0].translate(["one two.", "six nine!"])
    results = api.translate_text(["one two.", "six nine!"], source_lang="EN", target_lang="DE")
    assert [x.text for x in results] == expected
    assert [x.billed_characters for x in results] == [8, 9]
    page = api.translate_text("<p>one <b>two</b></p>", target_lang="DE", tag_handling="html",
                              source_lang="EN", formality="prefer_more").text  # fmt: skip
    assert page.startswith("<p>") and "<b>" in page
    detected = api.translate_text("Das ist ein Haus und kein Hund.", target_lang="FR")
    assert detected.detected_source_lang == "DE"
    assert [x.code for x in api.get_source_languages()] == ["DE", "EN"]
    targets = api.get_target_languages()
    assert [(x.code, x.supports_formality) for x in targets] == [("DE", False), ("FR", False)]
    assert not api.get_usage().any_limit_reached


def test_glossaries_of_the_client(api):
    import deepl

    pairs = {(x.source_lang, x.target_lang) for x in api.get_glossary_languages()}
    assert pairs == {("en", "de"), ("de", "fr")}
    glossary = api.create_glossary("animals", "EN", "DE", {"two": "nine"})
    assert (glossary.name, glossary.ready, glossary.entry_count) == ("animals", True, 1)
    languages = dict(source_lang="EN", target_lang="DE")
    assert "nine" in api.translate_text("one two.", glossary=glossary, **languages).text.lower()
    assert api.get_glossary(glossary.glossary_id).creation_time == glossary.creation_time
    assert [x.glossary_id for x in api.list_glossaries()] == [glossary.glossary_id]
    assert api.get_glossary_entries(glossary) == {"two": "nine"}
    with pytest.raises(deepl.DeepLException, match="must be one for de-fr, got one for en-de"):
        api.translate_text("ja", source_lang="DE", target_lang="FR", glossary=glossary.glossary_id)
    api.delete_glossary(glossary)
    with pytest.raises(deepl.GlossaryNotFoundException):
        api.get_glossary(glossary.glossary_id)


def test_multilingual_glossaries_of_the_client(api):
    from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries

    dictionaries = [Entries("en", "de", {"two": "nine"}), Entries("de", "fr", {"six": "ten"})]
    glossary = api.create_multilingual_glossary("animals", dictionaries)
    assert api.list_glossaries() == []  # the old routes do not show it
    renamed = api.update_multilingual_glossary_name(glossary, "beasts")
    assert [x.name for x in api.list_multilingual_glossaries()] == [renamed.name] == ["beasts"]
    api.update_multilingual_glossary_dictionary(glossary, Entries("en", "de", {"six": "four"}))
    read = api.get_multilingual_glossary_entries(glossary, "EN", "DE").dictionaries[0]
    assert read.entries == "two\tnine\nsix\tfour"
    replaced = Entries("de", "fr", {"six": "ten", "one": "two"})
    assert api.replace_multilingual_glossary_dictionary(glossary, replaced).entry_count == 2
    whole = api.get_multilingual_glossary(glossary.glossary_id)
    text = api.translate_text("six.", source_lang="EN", target_lang="DE", glossary=whole).text
    assert "four" in text.lower()
    api.delete_multilingual_glossary_dictionary(glossary, source_lang="de", target_lang="fr")
    assert len(api.get_multilingual_glossary(glossary.glossary_id).dictionaries) == 1
    api.delete_multilingual_glossary(glossary)
    assert api.list_multilingual_glossaries() == []


def test_glossaries_survive_a_restart(catalogue, tmp_path):
    terms = dict(name="a", source_lang="en", target_lang="de", entries="a\tb")
    server = create_app(lambda: catalogue, Settings(glossaries=tmp_path))
    with TestClient(server) as client:
        glossary = client.post("/v2/glossaries", json=terms).json()
    with TestClient(create_app(lambda: catalogue, Settings(glossaries=tmp_path))) as client:
        assert client.get("/v2/glossaries").json() == {"glossaries": [glossary]}
        client.delete(f"/v2/glossaries/{glossary['glossary_id']}").raise_for_status()
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(ValueError, match="broken.json is not a glossary: owner: Field required"):
        create_app(lambda: catalogue, Settings(glossaries=tmp_path))


REFUSED = {
    "split_sentences must be '1'": dict(split_sentences="nonewlines"),
    "formality must be default, prefer_more or prefer_less": dict(formality="more"),
    "source_lang must be given with glossary_id": dict(source_lang=None, glossary_id="{}"),
    "there is no glossary 'x'": dict(glossary_id="x"),
    "style_id: Extra inputs": dict(style_id="x"),
}


def test_refusals(server):
    key = {"Authorization": "DeepL-Auth-Key secret"}
    terms = dict(name="a", source_lang="en", target_lang="de", entries="a\tb")
    with TestClient(server) as client:
        assert client.get("/v2/usage").status_code == 403

        def ask(path, **fields):
            return client.post(path, json=fields, headers=key).json()

        id = ask("/v2/glossaries", **terms)["glossary_id"]
        for message, fields in REFUSED.items():
            more = {x: y.format(id) if y else y for x, y in fields.items()}
            answer = ask(
                "/v2/translate", **{"text": ["a"], "source_lang": "en", "target_lang": "de"} | more
            )
            assert message in answer["message"]
        french = ask("/v2/glossaries", **terms | {"target_lang": "fr"})["message"]
        assert french == "target_lang must be one that is reached in one step, got 'fr'"
        wrong = client.get("/v2/languages?type=x", headers=key).json()["message"]
        assert wrong == "type must be source or target, got 'x'"
        place = f"/v3/glossaries/{id}/entries?source_lang=de&target_lang=fr"
        missing = client.get(place, headers=key)
        assert missing.status_code == 404 and "has no dictionary de-fr" in missing.text
