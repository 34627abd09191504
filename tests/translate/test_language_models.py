"""Language models as translators: the tokens of `transformers`, and all that translators do."""

import json

import numpy as np
import pytest
import torch
import transformers

from keras_transformer import export
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.pretrained import load_pretrained
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.translation_prompt import TranslationPrompt
from keras_transformer.translate.document_translation import translate_documents
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.ensemble import ensemble
from keras_transformer.translate.translator import Translator
from tests.backends import cases
from tests.text.chat_formats import write_folder

SIZES = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=1000, initializer_range=0.4,
)  # fmt: skip
ALPHA = dict(rope_type="dynamic", alpha=50.0, rope_theta=1e4, factor=1.0)
# A model like those of each prompt: its class, further sizes, and the tokens of its chats.
MODELS = {
    "tower": ("Llama", dict(), "smollm"),
    "tower-plus": ("Gemma2", dict(head_dim=4, sliding_window=32), "gemma"),
    "seed-x": ("Mistral", dict(sliding_window=None), "mistral"),
    "hy-mt": (
        "HunYuanDenseV1",
        dict(head_dim=4, rope_parameters=ALPHA),
        "qwen",
    ),
    "translate-gemma": ("Gemma3", dict(head_dim=4, sliding_window=32), "gemma"),
}
TEXTS = ["A dog sleeps on the couch.", "Yes!", ""]
PAIR = dict(source_language="en", target_language="de")


def checkpoint(folder, name):
    kind, options, chats = MODELS[name]
    tokenizer = write_folder(chats, folder)
    text = "Text" if kind == "Gemma3" else ""
    config = getattr(transformers, f"{kind}{text}Config")
    torch.manual_seed(1)
    ids = dict(pad_token_id=0, bos_token_id=1, eos_token_id=tokenizer.eos_token_id)
    sizes = SIZES | options | ids | dict(vocab_size=len(tokenizer))
    model = getattr(transformers, f"{kind}ForCausalLM")(config(**sizes)).eval()
    model.generation_config = transformers.GenerationConfig(**ids)
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="module", params=cases(MODELS, "hy-mt", "translate-gemma"))
def models(request, tmp_path_factory):
    """A checkpoint in `transformers`, and the translator that is imported from it."""
    theirs, ours = (tmp_path_factory.mktemp(x) for x in ("theirs", "ours"))
    model = checkpoint(theirs, request.param)
    load_pretrained(theirs, **PAIR, prompt=request.param).save(ours)
    return model, Translator.load(ours), ours


@pytest.mark.filterwarnings("ignore:.*no plain translations")
@pytest.mark.parametrize("beams", [1, 3])
def test_tokens_and_scores_are_those_of_transformers(models, beams):
    theirs, translator, _ = models
    options = dict(beam_size=beams, max_length=7)
    nbest_lists = translator.nbest(TEXTS, **options)
    for text, hypotheses in zip(TEXTS[:2], nbest_lists, strict=False):
        (ids,) = translator.tokenizer.encode_source([text])
        with torch.no_grad():
            found = theirs.generate(
                torch.tensor([ids]), max_new_tokens=7, num_beams=beams, do_sample=False,
                num_return_sequences=beams, eos_token_id=list(translator.tokenizer.ends),
                output_scores=True, return_dict_in_generate=True,
            )  # fmt: skip
        rows = found.sequences[:, len(ids) :].tolist()
        expected = translator.tokenizer.decode_target(rows)
        assert [x.text for x in hypotheses] == expected
        if beams > 1:
            scores = [x.score for x in hypotheses]
            np.testing.assert_allclose(scores, found.sequences_scores, atol=1e-4)
    assert nbest_lists[2][0].text == ""


def test_scores_are_log_probabilities(models):
    theirs, translator, _ = models
    ids = translator.tokenizer.encode_source(TEXTS[:2])
    targets = translator.tokenizer.encode_target(["Ja!", "Ein Hund"])
    scores = translator.score(TEXTS[:2], ["Ja!", "Ein Hund"])
    for prompt, target, score in zip(ids, targets, scores, strict=True):
        with torch.no_grad():
            logits = theirs(torch.tensor([prompt + target])).logits[0, len(prompt) - 1 : -1]
        logs = logits.log_softmax(-1)[torch.arange(len(target)), target]
        assert score == pytest.approx(float(logs.sum()), abs=1e-3)


@pytest.fixture(scope="module")
def tower(tmp_path_factory):
    theirs, ours = (tmp_path_factory.mktemp(x) for x in ("TowerInstruct-1", "ours"))
    checkpoint(theirs, "tower")
    return theirs, ours


@pytest.mark.once("searches of translators, which are tested on each backend")
@pytest.mark.filterwarnings("ignore:.*no plain translations")
def test_all_that_a_translator_does(tower):
    theirs, ours = tower
    load_pretrained(theirs, **PAIR, prompt="tower").save(ours)
    translator, short = Translator.load(ours), dict(max_length=6)
    alone = [translator.translate([x], **short)[0] for x in TEXTS]
    assert translator.translate(TEXTS, **short) == alone
    assert list(translator.translate_stream(TEXTS, chunk_size=2, **short)) == alone
    (forced,) = translator.translate(TEXTS[:1], prefixes=["Der Hund"], **short)
    assert forced.startswith("Der Hund")
    glossary = Glossary({"dog": ["Hund"]})
    assert "Hund" in translator.translate(TEXTS[:1], constraint=glossary, max_length=12)[0]
    for options in (dict(force_terms=False, constraint=glossary), dict(style="formal")):
        with pytest.raises(ValueError, match="force_terms|style"):
            translator.translate(TEXTS[:1], **options)
    assert len(translator.sample(TEXTS, seed=1, **short)) == 3
    both = ensemble([translator, translator])
    plain = translator.nbest(TEXTS[:1], beam_size=2, **short)[0]
    assert [x.text for x in both.nbest(TEXTS[:1], beam_size=2, **short)[0]] == [
        x.text for x in plain
    ]
    long = "dog " * 600
    with pytest.warns(UserWarning, match="texts must have at most 500 tokens"):
        assert isinstance(translator.translate([long], max_length=2)[0], str)
    with pytest.raises(ValueError, match="texts must have at most 500 tokens"):
        translator.translate([long], strict=True)


@pytest.mark.once("prompts: no tensor differs")
@pytest.mark.filterwarnings("ignore:.*no plain translations")
def test_documents_are_translated_with_the_sentences_before(tower, tmp_path):
    prompt = TranslationPrompt("{text}", with_context="{context} / {text}")
    writer = load_pretrained(tower[0], prompt="tower")
    CausalLM(writer.model, writer.tokenizer, writer.template, prompt=prompt).save(tmp_path)
    translator, short = Translator.load(tmp_path), dict(max_length=6)
    results = translate_documents(translator, ["One.", "", "Two.", "Three."], 1, **short)
    windows = ["One.", "", "Two.", "Two. <sep> Three."]
    assert results == translator.translate(windows, **short)
    ids = translator.tokenizer.encode_source(windows[2:])
    assert "Two. / Three." in writer.tokenizer.decode(ids)[1]


@pytest.mark.once("prompts: no tensor differs")
@pytest.mark.filterwarnings("ignore:.*no plain translations")
def test_terms_and_a_style_are_asked_for(tower, tmp_path, monkeypatch):
    prompt = TranslationPrompt("{text}", with_terms="{terms}; {text}", with_style="{style}: {text}")
    writer = load_pretrained(tower[0], prompt="tower")
    CausalLM(writer.model, writer.tokenizer, writer.template, prompt=prompt).save(tmp_path)
    translator, short = Translator.load(tmp_path), dict(max_length=6)
    glossary = Glossary({"dog": ["Hund"]})
    asked = translator.translate(["A dog, 7"], constraint=glossary, force_terms=False, **short)
    assert asked == translator.translate(["dog: Hund; A dog, 7"], **short)
    plain, formal = translator.translate(["formal: A dog"], **short), dict(style="formal")
    assert translator.translate(["A dog"], **formal, **short) == plain
    searched = []
    monkeypatch.setattr(
        translator._engine,
        "_search",
        lambda _, request, search: searched.extend(request.ids) or [[Hypothesis("Hund", 0.0)]],
    )
    translator.translate(["A dog x@y.org"], constraint=glossary, force_terms=False, protect=True)
    assert "dog: Hund; A dog" in writer.tokenizer.decode(searched)[0]


@pytest.mark.once("files and options: no tensor differs")
def test_a_folder_is_a_translator_and_a_language_model(tower):
    theirs, ours = tower
    writer = load_pretrained(theirs, **PAIR)  # the prompt by the name of the folder
    assert writer.prompt.template == TranslationPrompt.read("tower").template
    writer.save(ours)
    assert CausalLM.load(ours).prompt == writer.prompt
    translator = Translator.load(ours)
    assert (translator.source_language, translator.target_language) == ("en", "de")
    with pytest.raises(ValueError, match="a prompted model cannot be saved: save its language"):
        translator.save(ours)
    with pytest.raises(ValueError, match="engine must be keras or auto for a language model"):
        Translator.load(ours, engine="ctranslate2")
    for write in (export.ctranslate2, export.onnx, export.saved_model):
        with pytest.raises(ValueError, match="a language model is exported to hugging-face, "):
            write(ours, tower[1] / "out")
    config = json.loads((ours / "config.json").read_text())
    (ours / "config.json").write_text(json.dumps(config | {"prompt": {"template": "x"}}))
    with pytest.raises(ValueError, match='"prompt" in .*: the fields of template'):
        Translator.load(ours)


@pytest.mark.once("files and options: no tensor differs")
def test_prompts_that_do_not_fit_are_refused(tower, tmp_path):
    theirs, _ = tower
    with pytest.raises(ValueError, match="prompt must be one of .*, got 'babel'"):
        load_pretrained(theirs, prompt="babel")
    with pytest.raises(ValueError, match="source_language must be None: .* is a 'llama'"):
        load_pretrained(theirs.rename(tmp_path / "plain"), **PAIR)
    (tmp_path / "plain" / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match="prompt must be one with chat=false"):
        load_pretrained(tmp_path / "plain", prompt="tower")
