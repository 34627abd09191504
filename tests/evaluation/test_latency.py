"""Latency by hand, on the examples that the papers explain it with."""

import pytest

from keras_transformer.evaluation.latency import latency, mean_latency

pytestmark = pytest.mark.once("numbers: no tensor")


@pytest.mark.parametrize("k", [1, 2, 4])
def test_an_ideal_wait_k_lags_k_words(k):
    """Ma et al. 2019, section 4.1: AL is k if both sides are equally long."""
    delays = [min(k + t, 6) for t in range(6)]
    scores = latency(delays, 6, 6)
    assert scores["al"] == scores["laal"] == k
    assert scores["dal"] == pytest.approx(k)  # Cherry and Foster 2019: a write costs 1 word
    assert scores["ap"] == sum(delays) / 36


def test_by_hand():
    # Source of 4 words, reference of 2, written: 1 word after 2, 2 after 3, 1 after all 4.
    scores = latency([2, 3, 3, 4], 4, 2)
    assert scores["al"] == pytest.approx((2 + (3 - 2) + (3 - 4) + (4 - 6)) / 4)
    assert scores["laal"] == pytest.approx((2 + (3 - 1) + (3 - 2) + (4 - 3)) / 4)
    # Each word takes a source word's time: delays 2, 3, 4, 5.
    assert scores["dal"] == pytest.approx((2 + (3 - 1) + (4 - 2) + (5 - 3)) / 4)
    assert scores["ap"] == (2 + 3 + 3 + 4) / (4 * 2)


def test_a_translation_of_the_whole_lags_its_length():
    """Only the first word counts, of any number (Ma et al. 2019, equation 9)."""
    for count in (1, 3, 8):
        scores = latency([5] * count, 5, 4)
        assert scores["al"] == scores["laal"] == 5


def test_long_output_is_not_taken_for_fast():
    """Papi et al. 2022: AL rewards over-generation, LAAL does not."""
    short, long = latency([1, 2, 3, 4], 4, 4), latency([1, 1, 2, 2, 3, 3, 4], 4, 4)
    assert short["al"] == short["laal"] == 1
    assert long["al"] < 0 < 0.5 < long["laal"]


def test_means():
    rows = [latency([1, 2], 2, 2), latency([2, 2], 2, 2)]
    assert mean_latency(rows)["al"] == 1.5
    assert mean_latency(rows)["ap"] == (3 / 4 + 1) / 2


def test_bad_input():
    with pytest.raises(ValueError, match="delays must be of at least one word, got \\[\\]"):
        latency([], 1, 1)
    for delays in ([2, 1], [-1, 3]):
        with pytest.raises(ValueError, match="delays must be numbers .* never fall, got"):
            latency(delays, 3, 3)
    with pytest.raises(ValueError, match="source_length must be .*at least 1, got 0"):
        latency([1], 0, 1)
    with pytest.raises(ValueError, match="reference_length must be .*at least 1, got 0"):
        latency([1], 1, 0)
    with pytest.raises(ValueError, match="latencies must be those of at least one sentence"):
        mean_latency([])
