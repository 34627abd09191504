"""Heads ranked for known words: worked by hand, and with the grammar's sentences."""

import numpy as np
import pytest

from keras_transformer.analysis import heads
from keras_transformer.analysis.alignment import Attention
from keras_transformer.analysis.heads import grammar_rankings, neighbours, rank_heads
from keras_transformer.demo.relations import linked_pairs
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

SOURCE, TARGET = "a b c", "x yz"
# The tokens are a, b, c, </s>, and x, y, z, </s>.
SOURCE_SPANS = [(0, 1), (2, 3), (4, 5), (5, 5)]
TARGET_SPANS = [(0, 1), (2, 3), (3, 4), (4, 4)]
ENCODER = [  # of two heads; the second one looks at the next token
    [[0.6, 0.1, 0.1, 0.2], [0.1, 0.5, 0.1, 0.3], [0.2, 0.1, 0.1, 0.6], [0, 0, 0, 1]],
    [[0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5], [0.0, 0.1, 0.2, 0.7], [0, 0, 0, 1]],
]
CROSS = [  # rows predict x, y, z, </s>
    [[0.7, 0.1, 0.1, 0.1], [0.2, 0.4, 0.1, 0.3], [0.0, 0.1, 0.9, 0.0], [0, 0, 0, 1]],
    [[0.1, 0.7, 0.1, 0.1], [0.5, 0.2, 0.1, 0.2], [0.6, 0.1, 0.2, 0.1], [0, 0, 0, 1]],
]
DECODER = [  # columns read <s>, x, y, z
    [[1, 0, 0, 0], [0.1, 0.9, 0, 0], [0.1, 0.2, 0.7, 0], [0.1, 0.1, 0.1, 0.7]],
    [[1, 0, 0, 0], [0.8, 0.2, 0, 0], [0.1, 0.8, 0.1, 0], [0.1, 0.1, 0.1, 0.7]],
]


@pytest.fixture
def by_hand(monkeypatch):
    found = Attention(
        *(SOURCE, TARGET),
        *(["a", "b", "c", "</s>"], ["x", "y", "z", "</s>"], ["<s>", "x", "y", "z"]),
        *(SOURCE_SPANS, TARGET_SPANS),
        *(np.array([x], "float32") for x in (ENCODER, DECODER, CROSS)),
    )
    monkeypatch.setattr(heads, "attention", lambda translator, source, target: found)

    def rank(links, part="encoder"):
        ranking = rank_heads(None, [SOURCE], [TARGET], [links], part)
        return ranking, {(x.layer, x.head): (x.accuracy, x.weight) for x in ranking.heads}

    return rank


@pytest.mark.once("NumPy alone")
def test_next_word(by_hand):
    ranking, found = by_hand(neighbours([SOURCE], 1)[0])
    # a: 0.7 on b; b: 0.3 on c, less than the 0.5 on EOS, which is no word.
    assert found[0, 1] == (1.0, pytest.approx((0.7 + 0.3) / 2))
    assert found[0, 0] == (0.0, pytest.approx((0.1 + 0.1) / 2))
    assert [x.head for x in ranking.heads] == [1, 0]
    assert ranking.chance == pytest.approx(1 / 3)
    assert (ranking.distance, ranking.distance_accuracy, ranking.links) == (1, 1.0, 2)


@pytest.mark.once("NumPy alone")
def test_the_pieces_of_a_word_count_together(by_hand):
    # yz: the mean of y's and z's rows: head 0: a 0.1, b 0.25, c 0.5; head 1: a 0.55
    _, found = by_hand([(1, 2)], "cross")
    assert found[0, 0] == (1.0, pytest.approx(0.5))
    assert found[0, 1] == (0.0, pytest.approx(0.15))


@pytest.mark.once("NumPy alone")
def test_the_decoder_has_read_only_what_is_before(by_hand):
    # Predicting yz: x has (0.9 + 0.2) / 2 and yz, whose y is read, (0 + 0.7) / 2 in head 0.
    ranking, found = by_hand([(1, 0)], "decoder")
    assert found[0, 0] == (1.0, pytest.approx(0.55))
    assert found[0, 1] == (1.0, pytest.approx(0.5))
    assert ranking.chance == pytest.approx(1 / 2)
    with pytest.raises(ValueError, match=r"got \(0, 1\)"):
        by_hand([(0, 1)], "decoder")


@pytest.mark.once("NumPy alone")
def test_distances(by_hand):
    ranking, _ = by_hand([(0, 2), (2, 1), (1, 0)])
    assert (ranking.distance, ranking.links) == (-1, 3)
    assert ranking.distance_accuracy == pytest.approx(2 / 3)
    assert neighbours(["a b", "c"], -1) == [[(1, 0)], []]
    assert neighbours(["a, b"], 0) == [[(0, 0), (1, 1), (2, 2)]]


@pytest.mark.once("NumPy alone")
@pytest.mark.parametrize(
    "links,part,message",
    [
        ([[(0, 1)]], "middle", "part must be one of"),
        ([], "encoder", "links must be of the same length, got (1, 1, 0)"),
        ([[]], "encoder", "links must be at least one in all, got 0"),
        ([[(0, 3)]], "encoder", "with tokens that it sees, in 'a b c', got (0, 3)"),
        ([[(-1, 0)]], "encoder", "got (-1, 0)"),
        ([[(2, 0)]], "cross", "got (2, 0)"),
    ],
)
def test_bad_input(by_hand, links, part, message):
    with pytest.raises(ValueError) as caught:
        rank_heads(None, [SOURCE], [TARGET], links, part)
    assert message in str(caught.value)


@pytest.mark.once("attention is computed under each in tests/analysis/test_alignment.py")
def test_relations_of_the_grammar(tiny_transformer):
    linked = linked_pairs("antecedent", 3)
    texts = [x.english for x in linked] * 9, [x.german for x in linked] * 9
    tokenizer = SentencePieceTokenizer.train(*texts, vocab_size=320)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, max_length=200)
    found = grammar_rankings(Translator(model, tokenizer), 2)
    layers = dict(
        encoder=model.config.num_encoder_layers,
        decoder=model.config.num_decoder_layers,
        cross=model.config.num_decoder_layers,
    )
    for (name, part), ranking in found.items():
        assert len(ranking.heads) == layers[part] * model.config.num_heads
        assert 0 < ranking.chance < 1
        if "word" not in name:
            assert ranking.links == 2
    assert found.keys() == {
        *((x, "encoder") for x in ("previous word", "same word", "next word", "antecedent")),
        *((x, "decoder") for x in ("previous word", "separable prefix", "antecedent")),
        *((x, "cross") for x in ("separable prefix", "antecedent")),
    }
