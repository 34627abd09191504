"""Texts in, texts out: what must hold of any model, shown on a small one of random weights."""

import contextlib
import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.config import TransformerConfig
from keras_transformer.inference import folder as saved_module
from keras_transformer.inference.runner import score_function, until_end
from keras_transformer.inference.searching import translation_function
from keras_transformer.inference.sentences import padded
from keras_transformer.inference.translator import Translator
from keras_transformer.models import Transformer
from keras_transformer.search import Search
from keras_transformer.text import SentencePieceTokenizer
from tests.backends import NEXT

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEXTS = ["one two", "three", "eight nine six one", "four five six seven", "ten one ten", "two"]
TEXTS += ["nine nine nine two", "six"]
MAX_LENGTH = 40  # no multiple of 16, to which lengths are rounded up where shapes are compiled
SHORT = dict(max_extra_length=6)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tokenizer():
    choose = random.Random(0).choices
    texts = [" ".join(choose(WORDS, k=1 + i % 6)) for i in range(200)]
    return SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)


def make(tokenizer, seed=5):
    """A translator of random weights so large that its choices are clear and depend on all."""
    config = TransformerConfig(
        tokenizer.source_vocab_size,
        tokenizer.target_vocab_size,
        d_model=16,
        d_ff=16,
        num_encoder_layers=1,
        num_decoder_layers=1,
        num_heads=2,
        dropout=0.3,
        max_length=MAX_LENGTH,
        tie_output=False,
    )
    model = Transformer(config)
    model.set_weights(random_weights(model, seed))
    return Translator(model, tokenizer, "en", "xx")


def random_weights(model, seed):
    rng = np.random.default_rng(seed)
    config, weights = model.config, []
    for value in model.get_weights():
        if value.ndim > 1:
            is_embedding = value.shape[0] == config.source_vocab_size
            value = rng.normal(size=value.shape) * (0.1 if is_embedding else 0.5)
            if value.shape[1] == config.target_vocab_size:
                value[:, config.eos_id] *= 2  # or hardly a translation would end by itself
        weights.append(value)
    return weights


@pytest.fixture(scope="module")
def translator(tokenizer):
    return make(tokenizer)


def test_any_of_several_ends_a_translation(translator, tokenizer, monkeypatch):
    model, decode, rows = translator.model, tokenizer.decode_target, []

    def record(ids):
        rows.extend(ids)
        return decode(ids)

    monkeypatch.setattr(tokenizer, "decode_target", record)
    translator.translate(TEXTS, beam_size=1, **SHORT)
    end = rows[0][2]
    expected = decode([until_end(row, [end]) for row in rows])
    other = Transformer(dataclasses.replace(model.config, eos_id=(end, model.config.eos_id)))
    other.set_weights(model.get_weights())
    found = Translator(other, tokenizer).translate(TEXTS, beam_size=1, **SHORT)
    assert sorted(found) == sorted(expected) != sorted(decode(rows))
    other.config = dataclasses.replace(model.config, eos_id=(end, end + 1))
    with pytest.raises(ValueError, match=r"its eos_id is 3, the model's \(\d+, \d+\)"):
        Translator(other, tokenizer)


@pytest.fixture(scope="module")
def alone(translator):
    """The translation of each text in a batch of its own."""
    return {text: translator.translate([text], **SHORT)[0] for text in TEXTS}


def test_the_toy_gives_different_translations(alone):
    assert len(set(alone.values())) > len(TEXTS) / 2


@settings(max_examples=15, deadline=None)
@given(
    texts=st.lists(st.sampled_from([*TEXTS, "", "  "]), max_size=8),
    tokens_per_batch=st.sampled_from([1, 32, 64, 4096]),
)
def test_a_text_translates_the_same_in_any_company(translator, alone, texts, tokens_per_batch):
    found = translator.translate(texts, tokens_per_batch=tokens_per_batch, **SHORT)
    assert found == [alone.get(text, "") for text in texts]


@pytest.mark.once("texts, files and options: no tensor differs")
def test_empty_texts_have_empty_translations(translator, alone):
    blank = ["", " ", "\t \n", "\u00a0\u3000", "\u200b"]
    assert translator.translate([*blank, TEXTS[0]], **SHORT) == [""] * 5 + [alone[TEXTS[0]]]
    assert translator.sample(blank, **SHORT) == [""] * 5
    assert [[h.text for h in found] for found in translator.nbest(["", " "], **SHORT)] == [[""]] * 2
    assert translator.translate([]) == translator.nbest([]) == translator.score([], []) == []


@pytest.mark.once("texts, files and options: no tensor differs")
def test_a_text_too_long_is_cut_with_a_warning_or_refused(translator, alone):
    fits = " ".join(["six"] * (MAX_LENGTH - 1))
    assert len(translator.tokenizer.encode_source([fits])[0]) == MAX_LENGTH
    whole = translator.translate([fits], strict=True, **SHORT)
    for tail in (" one two", " ten" * 50):
        with pytest.warns(UserWarning, match=f"texts must have at most {MAX_LENGTH} tokens"):
            assert translator.translate([TEXTS[0], fits + tail], **SHORT)[1:] == whole
        with pytest.raises(ValueError, match=f"{MAX_LENGTH} tokens .*'six six"):
            translator.translate([TEXTS[0], fits + tail], strict=True, **SHORT)
    with pytest.raises(ValueError, match="targets must have at most"):
        translator.score(["six"], [fits + " six"])


@pytest.mark.once("texts, files and options: no tensor differs")
@pytest.mark.parametrize("wrong", ["one two", b"one", [None], ["one", b"two"], [1]])
def test_refuses_what_is_no_list_of_strings(translator, wrong):
    for call in (translator.translate, translator.nbest, translator.sample):
        with pytest.raises(ValueError, match="texts must"):
            call(wrong)
    with pytest.raises(ValueError, match="sources must"):
        translator.score(wrong, ["one"])
    with pytest.raises(ValueError, match="targets must"):
        translator.score(["one"], wrong)
    with pytest.raises(ValueError, match="prefixes must"):
        translator.translate(["one"], prefixes=wrong)


def test_a_beam_of_one_takes_the_most_probable_token_at_each_step(translator):
    config, tokenizer = translator.model.config, translator.tokenizer
    source = padded(tokenizer.encode_source(TEXTS), len(TEXTS), 16, 0)
    ids = np.full((len(TEXTS), 16), config.pad_id)
    ids[:, 0] = config.bos_id
    for i in range(1, 5):  # the whole target anew at each step: no cache
        logits = ops.convert_to_numpy(
            translator.model({"source_ids": source, "target_ids": ids}, training=False)
        )[:, i - 1].copy()
        logits[:, [config.pad_id, config.bos_id]] = -np.inf
        ids[:, i] = np.where(ids[:, i - 1] == config.eos_id, config.eos_id, logits.argmax(-1))
    expected = tokenizer.decode_target(ids[:, 1:].tolist())
    found = translator.translate(TEXTS, beam_size=1, **SHORT)
    for whole, start in zip(found, expected, strict=True):
        assert whole.startswith(start)
    assert any(expected)


def test_nbest_is_sorted_and_begins_with_the_translation(translator, alone):
    found = translator.nbest(TEXTS, **SHORT)
    assert [len(hypotheses) for hypotheses in found] == [4] * len(TEXTS)
    for text, hypotheses in zip(TEXTS, found, strict=True):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True) and scores[0] < 0
        assert hypotheses[0].text == alone[text]
    assert translator.nbest(TEXTS, num_hypotheses=2, **SHORT) == [h[:2] for h in found]


def test_score_agrees_with_the_search(translator):
    search = compiled(
        translation_function(Search(4, 0.0, **SHORT), translator.model), translator.model
    )
    tokenizer = translator.tokenizer
    source = padded(tokenizer.encode_source(TEXTS), len(TEXTS), 16, 0)
    source = ops.convert_to_tensor(source)
    limits = ops.full((len(TEXTS),), 14, dtype="int32")
    ids, scores = search(source, limits)
    totals = score_function(translator.model)(source, ids[:, 0])
    ids, scores = ops.convert_to_numpy(ids), ops.convert_to_numpy(scores)
    np.testing.assert_allclose(ops.convert_to_numpy(totals), scores[:, 0], atol=1e-3)
    ids, scores = ids.reshape(-1, ids.shape[-1]), scores.reshape(-1)
    hypotheses = tokenizer.decode_target(ids)
    sources = [text for text in TEXTS for _ in range(4)]
    encoded = tokenizer.encode_target(hypotheses)
    same = 0
    for row, found in enumerate(translator.score(sources, hypotheses)):
        # Other pieces may spell the same text: then it is another sequence.
        if encoded[row] == ids[row][: len(encoded[row])].tolist():
            same += 1
            assert found == pytest.approx(scores[row], abs=1e-3)
    assert same >= 1


def test_score_is_the_sum_of_log_probabilities(translator):
    targets = ["two three", "", "one", "ten nine", "two", "five", "six six", "one one one"]
    config, tokenizer = translator.model.config, translator.tokenizer
    found = translator.score(TEXTS, targets)
    labels = padded(tokenizer.encode_target(targets), len(TEXTS), 16, 0)
    ids = {
        "source_ids": padded(tokenizer.encode_source(TEXTS), len(TEXTS), 16, 0),
        "target_ids": np.insert(labels[:, :-1], 0, config.bos_id, axis=1),
    }
    logits = ops.convert_to_numpy(translator.model(ids, training=False)).astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for row, score in enumerate(found):
        tokens = [t for t in range(16) if labels[row, t] != config.pad_id]
        assert score == pytest.approx(
            sum(log_probs[row, t, labels[row, t]] for t in tokens), abs=1e-3
        )
    assert translator.score(TEXTS, targets, tokens_per_batch=20) == pytest.approx(found, abs=1e-4)
    with pytest.raises(ValueError, match="the same length, got 2 and 1"):
        translator.score(["one", "two"], ["one"])


@pytest.mark.parametrize("tokens_per_batch", [16, 4096])
def test_prefixes_are_forced(translator, alone, tokens_per_batch):
    prefixes = ["one", "", "seven ei", "", "two two two two two two", "", "", "ten nine"]
    options = dict(tokens_per_batch=tokens_per_batch, **SHORT)
    found = translator.translate(TEXTS, prefixes=prefixes, **options)
    for text, prefix, translation in zip(TEXTS, prefixes, found, strict=True):
        assert translation.startswith(prefix)
        if not prefix:
            assert translation == alone[text]
    assert translator.translate(TEXTS, prefixes=[""] * len(TEXTS), **options) == list(
        alone.values()
    )


@pytest.mark.once("texts, files and options: no tensor differs")
def test_refuses_prefixes_that_do_not_fit(translator):
    with pytest.raises(ValueError, match="one entry per text, got 1 for 2"):
        translator.translate(["one", "two"], prefixes=["one"])
    with pytest.raises(ValueError, match=f"prefixes must have at most {MAX_LENGTH - 2} tokens"):
        translator.translate(["one"], prefixes=["one " * 50])


@pytest.mark.once("tests/decoding has this of the search, under each")
@pytest.mark.parametrize("beam_size", [1, 4])
def test_lengths_stay_in_their_bounds(translator, monkeypatch, beam_size):
    found, decode = [], translator.tokenizer.decode_target
    spy = lambda ids: found.extend(ids) or decode(ids)  # noqa: E731
    monkeypatch.setattr(translator.tokenizer, "decode_target", spy)
    shortest, longest = 4, len(translator.tokenizer.encode_source(["six"])[0]) + 6
    for text in ("six", "two"):
        translator.nbest([text], beam_size=beam_size, min_length=shortest, **SHORT)
    lengths = [len(row) for row in found]  # tokens before the end
    assert len(lengths) == 2 * beam_size
    assert all(shortest <= length < longest for length in lengths)
    del found[:]
    translator.translate(["six"], beam_size=beam_size, min_length=30, **SHORT)
    assert len(found[0]) == longest - 1


def test_a_sample_depends_on_seed_place_and_text_alone(translator):
    found = translator.sample(TEXTS, seed=7, **SHORT)
    assert translator.sample(TEXTS, seed=7, **SHORT) == found
    assert translator.sample(TEXTS, seed=7, tokens_per_batch=32, **SHORT) == found
    assert translator.sample(TEXTS[:1], seed=7, **SHORT) == found[:1]
    others = ["nine nine nine two ten", *TEXTS[1:]]
    assert translator.sample(others, seed=7, **SHORT)[1:] == found[1:]
    assert translator.sample(TEXTS, seed=8, **SHORT) != found
    assert len(set(translator.sample(TEXTS[:1] * 8, seed=7, **SHORT))) > 1


@pytest.mark.once("tests/decoding has this of the search, under each")
@pytest.mark.parametrize("options", [{"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-6}])
def test_sampling_of_the_most_probable_is_greedy(translator, options):
    greedy = translator.translate(TEXTS, beam_size=1, **SHORT)
    assert translator.sample(TEXTS, **options, **SHORT) == greedy


@pytest.mark.once("texts, files and options: no tensor differs")
def test_streams_what_translate_translates(translator, alone):
    lines = (text + "\n" for text in [*TEXTS, ""])
    found = list(translator.translate_stream(lines, chunk_size=2, **SHORT))
    assert found == [*alone.values(), ""]
    assert list(translator.translate_stream([])) == []


@pytest.mark.once("texts, files and options: no tensor differs")
def test_a_stream_reads_no_further_than_it_must(translator, alone):
    read = []
    endless = (read.append(text) or text for text in itertools.cycle(TEXTS))
    stream = translator.translate_stream(endless, chunk_size=2, **SHORT)
    assert read == []
    assert [next(stream) for _ in range(3)] == [alone[text] for text in TEXTS[:3]]
    assert len(read) == 4


@pytest.mark.once("texts, files and options: no tensor differs")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size must be a whole number of at least 1, got 0"),
        ({"beam_size": 2.5}, r"beam_size must be a whole number of at least 1, got 2\.5"),
        ({"length_penalty": -1}, "length_penalty must be at least 0, got -1"),
        ({"length_penalty": float("nan")}, "length_penalty must be at least 0, got nan"),
        ({"max_extra_length": 0}, "max_extra_length must be a whole number of at least 1"),
        ({"min_length": -1}, "min_length must be a whole number of at least 0"),
        ({"tokens_per_batch": 0}, "tokens_per_batch must be a whole number of at least 1"),
    ],
)
def test_refuses_options_out_of_range(translator, options, message):
    for call in (translator.translate, translator.nbest):
        with pytest.raises(ValueError, match=message):
            call(["one"], **options)


@pytest.mark.once("texts, files and options: no tensor differs")
def test_refuses_options_of_one_method_out_of_range(translator):
    for options, message in [
        ({"temperature": 0}, "temperature must be above 0, got 0"),
        ({"temperature": None}, "temperature must be above 0, got None"),
        ({"top_k": -1}, "top_k must be a whole number of at least 0"),
        ({"top_p": 0}, r"top_p must be in \(0, 1\], got 0"),
        ({"top_p": 1.5}, r"top_p must be in \(0, 1\]"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            translator.sample(["one"], **options)
    with pytest.raises(ValueError, match="num_hypotheses must be at most beam_size=4, got 5"):
        translator.nbest(["one"], num_hypotheses=5)
    with pytest.raises(ValueError, match="num_hypotheses must be a whole number of at least 1"):
        translator.nbest(["one"], num_hypotheses=0)
    # The stream complains when it is made, not when it is first read.
    with pytest.raises(ValueError, match="chunk_size must be a whole number"):
        translator.translate_stream(["one"], chunk_size=0)
    with pytest.raises(ValueError, match="beam_size must be a whole number"):
        translator.translate_stream(["one"], beam_size=0)


def test_new_weights_are_used_at_once(tokenizer, alone):
    translator = make(tokenizer, seed=4)
    translator.translate(TEXTS, **SHORT)
    translator.score(TEXTS, TEXTS)
    translator.model.set_weights(random_weights(translator.model, 5))
    assert translator.translate(TEXTS, **SHORT) == list(alone.values())


def test_says_that_weights_are_not_finite(tokenizer):
    translator = make(tokenizer)
    translator.model.set_weights([w * np.nan for w in translator.model.get_weights()])
    for beam_size in (1, 2):
        with pytest.raises(ValueError, match="model must give finite logits"):
            translator.translate(["one"], beam_size=beam_size, **SHORT)


@pytest.mark.once("texts, files and options: no tensor differs")
def test_refuses_a_tokenizer_of_another_size(tokenizer, translator):
    other = SentencePieceTokenizer.train(["one two"], ["two"], vocab_size=300)
    with pytest.raises(ValueError, match="source_vocab_size"):
        Translator(translator.model, other)


@pytest.fixture(scope="module")
def saved(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "new" / "translator"
    translator.save(folder)
    return folder


def test_a_saved_translator_translates_the_same(translator, saved, alone):
    names = {path.name for path in saved.iterdir()}
    assert names >= {"model.keras", "config.json", "tokenizer.json"}
    loaded = Translator.load(saved)
    assert loaded.translate(TEXTS, **SHORT) == list(alone.values())
    assert (loaded.source_language, loaded.target_language) == ("en", "xx")
    assert loaded.model.config == translator.model.config


def test_another_backend_reads_it_and_translates_the_same(saved, alone, translator, tmp_path):
    """Its logits are the same, too, which the scores are sums of, and what it saves comes back."""
    script = (
        "import json, sys; from keras_transformer.inference.translator import Translator;"
        "folder, copy, texts, targets = json.load(sys.stdin);"
        "translator = Translator.load(folder); translator.save(copy);"
        f"found = translator.translate(texts, **{SHORT}), translator.score(texts, targets);"
        "print(json.dumps(found))"
    )
    translations = list(alone.values())
    name = NEXT[keras.backend.backend()]
    pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"KERAS_BACKEND": name, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        input=json.dumps([str(saved), str(tmp_path / "copy"), TEXTS, translations]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found, scores = json.loads(done.stdout.splitlines()[-1])
    assert found == translations
    assert scores == pytest.approx(translator.score(TEXTS, translations), abs=1e-4)
    back = Translator.load(tmp_path / "copy").model
    for ours, theirs in zip(translator.model.weights, back.weights, strict=True):
        np.testing.assert_array_equal(*map(ops.convert_to_numpy, (ours, theirs)))


def copy(saved, folder):
    folder.mkdir()
    for path in saved.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.once("texts, files and options: no tensor differs")
@pytest.mark.parametrize("step", ["tokenizer", "model", "config"])
def test_a_failure_while_saving_keeps_the_old_translator(
    tokenizer, saved, tmp_path, monkeypatch, step
):
    folder = copy(saved, tmp_path / "translator")
    (folder / "metrics.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = make(tokenizer, seed=4)

    def fail(*arguments, **options):
        raise OSError("No space left on device")

    targets = {
        "tokenizer": (other.tokenizer, "save"),
        "model": (Transformer, "save"),
        "config": (saved_module, "write_json"),
    }
    monkeypatch.setattr(*targets[step], fail)
    with pytest.raises(OSError, match="No space left"):
        other.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    other.save(folder)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() == before.keys() and after["model.keras"] != before["model.keras"]


@pytest.mark.once("texts, files and options: no tensor differs")
def test_a_kill_between_two_files_mixes_no_two_translators(saved, tmp_path, monkeypatch):
    texts = [" ".join(WORDS), "ten one"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)
    other = make(tokenizer, seed=4)
    # Nothing but its contents tells the two apart.
    assert tokenizer.source_vocab_size == Translator.load(saved).tokenizer.source_vocab_size
    known = {contents(Translator.load(saved)), contents(other)}
    assert len(known) == 2
    replace, outcomes = os.replace, []
    for survived in range(6):
        folder = copy(saved, tmp_path / str(survived))
        done = 0

        def stop(source, target, folder=folder, survived=survived):
            nonlocal done
            if Path(target).parent == folder:
                if done == survived:
                    raise KeyboardInterrupt
                done += 1
            replace(source, target)

        monkeypatch.setattr(os, "replace", stop)
        with contextlib.suppress(KeyboardInterrupt):
            other.save(folder)
        monkeypatch.undo()
        try:
            assert contents(Translator.load(folder)) in known
            outcomes.append("whole")
        except ValueError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[-1] == "whole" and "refused" in outcomes


def contents(translator):
    weights = b"".join(np.asarray(w).tobytes() for w in translator.model.get_weights())
    return translator.tokenizer.fingerprint(), weights


@pytest.mark.once("texts, files and options: no tensor differs")
def test_load_says_what_is_wrong_with_a_folder(tokenizer, saved, tmp_path):
    with pytest.raises(ValueError, match="absent is not a saved translator: there is no such"):
        Translator.load(tmp_path / "absent")
    pieces = next(path.name for path in saved.glob("*.model"))
    for name in ("config.json", "model.keras", "tokenizer.json", pieces):
        folder = copy(saved, tmp_path / f"without {name}")
        (folder / name).unlink()
        with pytest.raises(ValueError, match=f"saved translator.*{name}"):
            Translator.load(folder)
    for name, content in {
        "config.json": b"{",
        "model.keras": b"PK no archive",
        "tokenizer.json": b"[]",
    }.items():
        folder = copy(saved, tmp_path / f"broken {name}")
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=name):
            Translator.load(folder)
    (folder := copy(saved, tmp_path / "other")).joinpath("config.json").write_text("{}")
    with pytest.raises(ValueError, match='must have "format"'):
        Translator.load(folder)


def test_load_in_another_precision(translator, saved):
    half = Translator.load(saved, precision="bfloat16")
    assert {str(v.dtype) for v in half.model.trainable_variables} == {"bfloat16"}
    scores = translator.score(TEXTS, TEXTS)
    np.testing.assert_allclose(half.score(TEXTS, TEXTS), scores, rtol=0.1)
    assert len(half.translate(TEXTS, **SHORT)) == len(TEXTS)
    whole = Translator.load(saved, precision="float32")
    np.testing.assert_allclose(whole.score(TEXTS, TEXTS), scores, rtol=1e-5)
    with pytest.raises(ValueError, match="precision must be one of .* got 'int4'"):
        Translator.load(saved, precision="int4")


def test_in_8_bits(translator, saved, tmp_path):
    small = Translator.load(saved, precision="int8")
    scores = small.score(TEXTS, TEXTS)
    np.testing.assert_allclose(scores, translator.score(TEXTS, TEXTS), rtol=0.05)
    small.save(tmp_path)
    again = Translator.load(tmp_path)
    assert again.translate(TEXTS) == small.translate(TEXTS)
    assert again.score(TEXTS, TEXTS) == pytest.approx(scores, rel=1e-5)
    message = r"precision must be 'int8' or None: .* has no other weights, got 'float32'"
    with pytest.raises(ValueError, match=message):
        Translator.load(tmp_path, precision="float32")


@pytest.mark.once("texts, files and options: no tensor differs")
def test_load_refuses_another_tokenizer(saved, tmp_path):
    folder = copy(saved, tmp_path / "translator")
    texts = [" ".join(WORDS), "ten one"]
    SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False).save(folder)
    with pytest.raises(ValueError, match="not the one its model was trained with"):
        Translator.load(folder)
