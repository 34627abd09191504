"""Parser: trees over the words for any weights, those of a greedy search by hand, and errors."""

import numpy as np
import pytest
from keras import ops

from keras_transformer import Parser
from keras_transformer.data.trees import Tree, linearize
from keras_transformer.models import Transformer
from keras_transformer.running.inputs import padded
from keras_transformer.text import SentencePieceTokenizer
from tests.tasks.small_parser import MAX_LENGTH, SENTENCES, make_parser

OPTIONS = dict(beam_size=1, max_extra_length=24)


@pytest.fixture(scope="module")
def parser(randomize):
    return make_parser(randomize)


@pytest.fixture(scope="module")
def found(parser):
    return parser.parse(SENTENCES, **OPTIONS)


@pytest.mark.once("texts: tests/decoding searches trees on each backend")
def test_every_answer_is_a_tree_over_the_words(parser, found, tmp_path):
    for sentence, tree in zip(SENTENCES, found, strict=True):
        assert isinstance(tree, Tree) and tree.words() == sentence.split()
    # Alone, and after saving, they are the same.
    parser.save(tmp_path)
    again = Parser.load(tmp_path)
    assert again.parse(SENTENCES[1:2], **OPTIONS) == found[1:2]


def greedy_by_hand(parser, sentences):
    """The best allowed symbols, with a full pass of the model for each."""
    symbols = dict(enumerate(parser.tokenizer.pieces_of("target")))
    ids = parser.tokenizer.encode_source(sentences)
    source = padded(ids, len(ids), max(map(len, ids)), 0)
    lines = [[] for _ in sentences]
    target = np.zeros((len(ids), MAX_LENGTH), "int32")
    target[:, 0] = parser.model.config.bos_id
    for place in range(MAX_LENGTH - 1):
        logits = parser.model({"source_ids": source, "target_ids": target})
        logits = ops.convert_to_numpy(logits)[:, place]
        for row, (sentence, line) in enumerate(zip(sentences, lines, strict=True)):
            depth = sum(x.startswith("(") for x in line) - line.count(")")
            left = len(sentence.split()) - sum(not x.startswith(("(", ")")) for x in line)
            if line and depth == 0:
                continue
            room = min(len(sentence.split()) + 1 + 24, MAX_LENGTH - 1) - len(line)
            before = " ".join(line).rsplit(")")[-1].split()
            opened = next((i for i, x in enumerate(before[::-1]) if x[0] != "("), len(before))

            def allowed(symbol, depth=depth, left=left, opened=opened, room=room):
                if symbol.startswith("("):  # itself, the words, all closing brackets and EOS fit
                    return left > 0 and opened < 8 and 1 + left + depth + 1 + 1 <= room
                if symbol == ")":
                    return depth > 0 and opened == 0 and (depth > 1 or left == 0)
                return symbol[0] != "<" and depth > 0 and left > 0

            best = max((i for i in symbols if allowed(symbols[i])), key=lambda i: logits[row, i])
            line.append(symbols[best])
            target[row, place + 1] = best
    return [" ".join(line) for line in lines]


@pytest.mark.once("tests/decoding/test_tree_constraint.py searches under each")
def test_the_search_finds_the_best_allowed_symbols(parser, found):
    expected = greedy_by_hand(parser, SENTENCES)
    assert [linearize(tree, tags=True) for tree in found] == expected


@pytest.mark.once("texts: no tensor differs")
def test_what_is_no_sentence(parser):
    empty, blank, tree = parser.parse(["", "  ", "the (cat) ."], **OPTIONS)
    assert empty is None and blank is None
    assert tree.words() == ["the", "-LRB-cat-RRB-", "."] and str(tree).count("(") > 1
    assert parser.parse([]) == []


@pytest.mark.once("texts: no tensor differs")
def test_a_tree_closes_many_brackets(parser):
    with pytest.raises(ValueError, match="no_repeat_ngram_size must be 0 with a constraint, got 1"):
        parser.parse(SENTENCES, no_repeat_ngram_size=1)


@pytest.mark.once("texts: tests/decoding searches trees on each backend")
def test_a_sentence_that_is_too_long(parser):
    most = MAX_LENGTH - 4
    with pytest.warns(UserWarning, match=f"at most {most} words each, .*, got 50 .*it is cut"):
        (tree,) = parser.parse(["a " * 50], **OPTIONS)
    assert tree.words() == ["a"] * most
    with pytest.raises(ValueError, match=f"sentences must have at most {most} words each"):
        parser.parse(["a " * 50], strict=True)


def test_bad_input(parser, tmp_path):
    with pytest.raises(ValueError, match="sentences must be a sequence of strings"):
        parser.parse("a mat")
    with pytest.raises(TypeError, match="temperature is not an option here"):
        parser.parse(["a"], temperature=1.0)
    pieces = SentencePieceTokenizer.train(SENTENCES, SENTENCES, vocab_size=20, byte_fallback=False)
    with pytest.raises(ValueError, match="tokenizer must be a WordTokenizer, got 'SentencePieceT"):
        Parser(parser.model, pieces)
    words = type(parser.tokenizer).train(SENTENCES, SENTENCES)
    with pytest.raises(ValueError, match='symbols must have labels such as "'):
        sizes = dict(source_vocab_size=words.source_vocab_size, share_embeddings=False)
        sizes |= dict(target_vocab_size=words.target_vocab_size, d_model=8, d_ff=8, num_heads=2)
        sizes |= dict(num_encoder_layers=1, num_decoder_layers=1)
        Parser(Transformer(type(parser.model.config)(**sizes)), words)
