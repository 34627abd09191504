"""Documents of DeepL's API, as its own client sends them."""

import io
from unittest import mock

import docx
import pytest
from fastapi.testclient import TestClient

from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.serving import Catalogue, Settings, create_app, deepl_documents
from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.text.translation_prompt import TranslationPrompt

pytestmark = pytest.mark.once("tests/serving/test_handlers.py translates on each backend")
PAIR = dict(source_lang="EN", target_lang="DE")
KEY = {"Authorization": "DeepL-Auth-Key secret"}


@pytest.fixture(scope="module")
def server(catalogue):
    """An application with a key."""
    return create_app(lambda: catalogue, Settings(api_key="secret", most_bytes=100_000))


@pytest.fixture(scope="module")
def api(server, served):
    """The official client of such a server."""
    deepl = pytest.importorskip("deepl")
    with served(server) as url:
        yield deepl.DeepLClient("secret", server_url=url)


@pytest.fixture(scope="module")
def expected(translators):
    (text,) = translators[0].translate(["one two."])
    return text


def named(name, content):
    file = io.BytesIO(content)
    file.name = name
    return file


DOCUMENTS = {
    "a.txt": "{}\n",
    "a.html": "<p>{}</p>",
    "a.md": "{}\n\n```\ncode\n```\n",
    "a.srt": "1\n00:00:01,000 --> 00:00:02,500\n{}\n\n",
    "a.XLF": '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    '<trans-unit id="1"><source>{}</source></trans-unit></body></file></xliff>',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_the_client(name, api, expected):
    result, source = io.BytesIO(), DOCUMENTS[name].format("one two.")
    status = api.translate_document(named(name, source.encode()), result, **PAIR)
    assert status.done and status.billed_characters >= len("one two.")
    if name == "a.XLF":
        assert f">{expected}</target>" in result.getvalue().decode()
    else:
        assert result.getvalue().decode() == DOCUMENTS[name].format(expected)


def test_files_of_the_client(api, translators, tmp_path):
    import deepl

    texts = ["one two.", "three.", "four five.", "six.", "seven nine."]
    translations = zip(texts, translators[0].translate(texts), strict=True)
    text, expected = next(x for x in translations if x[1].isprintable())
    document = docx.Document()
    document.add_paragraph(text)
    document.save(tmp_path / "a.docx")
    api.translate_document_from_filepath(tmp_path / "a.docx", tmp_path / "b.docx", **PAIR)
    assert docx.Document(tmp_path / "b.docx").paragraphs[0].text == expected
    (tmp_path / "broken.docx").write_bytes(b"x")
    with pytest.raises(deepl.DocumentTranslationException, match="must be a document of its type"):
        api.translate_document_from_filepath(tmp_path / "broken.docx", tmp_path / "c.docx", **PAIR)
    with pytest.raises(deepl.DeepLException, match="output_format must be 'docx'"):
        api.translate_document_from_filepath(tmp_path / "a.docx", tmp_path / "a.pdf", **PAIR)


def test_glossaries_and_detected_languages(api):
    glossary = api.create_glossary("numbers", "EN", "DE", {"two": "nine"})
    result = io.BytesIO()
    api.translate_document(named("a.txt", b"one two."), result, glossary=glossary, **PAIR)
    assert b"nine" in result.getvalue().lower()
    text = b"Das ist ein Haus und kein Hund."
    assert api.translate_document(named("a.txt", text), io.BytesIO(), target_lang="FR").done
    handle = api.translate_document_upload(b"one", filename="a.txt", **PAIR)
    assert api.translate_document_wait_until_done(handle).done
    for _ in range(2):  # the result stays
        assert b"".join(api.translate_document_download(handle).iter_content())


def test_formality_reaches_the_prompt(writer, tmp_path, served):
    deepl = pytest.importorskip("deepl")
    prompt = TranslationPrompt(
        "{text}", chat=False, directions=[["en", "de"]], with_style="{style} {text}"
    )
    CausalLM(writer.model, writer.tokenizer, prompt=prompt).save(tmp_path / "asked")
    catalogue = Catalogue.load([tmp_path / "asked"], warm_up=False, max_extra_length=2)
    styles, ask_for = [], PromptTokenizer.asking_for

    def asking_for(tokenizer, glossary, style):
        styles.append(style)
        return ask_for(tokenizer, glossary, style)

    with (
        mock.patch.object(PromptTokenizer, "asking_for", asking_for),
        served(create_app(lambda: catalogue)) as url,
    ):
        api = deepl.DeepLClient("any", server_url=url)
        for formality in ("less", "prefer_more"):
            document = named("a.txt", b"one")
            assert api.translate_document(document, io.BytesIO(), formality=formality, **PAIR).done
    assert [x for x in styles if x] == ["informal", "formal"]


REFUSED = {
    "file must be one of .txt, ": (dict(), "a.pdf"),
    "output_format must be 'txt'": (dict(output_format="docx"), "a.txt"),
    "formality must be default, prefer_more or prefer_less": (dict(formality="more"), "a.txt"),
    "formality: Input should be 'default'": (dict(formality="x"), "a.txt"),
    "there is no glossary 'x'": (dict(glossary_id="x"), "a.txt"),
    "source_lang must be given with glossary_id": (dict(source_lang="", glossary_id="{}"), "a.txt"),
    "target must be one of de, fr": (dict(target_lang="XX"), "a.txt"),
    "style_id: Extra inputs": (dict(style_id="x"), "a.txt"),
}


def test_refusals(server):
    with TestClient(server, headers=KEY) as client:

        def send(name="a.txt", content=b"one", **fields):
            return client.post("/v2/document", data=PAIR | fields, files={"file": (name, content)})

        terms = dict(name="a", source_lang="en", target_lang="de", entries="a\tb")
        id = client.post("/v2/glossaries", json=terms).json()["glossary_id"]
        for message, (fields, name) in REFUSED.items():
            response = send(name, **{x: y.format(id) for x, y in fields.items()})
            assert response.status_code in (400, 404) and message in response.json()["message"]
        assert client.post("/v2/document", data=PAIR).json()["message"].startswith("file: Field")
        assert send(content=b"x" * 300_000).status_code == 413
        assert send("a.pdf", filename="a.txt").status_code == 200
        error = send(source_lang="", formality="more", content=b"Das ist ein Haus, kein Hund.")
        document = error.json()
        path, key = f"/v2/document/{document['document_id']}", document["document_key"]
        state = client.post(path, json={"document_key": key}).json()
        assert state["status"] == "error" and "formality must be default" in state["error_message"]
        result = client.post(f"{path}/result", data={"document_key": key})
        assert result.status_code == 400 and "has no translation: form" in result.json()["message"]
        assert client.post(path, json={}).json()["message"].startswith("document_key: Field requ")
        assert client.post(path, json={"document_key": "x"}).status_code == 404
        assert client.post(path, json={"document_key": key}, headers={"Authorization": ""}).is_error
        client.app.state.service.is_stopping = True
        assert send().status_code == 503


def test_states(server, monkeypatch):
    monkeypatch.setattr(deepl_documents, "WAIT", 0)
    page = {"file": ("a.html", b"<p title=one>two</p>")}
    with TestClient(server, headers=KEY) as client:
        client.app.state.service.is_stopping = False
        document = client.post("/v2/document", data=PAIR, files=page).json()
        path, key = f"/v2/document/{document['document_id']}", document["document_key"]
        assert client.post(path, json={"document_key": key}).json()["status"] == "translating"
        early = client.post(f"{path}/result", json={"document_key": key})
        assert early.status_code in (200, 503)
        monkeypatch.setattr(deepl_documents, "WAIT", 30)
        assert client.post(path, json={"document_key": key}).json()["status"] == "done"
        result = client.post(f"{path}/result", json={"document_key": key})
        assert result.headers["X-Untranslated"] == "attributes"
        assert "a.de.html" in result.headers["content-disposition"]
        monkeypatch.setattr(client.app.state.service.kept, "_files", {})
        late = client.post(f"{path}/result", json={"document_key": key})
        assert (late.status_code, late.json()["message"]) == (404, "the document has expired")
