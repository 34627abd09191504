"""From the folder of a checkpoint to translations: the same as with `transformers`."""

import itertools
import json
import sys

import keras
import pytest
import torch
import transformers
from typer.testing import CliRunner

from keras_transformer import Translator, cli, load_pretrained
from keras_transformer.backend import precision as precision_module
from keras_transformer.backend import usable_precision
from keras_transformer.pretrained import FILES
from tests.backends import cases

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"]
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."]
TEXTS = [*ENGLISH, ">>fra<<A dog.", "sleeps 犬", ""]


@pytest.fixture(scope="module")
def folder(pretrained_folder, tmp_path_factory):
    """A random OPUS-MT model, whole, and what `transformers` translates with it."""
    folder = tmp_path_factory.mktemp("opus")
    pretrained_folder("marian", folder, ENGLISH * 20, GERMAN * 20)
    return folder


def expected(folder, beam_size, length_penalty):
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    found = []
    for text in TEXTS[:-1]:
        inputs = tokenizer([text], return_tensors="pt")
        room = inputs["input_ids"].shape[1] + 10
        ids = model.generate(
            **inputs, num_beams=beam_size, do_sample=False,
            length_penalty=length_penalty, max_length=room + 1,
            bad_words_ids=[[tokenizer.pad_token_id]],
        )  # fmt: skip
        found += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return [*found, ""]


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "beam_size,length_penalty", cases([(1, 0.0), (4, 0.0), (4, 1.5)], (4, 1.5))
)
def test_translations(folder, beam_size, length_penalty):
    options = dict(beam_size=beam_size, length_penalty=length_penalty, scoring="transformers")
    translator = load_pretrained(folder)
    found = translator.translate(TEXTS, max_extra_length=10, **options)
    assert found == expected(folder, beam_size, length_penalty)
    assert list(translator.translate_stream(TEXTS, max_extra_length=10, **options)) == found
    best = translator.nbest(TEXTS, max_extra_length=10, **options)
    assert [hypotheses[0].text for hypotheses in best] == found
    assert len(set(found)) > 2
    assert translator.source_language == "en"  # "de" is none of its tags


@pytest.mark.once("files and texts: no tensor differs")
def test_imported_by_the_command_line(folder, tmp_path):
    out = tmp_path / "imported"
    result = CliRunner().invoke(cli.app, ["import", str(folder), str(out)])
    assert result.exit_code == 0, result.output
    assert Translator.load(out).translate(TEXTS) == load_pretrained(folder).translate(TEXTS)
    result = CliRunner().invoke(cli.app, ["import", str(folder), str(out)])
    assert result.exit_code == 2 and "config.json exists: choose another" in result.output
    result = CliRunner().invoke(cli.app, ["import", str(folder), str(out), "--overwrite"])
    assert result.exit_code == 0, result.output


FAMILIES = {  # languages of the tests; what `generate` is told of the target
    "m2m_100": ("en", "de", "fr"),
    "nllb": ("eng_Latn", "deu_Latn", "fra_Latn"),
    "mbart": ("en_XX", "de_DE", "fr_XX"),
    "t5": ("en", "de", "fr"),
    "umt5": ("en", "de", "fr"),
    "madlad": (None, "de", "fr"),
}


@pytest.fixture(
    scope="module",
    # Elsewhere each search is a compilation; tests/hub has one of each family.
    params=cases(FAMILIES, "nllb"),
)
def family(request, pretrained_folder, tmp_path_factory):
    """A random model of a family of many languages, whole, as the hub has them."""
    folder = tmp_path_factory.mktemp(request.param)
    model = pretrained_folder(request.param, folder, [*ENGLISH, *GERMAN] * 20)
    return request.param, folder, model


def generated(model, tokenizer, texts, beam_size, prefix=""):
    """Return what `generate` of `transformers` makes of our tokenizer's ids, text by text."""
    first = tokenizer.target_frame.before
    options = dict(forced_bos_token_id=first[0]) if first else {}
    if prefix:
        begun = tokenizer.encode_target([prefix])[0][: -len(tokenizer.target_frame.after)]
        options = dict(decoder_input_ids=torch.tensor([[tokenizer.bos_id, *begun]]))
    # These no translation of ours has.
    options["bad_words_ids"] = [
        [i] for i in {tokenizer.pad_id, tokenizer.bos_id} - {tokenizer.eos_id}
    ]
    found = []
    for ids in tokenizer.encode_source(texts):
        room = min(len(ids) + 10, 63)
        output = model.generate(
            torch.tensor([ids]), num_beams=beam_size, do_sample=False,
            length_penalty=0.0 if prefix else 1.0,  # there, a prefix does not count as length
            max_length=room + 1, **options,
        )  # fmt: skip
        found += tokenizer.decode_target(output[:, 1:].tolist())
    return found


@pytest.mark.once("the search is compiled under each in tests/decoding and tests/running")
def test_many_languages(family, tmp_path):
    kind, folder, model = family
    beam_size = 1 if kind == "m2m_100" else 4
    source, *targets = FAMILIES[kind]
    translator = load_pretrained(folder, source, targets[0])
    options = dict(beam_size=beam_size, length_penalty=1.0, scoring="transformers")
    for target in targets:
        chosen = translator.between(source, target)
        found = chosen.translate([*ENGLISH, ""], max_extra_length=10, **options)
        assert found == [*generated(model, chosen.tokenizer, ENGLISH, beam_size), ""]
        assert any(found)
    prefix = dict(length_penalty=0.0, prefixes=["Der"] * 3)
    begun = chosen.translate(ENGLISH, max_extra_length=10, **options | prefix)
    assert begun == generated(model, chosen.tokenizer, ENGLISH, beam_size, "Der")
    translator.save(tmp_path / "saved")
    again = Translator.load(tmp_path / "saved", target_language=targets[-1])
    assert again.translate([*ENGLISH, ""], max_extra_length=10, **options) == found
    assert translator.between(source, targets[1]).score(ENGLISH, GERMAN) != pytest.approx(
        translator.score(ENGLISH, GERMAN)
    )


@pytest.mark.once("tests/hub searches an mBART under each")
def test_mbart25(pretrained_folder, tmp_path):
    """Its decoder begins with the target's language, the one that its config names."""
    model = pretrained_folder("mbart25", tmp_path, [*ENGLISH, *GERMAN] * 20)
    translator = load_pretrained(tmp_path, "en_XX")
    assert translator.target_language == "de_DE"
    options = dict(beam_size=4, length_penalty=1.0, scoring="transformers")
    found = translator.translate(ENGLISH, max_extra_length=10, **options)
    assert found == generated(model, translator.tokenizer, ENGLISH, 4)
    assert any(found)
    translator.save(tmp_path / "saved")
    again = Translator.load(tmp_path / "saved")
    assert again.translate(ENGLISH, max_extra_length=10, **options) == found


@pytest.mark.once("tests/hub searches a T5Gemma under each")
def test_t5gemma(pretrained_folder, tmp_path):
    """Only its source begins with <bos>; greedy, beams and scores are those of `transformers`."""
    model = pretrained_folder("t5gemma", tmp_path, [*ENGLISH, *GERMAN] * 20)
    translator = load_pretrained(tmp_path)
    texts, tokenizer = [*ENGLISH, "½ 犬 </s>"], transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert translator.tokenizer.encode_source(texts[:-1]) == tokenizer(texts[:-1])["input_ids"]
    for beam_size in (1, 4):
        options = dict(beam_size=beam_size, length_penalty=1.0, scoring="transformers")
        found = translator.translate([*texts, ""], max_extra_length=10, **options)
        assert found == [*generated(model, translator.tokenizer, texts, beam_size), ""]
        assert len(set(found)) > 2
    scores = []
    for source, target in zip(ENGLISH, GERMAN, strict=True):
        (source_ids,), (labels,) = (
            translator.tokenizer.encode_source([source]),
            translator.tokenizer.encode_target([target]),
        )
        first = torch.tensor([[1, *labels[:-1]]])
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([source_ids]), decoder_input_ids=first).logits
        likelihoods = logits.log_softmax(-1)[0].gather(1, torch.tensor(labels)[:, None])
        scores.append(float(likelihoods.sum()))
    assert translator.score(ENGLISH, GERMAN) == pytest.approx(scores, abs=1e-3)
    translator.save(tmp_path / "saved")
    again = Translator.load(tmp_path / "saved")
    assert again.translate([*texts, ""], max_extra_length=10, **options) == found


@pytest.mark.once("tests/hub searches a BART under each")
def test_texts_without_a_language(pretrained_folder, tmp_path):
    """BART: `transformers` counts the first token of the decoder as well."""
    theirs = pretrained_folder("bart", tmp_path, [*ENGLISH, *GERMAN] * 20)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    translator, room, expected = load_pretrained(tmp_path), 12, []
    texts = [*ENGLISH, "½ 犬"]
    for text in texts:
        ids = tokenizer([text], return_tensors="pt").input_ids
        found = theirs.generate(
            ids, num_beams=4, length_penalty=2.0, min_length=9, max_length=ids.shape[1] + room + 1,
            bad_words_ids=[[1]],
        )  # fmt: skip
        expected += tokenizer.batch_decode(found, skip_special_tokens=True)
    options = dict(beam_size=4, length_penalty=2.0, min_length=8, max_extra_length=room)
    found = translator.translate([*texts, ""], **options)
    assert found == [*(text.strip() for text in expected), ""]
    assert len(set(found)) > 2
    translator.save(tmp_path / "saved")
    again = Translator.load(tmp_path / "saved")
    assert again.score(ENGLISH, GERMAN) == translator.score(ENGLISH, GERMAN)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="read alike by all backends")
def test_a_tokenizer_has_the_first_of_several_ends(pretrained_folder, tmp_path):
    pretrained_folder("t5", tmp_path, ENGLISH * 20)
    (tmp_path / "generation_config.json").unlink()
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": [1, 9]}))
    load_pretrained(tmp_path, "en", "de").save(tmp_path / "saved")
    again = Translator.load(tmp_path / "saved")
    assert (again.tokenizer.eos_id, again.model.config.eos_ids) == (1, (1, 9))


@pytest.mark.once("files and texts: no tensor differs")
def test_unknown_languages(family):
    kind, folder, _ = family
    _, target, _ = FAMILIES[kind]
    with pytest.raises(ValueError, match=f"target_language must be .*{target}.*got 'dee'"):
        load_pretrained(folder, target_language="dee")


@pytest.mark.once("the scripts run under each in tests/training")
def test_training_goes_on_from_it(folder):
    translator = load_pretrained(folder)
    source = translator.tokenizer.encode_source(ENGLISH)
    target = translator.tokenizer.encode_target(GERMAN)
    before = translator.score(ENGLISH, GERMAN)
    rows = max(map(len, source)), max(map(len, target))
    pad = translator.tokenizer.pad_id
    source_ids, labels = (
        keras.utils.pad_sequences(x, n, padding="post", value=pad)
        for x, n in zip((source, target), rows, strict=True)
    )
    target_ids = labels * 0 + translator.tokenizer.bos_id
    target_ids[:, 1:] = labels[:, :-1]
    from keras_transformer import LabelSmoothedCrossentropy, adam

    translator.model.compile(adam(1e-2), LabelSmoothedCrossentropy(pad_id=pad))
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    translator.model.fit(inputs, labels, epochs=10, verbose=0)
    assert all(a > b for a, b in zip(translator.score(ENGLISH, GERMAN), before, strict=True))


@pytest.mark.once("precisions are computed under each in tests/layers")
@pytest.mark.parametrize(
    "precision,mode",
    cases(
        [*itertools.product(["bfloat16", "int8"], ["fast", "strict"])],
        ("bfloat16", "strict"),
        ("int8", "fast"),
    ),
)
@pytest.mark.filterwarnings("ignore:precision is float32")
def test_precisions(folder, precision, mode, monkeypatch):
    monkeypatch.setenv(precision_module.VARIABLE, mode)
    monkeypatch.setattr(precision_module, "is_fast", lambda dtype: False)
    whole, small = load_pretrained(folder), load_pretrained(folder, precision=precision)
    kinds = {keras.backend.standardize_dtype(weight.dtype) for weight in small.model.weights}
    used = usable_precision(precision) if mode == "strict" else "float32"
    assert used in kinds
    assert small.model.saved_quantization == (
        "int8" if (precision, mode) == ("int8", "fast") else None
    )
    expected = whole.score(ENGLISH, GERMAN)
    assert small.score(ENGLISH, GERMAN) == pytest.approx(expected, rel=0.1)


@pytest.mark.once("files and texts: no tensor differs")
def test_a_name_of_the_hub(folder, monkeypatch):
    asked = []

    def download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    translator = load_pretrained("somebody/opus-mt-en-de")
    assert translator.translate(TEXTS) == load_pretrained(folder).translate(TEXTS)
    # First what the model is, then the rest of it; no pickle where there are safetensors.
    assert [patterns for _, patterns in asked] == [["config.json", "hparams.yaml"], FILES]
    assert {name for name, _ in asked} == {"somebody/opus-mt-en-de"}


@pytest.mark.once("files and texts: no tensor differs")
def test_bad_input(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="there is no folder nobody/nothing; .* not in the"):
        load_pretrained("nobody/nothing")
    with pytest.raises(FileNotFoundError, match="no folder no/such/name and no model of that name"):
        load_pretrained("no/such/name")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match='pip install "huggingface_hub>='):
        load_pretrained("nobody/nothing")
    with pytest.raises(ValueError, match="scoring must be one of .*, got 'mean'"):
        load_pretrained(folder).translate(["a"], scoring="mean")
    with pytest.raises(ValueError, match="precision must be one of .*, got 'half'"):
        load_pretrained(folder, precision="half")
    with pytest.raises(ValueError, match="target_language must be .*deu, fra, got 'de'"):
        load_pretrained(folder, target_language="de")
    config = transformers.T5Config(
        vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no tokenizer: there is neither"):
        load_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(dict(model_type="clip")))
    with pytest.raises(ValueError, match=r"must be one of \[.*'m2m_100', 'marian', .*got 'clip'"):
        load_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(dict(model_type="gpt2")))
    with pytest.raises(ValueError, match="source_language must be None: .* is a 'gpt2', got 'en'"):
        load_pretrained(tmp_path, "en")


@pytest.mark.once("files and texts: no tensor differs")
def test_a_vocabulary_of_another_model(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    vocabulary = json.loads((folder / "vocab.json").read_text())
    vocabulary["more"] = len(vocabulary)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(ValueError, match="the tokenizer does not match the model: its source_voc"):
        load_pretrained(tmp_path)
