"""Sampling: its limits are greedy search, its frequencies the distribution, its seeds a row's."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import IMPOSSIBLE, greedy_search, sample_rows, sampler, uniforms
from keras_transformer.search import Search

PROBABILITIES = np.array([0.4, 0.05, 0.25, 0.1, 0.2])  # ranked: 0, 2, 4, 3, 1
DRAWS = 20_000

numpy = ops.convert_to_numpy


def draw(numbers, log_probs, **options):
    """One token for each of the numbers."""
    numbers, log_probs = (ops.convert_to_tensor(x.astype("float32")) for x in (numbers, log_probs))
    return numpy(sampler(**options)(log_probs, numbers))


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(1).random(DRAWS)


def assert_frequencies(tokens, probabilities):
    """Pearson's chi-square under its 99.9 % quantile for four degrees of freedom."""
    counts = np.bincount(tokens, minlength=len(probabilities))
    assert not counts[probabilities == 0].any()
    expected = probabilities[probabilities > 0] * len(tokens)
    assert (((counts[probabilities > 0] - expected) ** 2) / expected).sum() < 18.5


def many(log_probs):
    return np.broadcast_to(log_probs, (DRAWS, len(log_probs)))


@pytest.mark.parametrize(
    "options,expected",
    [
        ({}, PROBABILITIES),
        (dict(temperature=0.5), PROBABILITIES**2),
        (dict(temperature=2.0), PROBABILITIES**0.5),
        (dict(top_k=2), PROBABILITIES * [1, 0, 1, 0, 0]),
        (dict(top_k=99), PROBABILITIES),
        # 0.4 + 0.25 fall short of 0.7; with 0.2 they reach it.
        (dict(top_p=0.7), PROBABILITIES * [1, 0, 1, 0, 1]),
        (dict(top_p=0.6), PROBABILITIES * [1, 0, 1, 0, 0]),
        # Of the two that top_k leaves, the first alone has 0.4 / 0.65 of the probability.
        (dict(top_k=2, top_p=0.6), PROBABILITIES * [1, 0, 0, 0, 0]),
        # The nucleus is that of the sharpened distribution: 0.16 of 0.275.
        (dict(temperature=0.5, top_p=0.58), PROBABILITIES * [1, 0, 0, 0, 0]),
    ],
    ids=str,
)
def test_frequencies(numbers, options, expected):
    tokens = draw(numbers, many(np.log(PROBABILITIES)), **options)
    assert_frequencies(tokens, expected / expected.sum())


@pytest.mark.parametrize("options", [dict(temperature=1e-5), dict(top_k=1), dict(top_p=1e-6)])
def test_limits_that_are_greedy(numbers, rng, options):
    log_probs = rng.standard_normal((1000, 7))
    np.testing.assert_array_equal(draw(numbers[:1000], log_probs, **options), log_probs.argmax(-1))


@hypothesis.settings(max_examples=25)
@hypothesis.given(seed=st.integers(0, 2**32 - 1), top_p=st.floats(0.01, 1.0))
def test_only_tokens_of_the_nucleus(seed, top_p):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(6), size=200)
    tokens = draw(rng.random(200), np.log(probabilities), top_p=top_p)
    more_probable = np.where(
        probabilities > probabilities[np.arange(200), tokens][:, None], probabilities, 0
    ).sum(-1)
    assert (more_probable < top_p + 1e-5).all()


@pytest.mark.parametrize("number", [0.0, np.nextafter(np.float32(1), np.float32(0))])
@pytest.mark.parametrize("options", [{}, dict(top_p=0.9), dict(top_k=3), dict(temperature=0.1)])
def test_impossible_tokens_are_never_drawn(number, options):
    log_probs = np.log(PROBABILITIES)[None].copy()
    log_probs[0, [0, 1]] = IMPOSSIBLE
    assert draw(np.array([number]), log_probs, **options)[0] in {2, 3, 4}


def test_each_step_has_its_number():
    table = np.tile(np.log([0.0 + 1e-9, 1e-9, 0.5, 0.3, 0.2]), (5, 1))
    ids, _ = sampled(table, np.array([[0.1, 0.6, 0.9, 0.1, 0.6, 0.9]], "float32"), [4])
    assert ids[0].tolist() == [2, 3, 4, 1, 0, 0]


def test_uniforms_are_each_rows_own():
    seeds = [[7, 0], [7, 1], [8, 0]]
    drawn = uniforms(seeds, 1000)
    assert drawn.shape == (3, 1000) and drawn.dtype == "float32"
    assert drawn.min() >= 0 and drawn.max() < 1 and abs(drawn.mean() - 0.5) < 0.03
    np.testing.assert_array_equal(uniforms(seeds[::-1], 1000)[::-1], drawn)
    np.testing.assert_array_equal(uniforms(seeds[1:2], 10)[0], drawn[1, :10])
    assert len(np.unique(drawn[:, 0])) == 3


def sampled(table, numbers, max_lengths, **options):
    """Rows of a bigram table through the search: PAD 0, EOS 1."""
    table = ops.convert_to_tensor(table.astype("float32"))

    def step(token_ids, state, index):
        return ops.take(table, token_ids, axis=0), state  # (B, 1, V)

    rows = len(max_lengths)
    ids, scores = greedy_search(
        step,
        ops.repeat(table[:1], rows, axis=0),
        {"nothing": ops.zeros((rows, 1))},
        Search(beam_size=1, length_penalty=0.0),
        eos_ids=(1,),
        length=6,
        max_lengths_B=ops.convert_to_tensor(np.array(max_lengths, "int32")),
        choose=sampler(**options),
        uniforms_BL=ops.convert_to_tensor(numbers),
    )
    return numpy(ids)[:, 0], numpy(scores)[:, 0]


def test_a_seed_gives_the_same_in_any_batch(rng):
    table, seeds, limits = rng.standard_normal((6, 6)), [[3, i] for i in range(8)], [6, 4] * 4
    ids, scores = sampled(table, uniforms(seeds, 6), limits)
    assert len({tuple(row) for row in ids}) > 3
    again, _ = sampled(table, uniforms(seeds, 6), limits)
    np.testing.assert_array_equal(again, ids)
    other = [5, 2]  # others, in another order
    mates, mate_scores = sampled(
        table, uniforms([seeds[i] for i in other], 6), [limits[i] for i in other]
    )
    np.testing.assert_array_equal(mates, ids[other])
    np.testing.assert_allclose(mate_scores, scores[other], rtol=1e-5)


def test_the_score_is_that_of_the_model_whatever_the_temperature(rng):
    table = rng.standard_normal((6, 6))
    log_probs = table - np.log(np.exp(table).sum(-1, keepdims=True))
    ids, scores = sampled(table, uniforms([[0], [1]], 6), [6, 6], temperature=0.7, top_k=3)
    for row, score in zip(ids, scores, strict=True):
        tokens = row[: list(row).index(1) + 1]
        before = [0, *tokens[:-1]]
        assert score == pytest.approx(log_probs[before, tokens].sum(), rel=1e-4)
        assert 0 not in tokens


def test_rows_with_options_of_their_own(rng):
    options = [
        dict(),
        dict(temperature=0.5, top_k=3),
        dict(temperature=1.5, top_p=0.6),
        dict(min_p=0.3, top_k=5),
        dict(epsilon_cutoff=0.05),
        dict(epsilon_cutoff=0.9),
        dict(top_k=1),
    ]
    logits = rng.standard_normal((len(options), 40)).astype("float32")
    defaults = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, epsilon_cutoff=0.0)
    columns = {
        f"{name}_B": ops.convert_to_tensor(
            np.array([{**defaults, **x}[name] for x in options], type(default).__name__ + "32")
        )
        for name, default in defaults.items()
    }
    for number in (0.0, 0.3, 0.7, 0.99):
        uniform = ops.convert_to_tensor(np.full(len(options), number, "float32"))
        tokens = numpy(sample_rows(ops.convert_to_tensor(logits), uniform, **columns))
        for row, own in enumerate(options):
            one = ops.convert_to_tensor(logits[row : row + 1])
            assert tokens[row] == numpy(sampler(**own)(one, uniform[:1]))[0]
