"""Sentences as token ids, limits and padded arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_transformer.running.inputs import (
    Request,
    encoded_pairs,
    encoded_prefixes,
    extended,
    most_tokens,
    padded,
    require_match,
)
from keras_transformer.search import Search
from keras_transformer.text import WordTokenizer

pytestmark = pytest.mark.once("texts and arrays of NumPy")

WORDS = "one two three four five six"


@pytest.fixture(scope="module")
def tokenizer():
    return WordTokenizer.train([WORDS], [WORDS.upper()], min_count=1)


def test_a_tokenizer_of_another_model(tokenizer):
    names = ("source_vocab_size", "target_vocab_size", "pad_id", "bos_id")
    fields = {name: getattr(tokenizer, name) for name in names}
    config = SimpleNamespace(**fields, eos_id=(tokenizer.eos_id, 9), eos_ids=(tokenizer.eos_id, 9))
    require_match(tokenizer, config)
    for name in names:
        setattr(config, name, 77)
        with pytest.raises(ValueError, match=f"its {name} is {fields[name]}, the model's 77"):
            require_match(tokenizer, config)
        setattr(config, name, fields[name])
    config.eos_ids = config.eos_id = (9,)
    with pytest.raises(ValueError, match="its eos_id is"):
        require_match(tokenizer, config)


def test_both_sides(tokenizer):
    texts, targets = ["one two", ""], ["ONE", "SIX FIVE"]
    expected = tokenizer.encode_source(texts), tokenizer.encode_target(targets)
    assert encoded_pairs(tokenizer, texts, targets, 9) == expected
    with pytest.raises(ValueError, match="targets must have at most 2 tokens"):
        encoded_pairs(tokenizer, ["one"], targets, 2)


def test_a_long_text_is_cut_or_refused(tokenizer):
    (whole,) = tokenizer.encode_source([WORDS])
    assert len(whole) == 7
    assert Request([WORDS], strict=True).encoded(tokenizer, 7) == ([0], [whole], [[]])
    message = "texts must have at most 4 tokens .* got 7 in 'one two"
    with pytest.warns(UserWarning, match=message):
        _, (cut,), _ = Request([WORDS]).encoded(tokenizer, 4)
    assert cut == [*whole[:3], tokenizer.eos_id]
    with pytest.raises(ValueError, match=message):
        Request([WORDS], strict=True).encoded(tokenizer, 4)


def test_a_part_keeps_what_belongs_to_its_texts(tokenizer):
    request = Request(["one", "two", "three"], ["ONE", "TWO", "SIX"], strict=True).read(tokenizer)
    part = request.part([2, 0])
    assert part == Request(["three", "one"], ["SIX", "ONE"], strict=True).read(tokenizer)
    assert part.read(tokenizer) is part and Request(["one"]).part([0]) == Request(["one"])


def test_an_empty_text_is_not_searched(tokenizer):
    texts, prefixes = ["one", "", "two three"], ["ONE", "SIX", ""]
    full, sources, begun = Request(texts, prefixes).encoded(tokenizer, 9)
    assert full == [0, 2]
    assert sources == tokenizer.encode_source(["one", "two three"])
    assert begun == encoded_prefixes(tokenizer, ["ONE", ""], 2, 9)
    assert Request(iter(texts)).texts == texts
    with pytest.raises(ValueError, match="texts must hold strings, got int"):
        Request([1])
    with pytest.raises(ValueError, match="texts must have at most 3 tokens"):
        Request(["one two three"], strict=True).encoded(tokenizer, 3)


def test_prefixes_have_no_end(tokenizer):
    (ids,) = tokenizer.encode_target(["ONE TWO"])
    assert encoded_prefixes(tokenizer, ["ONE TWO", ""], 2, 9) == [ids[:-1], []]
    assert encoded_prefixes(tokenizer, None, 3, 9) == [[]] * 3


def test_prefixes_that_do_not_fit(tokenizer):
    with pytest.raises(ValueError, match="prefixes must .* got 1 for 2"):
        encoded_prefixes(tokenizer, ["ONE"], 2, 9)
    with pytest.raises(
        ValueError, match="prefixes must have at most 1 tokens .* got 2 in 'ONE TWO'"
    ):
        encoded_prefixes(tokenizer, ["ONE TWO"], 1, 1)


def test_arrays_of_a_batch():
    array = padded([[5, 6], [7]], 3, 4, pad_id=9)
    assert array.dtype == "int32"
    assert array.tolist() == [[5, 6, 9, 9], [7, 9, 9, 9], [9, 9, 9, 9]]
    assert extended(np.array([[1, 2], [3, 4]]), 2).tolist() == [[1, 2], [3, 4], [3, 4], [3, 4]]
    assert extended(np.array([1, 2]), 0).tolist() == [1, 2]


def test_the_limit_of_each_row():
    search = Search(max_extra_length=5)
    sources, prefixes = [[1] * 3, [1] * 30, [1] * 2], [[], [], [4] * 6]
    # 3 + 5; the positions without BOS; the prefix is longer than its source; a row of padding.
    expected = [8, 31, 11, 1]
    assert most_tokens(sources, prefixes, 4, search, max_length=32).tolist() == expected
    # 3 * 2; the positions without BOS; the prefix times 2; a row of padding.
    search, expected = Search(max_length_factor=2), [6, 31, 12, 1]
    assert most_tokens(sources, prefixes, 4, search, max_length=32).tolist() == expected
