"""Hypotheses of texts: the same in any batch, ranked, limited, sampled."""

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_transformer.models import Transformer
from keras_transformer.running.batches import until_end
from keras_transformer.running.inputs import padded
from keras_transformer.translate import pipeline
from keras_transformer.translate.pipeline import _hypotheses
from keras_transformer.translate.translator import Translator
from tests.backends import cases
from tests.small_translator import MAX_LENGTH, SHORT, TEXTS, make


@pytest.mark.once("ends are searched under each in tests/decoding")
def test_any_of_several_ends_a_translation(translator, tokenizer, monkeypatch):
    model, decode, rows = translator.model, tokenizer.decode_target, []

    def record(ids):
        rows.extend(ids)
        return decode(ids)

    monkeypatch.setattr(tokenizer, "decode_target", record)
    translator.translate(TEXTS, beam_size=1, **SHORT)
    end = max(rows, key=len)[2]
    expected = decode([until_end(row, [end]) for row in rows])
    other = Transformer(dataclasses.replace(model.config, eos_id=(end, model.config.eos_id)))
    other.set_weights(model.get_weights())
    found = Translator(other, tokenizer).translate(TEXTS, beam_size=1, **SHORT)
    assert sorted(found) == sorted(expected) != sorted(decode(rows))
    other.config = dataclasses.replace(model.config, eos_id=(end, end + 1))
    with pytest.raises(ValueError, match=r"its eos_id is 3, the model's \(\d+, \d+\)"):
        Translator(other, tokenizer)


@pytest.mark.once("what is decoded is no tensor")
def test_only_hypotheses_that_are_wanted_are_decoded(translator, tokenizer, monkeypatch):
    rows, decode = [], tokenizer.decode_target

    def record(ids):
        rows.append(len(ids))
        return decode(ids)

    monkeypatch.setattr(tokenizer, "decode_target", record)
    translator.translate(TEXTS, **SHORT)
    translator.nbest(TEXTS, num_hypotheses=2, **SHORT)
    assert rows == [1] * len(TEXTS) + [2] * len(TEXTS)


@pytest.mark.once("made of parts that are tested under each backend")
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


def test_a_text_translates_the_same_by_any_worker(translator, alone, monkeypatch):
    monkeypatch.setattr(translator._engine._runner, "workers", lambda key: 2)
    threads = set()

    def of_this_thread(*arguments):
        threads.add(threading.current_thread())
        return _hypotheses(*arguments)

    monkeypatch.setattr(pipeline, "_hypotheses", of_this_thread)
    texts = 2 * TEXTS
    translations = translator.translate(texts, tokens_per_batch=32, **SHORT)
    assert translations == [alone[text] for text in texts]
    assert threading.current_thread() not in threads
    drawn = [translator.sample(TEXTS, seed=3, tokens_per_batch=n, **SHORT) for n in (32, 4096)]
    assert drawn[0] == drawn[1]


@pytest.mark.once("texts, files and options: no tensor differs")
def test_empty_texts_have_empty_translations(translator, alone):
    blank = ["", " ", "\t \n", "\u00a0\u3000", "\u200b"]
    assert translator.translate([*blank, TEXTS[0]], **SHORT) == [""] * 5 + [alone[TEXTS[0]]]
    assert translator.sample(blank, **SHORT) == [""] * 5
    assert [[h.text for h in found] for found in translator.nbest(["", " "], **SHORT)] == [[""]] * 2
    assert translator.translate([]) == translator.nbest([]) == translator.score([], []) == []


@pytest.mark.once("made of parts that are tested under each backend")
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


@pytest.mark.once("tests/decoding has this of the search, under each")
def test_nbest_is_sorted_and_begins_with_the_translation(translator, alone):
    found = translator.nbest(TEXTS, **SHORT)
    assert [len(hypotheses) for hypotheses in found] == [4] * len(TEXTS)
    for text, hypotheses in zip(TEXTS, found, strict=True):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True) and scores[0] < 0
        assert hypotheses[0].text == alone[text]
    assert translator.nbest(TEXTS, num_hypotheses=2, **SHORT) == [h[:2] for h in found]


@pytest.mark.parametrize("tokens_per_batch", cases([16, 4096], 16))
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


@pytest.mark.once("tests/decoding searches with the penalty on each backend")
def test_a_repetition_penalty_leaves_fewer_repetitions(translator, alone):
    def repeated(texts):
        return sum(len(x) - len(set(x)) for x in translator.tokenizer.encode_target(texts))

    options = dict(repetition_penalty=3.0, **SHORT)
    found = translator.translate(TEXTS, **options)
    assert repeated(found) < repeated(list(alone.values()))
    assert [translator.translate([text], **options)[0] for text in TEXTS] == found
    prefixes = ["six"] * len(TEXTS)
    begun, others = (
        translator.sample(TEXTS, repetition_penalty=x, top_k=1, prefixes=prefixes, **SHORT)
        for x in (9.0, 1.0)
    )
    assert repeated(begun) < repeated(others)


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


@pytest.mark.once("made of parts that are tested under each backend")
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


@pytest.mark.once("tests of CausalLM say so under each")
def test_says_that_weights_are_not_finite(tokenizer):
    translator = make(tokenizer)
    translator.model.set_weights([w * np.nan for w in translator.model.get_weights()])
    for beam_size in (1, 2):
        with pytest.raises(ValueError, match="model must give finite logits"):
            translator.translate(["one"], beam_size=beam_size, **SHORT)
