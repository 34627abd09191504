"""Searches over a model as functions of tensors, against full passes of the model."""

import dataclasses
import itertools

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.running.runner import score_function
from keras_transformer.running.search_functions import (
    generation_function,
    listed_first,
    next_token,
    translation_function,
)
from keras_transformer.search import Generation, Search
from keras_transformer.text.lexical_shortlist import Shortlist
from tests.backends import EVERY_CASE, cases

SOURCE = np.array([[4, 7, 5, 3], [8, 9, 10, 3], [6, 3, 0, 0]], "int32")
LIMITS = np.array([7, 5, 7], "int32")
EOS, EXTRA = 3, 3
PROMPTS = np.array([[4, 5, 6, 7], [8, 9, 10, 11]], "int32")


@pytest.fixture(scope="module")
def translator(tiny_transformer):
    return tiny_transformer(scale=1.0, seed=1, norm_first=True, tie_output=False)


@pytest.fixture(scope="module")
def writer(randomize):
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=24, dropout=0.0)
    model = randomize(GPT(GPTConfig(13, **sizes, eos_id=EOS, tie_output=False)))
    model.output_layer.kernel.assign(3 * model.output_layer.kernel)  # clear choices
    return model


def over_arrays(function, model):
    """Return the function of tensors, compiled once, as a function of arrays."""
    run = compiled(function, model)

    def on_arrays(*arguments):
        arguments = [x if x is None else ops.convert_to_tensor(x) for x in arguments]
        return [ops.convert_to_numpy(x) for x in run(*arguments)]

    return on_arrays


def test_scores_are_those_of_the_model(translator):
    search = Search(3, 0.0, max_extra_length=EXTRA)
    find = over_arrays(translation_function(search, translator), translator)
    ids, scores = find(SOURCE, LIMITS)
    assert ids.shape == (3, 3, 7) and scores.shape == (3, 3)
    assert (np.diff(scores, axis=1) <= 0).all()
    score = score_function(translator)
    for k in range(3):
        found = score(ops.convert_to_tensor(SOURCE), ops.convert_to_tensor(ids[:, k]))
        np.testing.assert_allclose(ops.convert_to_numpy(found), scores[:, k], atol=1e-3)
    for row, limit in enumerate(LIMITS):
        for hypothesis in ids[row]:
            length = hypothesis.tolist().index(EOS) + 1
            assert length <= limit and not hypothesis[length:].any()
            assert translator.config.bos_id not in hypothesis


@pytest.mark.once("numbers: the test above searches within limits under each")
def test_a_factor_limits_the_output(translator):
    """Twice the 4 ids of the sources are 4 more than these."""
    rows = [ops.convert_to_tensor(x) for x in (SOURCE, 2 * np.array([4, 4, 2], "int32"))]
    searches = [Search(1, 0.0, **x) for x in (dict(max_length_factor=2), dict(max_extra_length=4))]
    ids, expected = (translation_function(x, translator)(*rows)[0] for x in searches)
    assert ids.shape == (3, 1, 8)
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (ids, expected)))


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_prefix_lengthens_the_output(translator):
    prefix = np.array([[9, 0], [9, 8], [0, 0]], "int32")
    search = Search(1, 0.0, max_extra_length=EXTRA)
    find = over_arrays(translation_function(search, translator), translator)
    plain, _ = find(SOURCE, LIMITS)
    ids, _ = find(SOURCE, LIMITS, prefix)
    assert ids.shape == (3, 1, 9)
    assert ids[0, 0, 0] == 9 and ids[1, 0, :2].tolist() == [9, 8]
    np.testing.assert_array_equal(ids[2, 0, :7], plain[2, 0])


@pytest.mark.once("made of parts that are tested under each backend")
def test_sampling_has_one_sequence_and_follows_its_numbers(translator):
    search = Search(4, 0.0, temperature=2.0, max_extra_length=EXTRA)
    find = over_arrays(translation_function(search, translator), translator)
    numbers = np.random.default_rng(0).random((3, 7)).astype("float32")
    first, _ = find(SOURCE, LIMITS, None, numbers)
    again, _ = find(SOURCE, LIMITS, None, numbers)
    other, _ = find(SOURCE, LIMITS, None, 1 - numbers)
    assert first.shape == (3, 1, 7)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def continued(model, prompt, count):
    """Return the most probable tokens after a prompt, each by a full pass."""
    ids = list(prompt)
    while len(ids) < len(prompt) + count and (len(ids) == len(prompt) or ids[-1] != EOS):
        padded = np.array([ids + [0] * (len(prompt) + count - len(ids))], "int32")  # one shape
        logits = ops.convert_to_numpy(model({"token_ids": padded}))
        ids.append(int(logits[0, len(ids) - 1].argmax()))
    return ids[len(prompt) :]


def until_fill(row):
    return [token for token in row.tolist() if token != -1]


def test_generation_equals_full_passes(writer):
    find = over_arrays(generation_function(Generation(max_new_tokens=6), writer), writer)
    # EOS is forced at the last place, one after the last wanted token.
    ids, _ = find(PROMPTS, np.array([7, 7], "int32"))
    for prompt, row in zip(PROMPTS, ids[:, 0], strict=True):
        expected = continued(writer, prompt, 6)
        assert until_fill(row)[: len(expected)] == expected
        assert len(set(expected)) > 1


def test_padding_before_a_prompt_changes_nothing(writer):
    find = over_arrays(generation_function(Generation(max_new_tokens=6), writer), writer)
    limits = np.array([7, 7], "int32")
    plain, scores = find(PROMPTS, limits)
    segments = np.array([[0, 0, 1, 1, 1, 1]] * 2, "int32")
    ids = np.pad(PROMPTS, ((0, 0), (2, 0)))
    found, found_scores = find(ids, limits, segments)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found_scores, scores, atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_tokens_of_the_prompt_are_penalized_but_not_its_padding(writer):
    logits = ops.convert_to_numpy(writer({"token_ids": PROMPTS}))[:, -1]
    seen = np.stack([np.isin(np.arange(13), prompt) for prompt in PROMPTS])
    expected = np.where(seen, np.where(logits > 0, logits / 9, logits * 9), logits).argmax(-1)
    # The padding is the expected token, which would be penalized if padding counted.
    ids = np.concatenate([expected[:, None], PROMPTS], axis=1).astype("int32")
    segments = np.array([[0, 1, 1, 1, 1]] * 2, "int32")
    search = Generation(max_new_tokens=2, repetition_penalty=9.0)
    find, limits = (
        over_arrays(generation_function(search, writer), writer),
        np.array([3, 3], "int32"),
    )
    found, _ = find(ids, limits, segments)
    np.testing.assert_array_equal(found[:, 0, 0], expected)


@pytest.mark.parametrize("penalty", [1.0, 4.0])
def test_the_next_token_is_the_first_of_a_generation(writer, penalty):
    search = Generation(max_new_tokens=2, repetition_penalty=penalty)
    limits = np.array([3, 3], "int32")
    ids, _ = over_arrays(generation_function(search, writer), writer)(PROMPTS, limits)
    logits = writer({"token_ids": PROMPTS})[:, -1]
    seen = np.stack([np.isin(np.arange(13), prompt) for prompt in PROMPTS])
    found = next_token(search, logits, ops.convert_to_tensor(seen), None)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), ids[:, 0, 0])


def listed(ids, search, model, prefix=None, lengths=()):
    """The arguments of a search with a shortlist that has these ids for every source."""
    shortlist = Shortlist(np.full((13, 1), -1, "int32"), np.array(ids, "int32"), "")
    first = listed_first(search, model.config)
    return shortlist.tokens_of(SOURCE, *first, prefix_BP=prefix, lengths=lengths)


@pytest.mark.parametrize(
    "beam_size,penalty", cases(itertools.product((1, 3), (1.0, 2.0)), (3, 2.0))
)
def test_a_shortlist_of_all_ids_changes_nothing(translator, beam_size, penalty):
    search = Search(beam_size, 0.6, max_extra_length=EXTRA, repetition_penalty=penalty)
    search = dataclasses.replace(search, suppress_tokens=(5,), begin_suppress_tokens=(7, 5))
    shortlisted = dataclasses.replace(search, shortlist=True)
    prefix = np.array([[9, 0], [9, 8], [0, 0]], "int32")
    plain = over_arrays(translation_function(search, translator), translator)
    find = over_arrays(translation_function(shortlisted, translator), translator)
    for begun in (None, prefix) if EVERY_CASE else (prefix,):
        ids, scores = plain(SOURCE, LIMITS, begun)
        arrays = listed(range(13), shortlisted, translator, begun)
        limited_ids, limited_scores = find(SOURCE, LIMITS, begun, None, None, *arrays)
        np.testing.assert_array_equal(limited_ids, ids)
        np.testing.assert_allclose(limited_scores, scores, atol=1e-4)


@pytest.mark.once("the other tests of shortlists search under each")
def test_a_shortlist_with_fewer_tokens_than_beams(translator):
    search = Search(4, 0.0, max_extra_length=EXTRA, shortlist=True)
    find = over_arrays(translation_function(search, translator), translator)
    arrays = listed([8], search, translator, lengths=[8])
    ids, scores = find(SOURCE, LIMITS, None, None, None, *arrays)
    real = scores > -1e8
    assert real[:, :2].all() and set(ids[real].flat) == {0, EOS, 8}
    assert (ids[~real] == 0).all()


@pytest.mark.once("the other tests of shortlists search under each")
def test_a_shortlist_limits_the_tokens(translator):
    allowed = [5, 8, 9]
    search = Search(2, 0.0, max_extra_length=EXTRA, shortlist=True)
    find = over_arrays(translation_function(search, translator), translator)
    arrays = listed(allowed, search, translator)
    ids, scores = find(SOURCE, LIMITS, None, None, None, *arrays)
    assert set(ids.flat) <= {0, EOS, *allowed} and len(set(ids.flat)) > 2
    # The scores are those of the model's logits without the other tokens.
    everything = [0, translator.config.bos_id, EOS, *allowed]
    for row in range(3):
        hypothesis = ids[row, 0]
        length = hypothesis.tolist().index(EOS) + 1
        target = np.array([[translator.config.bos_id, *hypothesis[: length - 1]]], "int32")
        inputs = {"source_ids": SOURCE[row : row + 1], "target_ids": target}
        logits = ops.convert_to_numpy(translator(inputs))[0][:, everything].astype("float64")
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        total = sum(logs[i, everything.index(x)] for i, x in enumerate(hypothesis[:length]))
        np.testing.assert_allclose(total, scores[row, 0], atol=1e-3)
