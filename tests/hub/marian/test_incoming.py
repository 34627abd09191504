"""Marian's models as ours: the same translations, scores of n-best lists and of words."""

import json
import shutil

import keras
import numpy as np
import pytest

from keras_transformer import Translator
from keras_transformer.hub.marian.binary import write_binary
from keras_transformer.hub.marian.incoming import is_marian
from keras_transformer.hub.marian.shortlists import write_shortlist
from keras_transformer.pretrained import load_pretrained
from keras_transformer.running.inputs import padded
from keras_transformer.text.lexical_shortlist import Shortlist
from tests.hub.marian.make import run
from tests.hub.marian.models import DATA, NAMES, SOURCES, changed, copied, facts, needs_marian

AT_ONCE = dict(tokens_per_batch=100_000)  # one batch: JAX compiles one search


@pytest.fixture(scope="module", params=NAMES)
def imported(request, tmp_path_factory):
    """A model, imported, saved and loaded, with its name."""
    folder = tmp_path_factory.mktemp(request.param)
    load_pretrained(DATA / f"{request.param}.npz", "en", "de").save(folder)
    return request.param, Translator.load(folder)


def test_greedy_translations_are_marians(imported):
    name, translator = imported
    greedy, _ = facts(name)
    assert translator.translate(SOURCES, beam_size=1, **AT_ONCE) == [x.strip() for x in greedy]
    assert len(set(greedy)) > 50


def test_nbest_lists_are_marians(imported):
    name, translator = imported
    _, lists = facts(name)
    for ours, theirs in zip(translator.nbest(SOURCES, **AT_ONCE), lists, strict=True):
        assert [x.text for x in ours] == [x["text"].strip() for x in theirs]
        np.testing.assert_allclose([x.score for x in ours], [x["score"] for x in theirs], atol=1e-4)


def test_scores_of_words_are_marians(imported):
    name, translator = imported
    _, lists = facts(name)
    best = [x[0] for x in lists[:20]]
    tokenizer, model = translator.tokenizer, translator.model
    sources, targets = SOURCES[:20], tokenizer.encode_target([row["text"] for row in best])
    begun = [[tokenizer.bos_id, *target[:-1]] for target in targets]
    rows = {"source_ids": tokenizer.encode_source(sources), "target_ids": begun}
    pad_id = model.config.pad_id
    arrays = {name: padded(x, 20, max(map(len, x)), pad_id) for name, x in rows.items()}
    logits = model(arrays)
    logs_BTV = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))
    count = 0
    for logs, target, row in zip(logs_BTV, targets, best, strict=True):
        if len(target) != len(row["words"]):  # Marian chose other pieces for the text
            continue
        words = logs[np.arange(len(target)), target]
        if np.abs(words - row["words"]).max() < 0.01 or name != "untied":  # words may be unknown
            np.testing.assert_allclose(words, row["words"], atol=1e-4)
            count += 1
    assert count > 5


def test_float16_is_read(tmp_path):
    path = copied("tied_all", tmp_path)
    with np.load(path) as file:
        halves = {x: y.astype("float16") for x, y in file.items() if y.dtype == "float32"}
    changed(path, **halves)
    translator = load_pretrained(path)
    (table,) = (x for x in translator.model.weights if x.path.endswith("tokens/embeddings"))
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(table)[:-1], halves["Wemb"].astype("float32")
    )


def test_a_folder_with_several_models_is_an_ensemble(tmp_path):
    copied("tied_all", tmp_path)
    copied("post_norm", tmp_path)
    options = "models: [tied_all.npz, post_norm.npz]\nvocabs: [joint.spm, joint.spm]\nnormalize: 1"
    (tmp_path / "decoder.yml").write_text(options)
    assert is_marian(tmp_path) and not is_marian(DATA / "joint.spm")
    both = load_pretrained(tmp_path)
    assert len(both.model.models) == 2
    assert both.model.weights == (0.5, 0.5) and not both.model.normalized
    with pytest.raises(ValueError, match="an ensemble cannot be saved"):
        both.save(tmp_path / "saved")


@needs_marian
@pytest.mark.once("three programs are compared")
@pytest.mark.parametrize("weights", [[], [0.7, 0.2]], ids=str)
def test_an_ensemble_translates_as_in_marian(weights, tmp_path):
    names = ["tied_all.npz", "post_norm.npz"]
    for name in names:
        copied(name.removesuffix(".npz"), tmp_path)
    options = {"models": names, "vocabs": ["joint.spm"] * 2, "normalize": 0.6, "beam-size": 4}
    options |= {"weights": weights} if weights else {}
    (tmp_path / "decoder.yml").write_text(json.dumps(options))
    both = load_pretrained(tmp_path)
    here = {"n-best": True, "mini-batch": 1, "cpu-threads": 1}
    lines = run(tmp_path, "decode", SOURCES, **options, **here)
    rows = [line.split(" ||| ") for line in lines.splitlines()]
    for number, best in enumerate(both.nbest(SOURCES)):
        theirs = [row for row in rows if row[0] == str(number)]
        assert [x.text for x in best] == [row[1].strip() for row in theirs]
        scores = [float(row[-1]) / sum(weights or [1, 1]) for row in theirs]
        np.testing.assert_allclose([x.score for x in best], scores, atol=1e-4)


def test_vocabularies_are_found_without_options_of_a_decoder(tmp_path):
    path = copied("tied_all", tmp_path)
    path.with_name("tied_all.npz.decoder.yml").unlink()
    translator = load_pretrained(tmp_path)
    assert translator.search["beam_size"] == 12 and translator.search["length_penalty"] == 0
    path.with_name("joint.spm").unlink()
    with pytest.raises(FileNotFoundError, match=r"tied_all.npz has no tied_all.npz.decoder.yml"):
        load_pretrained(path)


@pytest.mark.once("reads files")
@pytest.mark.parametrize("names", [["vocab"], ["srcvocab", "trgvocab"]], ids=str)
def test_a_folder_of_firefox(names, tmp_path):
    """Model, vocabularies and shortlist, without options of a decoder."""
    path = copied("ssru", tmp_path)
    with np.load(path) as file:
        write_binary(tmp_path / "model.ende.intgemm.alphas.bin", dict(file))
    for name in names:
        shutil.copy(tmp_path / "joint.spm", tmp_path / f"{name}.ende.spm")
    tokenizer = load_pretrained(path).tokenizer
    random = np.random.default_rng(0).integers(2, 240, (240, 4)).astype("int32")
    made = Shortlist(random, np.arange(9, dtype="int32"), "mine")
    for used in (*tmp_path.glob("ssru*"), tmp_path / "joint.spm"):
        used.unlink()
    write_shortlist(tmp_path / "lex.50.50.ende.s2t.bin", made, tokenizer)
    translator = load_pretrained(tmp_path, "en", "de")
    expected = dict(beam_size=1, length_penalty=1.0, max_length_factor=2, shortlist=True)
    assert {x: translator.search[x] for x in expected} == expected
    assert translator.shortlist.candidates.shape[0] == 241
    assert translator.translate(SOURCES[:9]) != translator.translate(SOURCES[:9], shortlist=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("type: s2s", "type in .*tied_all.npz is 's2s'"),
        ("transformer-decoder-autoreg: average-attention", "autoreg must be .* got 'average"),
        ("transformer-decoder-autoreg: rnn", "dec-cell in .* is 'gru'"),
        ("transformer-ffn-activation: tanh", "tied_all.npz .*activation must be one of"),
        ("transformer-postprocess: dar", "tied_all.npz .*transformer-postprocess='dar'"),
        ("transformer-tied-layers: [1, 3]", r"tied-layers must be .* got \[1, 3\]"),
        ("right-left: true", "right-left in .* is True"),
        ("lemma-dim-emb: 8", "lemma-dim-emb in .* is 8"),
        ("dim-vocabs: [240, 240, 240]", "dim-vocabs must be two sizes"),
        ("dim-vocabs: [239, 240]", "pieces in .*joint.spm must be 239, as in .*, got 240"),
        ("dim-emb: 36", "tied_all.npz does not fit its options: .* shape"),
        ("enc-depth: 2", "tied_all.npz lacks the weights encoder_l2"),
        ("dec-depth: 1", "tied_all.npz has weights that the model lacks: decoder_l2"),
        ("a: [", "special:model.yml in .*tied_all.npz is not valid YAML"),
    ],
)
@pytest.mark.once("reads options")
def test_what_cannot_be_carried_is_refused(options, message, tmp_path):
    path = copied("tied_all", tmp_path)
    changed(path, options)
    with pytest.raises(ValueError, match=message):
        load_pretrained(path)


@pytest.mark.once("reads options")
def test_a_layer_that_aligns_is_left_out_with_a_warning():
    message = "transformer-guided-alignment-layer of .*swish.npz, 2, is left out: words are aligned"
    with pytest.warns(UserWarning, match=message):
        load_pretrained(DATA / "swish.npz")


@pytest.mark.once("reads options")
def test_options_of_the_decoder_are_checked(tmp_path):
    path = copied("tied_all", tmp_path)
    options = path.with_name("tied_all.npz.decoder.yml")
    text = options.read_text()
    for change, message in (
        ("word-penalty: 0.5", "word-penalty in .*decoder.yml is 0.5"),
        ("normalize: -1", "decoder.yml does not fit: normalize must be at least 0"),
        ("vocabs: [joint.spm]", "vocabs in .*decoder.yml must be one of the source and one"),
    ):
        options.write_text(f"{text}\n{change}")
        with pytest.raises(ValueError, match=message):
            load_pretrained(path)
    options.write_text(f"{text}\nvocabs: [joint.spm, missing.spm]")
    with pytest.raises(FileNotFoundError, match=r"there is no vocabulary .*missing.spm"):
        load_pretrained(path)


@pytest.mark.once("reads options")
def test_other_layers_are_refused(tmp_path):
    path = copied("pre_norm", tmp_path)
    changed(path, **{"TransformerBatchEncoder->encoder->x": np.zeros(1, "float32")})
    with pytest.raises(ValueError, match="pre_norm.npz was trained with TRANSFORMER_FLAVOR"):
        load_pretrained(path)
    changed(path, "version: v1.10.2 1234")
    with pytest.raises(ValueError, match="version must be 1.11 or later with"):
        load_pretrained(path)


@pytest.mark.once("reads files")
def test_other_recurrences_are_refused_by_name(tmp_path):
    for option, value in [("dec-cell", "gru"), ("transformer-rnn-projection", True)]:
        changed(path := copied("ssru", tmp_path), f"{option}: {value}")
        with pytest.raises(ValueError, match=rf"{option} in .*ssru.npz is '?{value}"):
            load_pretrained(path)


@pytest.mark.once("reads files")
def test_binary_files_of_other_programs_are_ignored_or_refused(tmp_path):
    path = copied("tied_all", tmp_path)
    for name, content in (("pytorch_model.bin", b"PK\3\4"), ("model.bin", b"\6\0\0\0\x0f")):
        (tmp_path / name).write_bytes(content * 99)
    path.with_name("tied_all.npz.decoder.yml").unlink()
    assert load_pretrained(tmp_path).translate(SOURCES[:1], beam_size=1)
    path.unlink()
    assert not is_marian(tmp_path)
    (tmp_path / "other.bin").write_bytes(b"\1" + bytes(7) + b"\xff" * 99)
    with pytest.raises(ValueError, match="other.bin is not a whole binary model of Marian"):
        load_pretrained(tmp_path)


@pytest.mark.once("reads files")
def test_a_binary_file_is_read_as_the_npz(tmp_path):
    path = copied("tied_all", tmp_path)
    with np.load(path) as file:
        arrays = dict(file)
    write_binary(path.with_suffix(".bin"), arrays)
    (tmp_path / "tied_all.bin.decoder.yml").write_text("vocabs: [joint.spm, joint.spm]")
    path.unlink()
    translator = load_pretrained(tmp_path / "tied_all.bin")
    assert translator.search["length_penalty"] == 0
    expected = load_pretrained(DATA / "tied_all.npz")
    for ours, theirs in zip(translator.model.weights, expected.model.weights, strict=True):
        np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (ours, theirs)))
