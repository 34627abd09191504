"""Trees from models that have learnt nothing, and that no tree is forbidden."""

import dataclasses
import functools
import itertools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from keras import ops

from keras_transformer.data.trees import Tree, linearize, tree_of
from keras_transformer.decoding import TreeConstraint
from keras_transformer.text.words import WordTokenizer
from keras_transformer.translate.translator import Translator
from tests.backends import cases

WORDS = ["the", "cat", "sat", "on", "(", "XX", "."]
LINES = ["(S (NP XX ) (VP NN (NP (QP XX ) XX ) ) , )"]
TOKENIZER = WordTokenizer.train([" ".join(WORDS)], LINES, min_count=1)
CONSTRAINT = TreeConstraint.of(TOKENIZER.pieces_of("target"), max_opened=3)
SENTENCES = [
    " ".join(np.random.default_rng(seed).choice(WORDS, size=1 + seed % 9)) for seed in range(24)
]


@functools.cache
def translator(tiny_transformer):
    sizes = dict(
        source_vocab_size=TOKENIZER.source_vocab_size,
        target_vocab_size=TOKENIZER.target_vocab_size,
    )
    model = tiny_transformer(share_embeddings=False, max_length=40, seed=3, **sizes)
    return Translator(model, TOKENIZER)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "beam_size,max_extra_length", cases([*itertools.product([1, 3], [2, 20])], (3, 2))
)
def test_a_random_model_finds_trees_over_these_words(tiny_transformer, beam_size, max_extra_length):
    options = dict(beam_size=beam_size, max_extra_length=max_extra_length)
    found = translator(tiny_transformer).nbest(SENTENCES, constraint=CONSTRAINT, **options)
    for sentence, hypotheses in zip(SENTENCES, found, strict=True):
        for hypothesis_ in hypotheses:
            tree = tree_of(hypothesis_.text, sentence.split())
            assert tree.words() == sentence.split()
            size = len(hypothesis_.text.split()) + 1
            assert size <= len(sentence.split()) + 1 + max_extra_length
    free = translator(tiny_transformer).translate(SENTENCES, **options)
    with pytest.raises(ValueError):
        for sentence, line in zip(SENTENCES, free, strict=True):
            tree_of(line, sentence.split())


trees = st.recursive(
    st.sampled_from([Tree("XX", ("a",)), Tree(",", (",",))]),
    lambda inner: st.builds(
        Tree, st.sampled_from(["S", "NP", "VP"]), st.lists(inner, min_size=1, max_size=3).map(tuple)
    ),
    max_leaves=8,
).filter(lambda tree: not tree.is_word)


@hypothesis.settings(max_examples=30)
@hypothesis.given(tree=trees)
def test_every_tree_is_allowed_and_no_step_more_is_needed(tree):
    symbols = linearize(tree, tags=True).split()
    ids = [*TOKENIZER.encode_target([" ".join(symbols)])[0]]
    constraint = dataclasses.replace(CONSTRAINT, max_opened=len(symbols))
    state = constraint.start([" ".join(tree.words())], [len(ids)])
    state = {name: ops.convert_to_tensor(x) for name, x in state.items()}
    for token in ids:
        may = ops.convert_to_numpy(constraint.allowed(state, TOKENIZER.target_vocab_size))
        assert may[0, token]
        state = constraint.advance(state, ops.convert_to_tensor([token], dtype="int32"))


def test_states_by_hand():
    constraint = TreeConstraint(open_ids=(4, 5), close_id=6, word_ids=(7,), eos_id=3, max_opened=2)

    def allowed(**state):
        state = {name: ops.convert_to_tensor([x], dtype="int32") for name, x in state.items()}
        return set(np.flatnonzero(ops.convert_to_numpy(constraint.allowed(state, 8))).tolist())

    assert allowed(depth=0, words=2, opened=0, steps=9) == {4, 5}  # the root
    assert allowed(depth=1, words=2, opened=1, steps=9) == {4, 5, 7}  # not empty
    assert allowed(depth=2, words=2, opened=2, steps=9) == {7}  # opened as often as may be
    assert allowed(depth=1, words=1, opened=0, steps=9) == {4, 5, 7}  # the root stays open
    assert allowed(depth=2, words=1, opened=0, steps=6) == {4, 5, 6, 7}
    assert allowed(depth=2, words=1, opened=0, steps=5) == {6, 7}  # a word, two brackets, EOS
    assert allowed(depth=1, words=0, opened=0, steps=2) == {6}
    assert allowed(depth=0, words=0, opened=0, steps=1) == {3}


@pytest.mark.parametrize("text,limit", [("a b", 4), (" ", 9)])
def test_what_has_no_tree_is_refused(text, limit):
    with pytest.raises(ValueError, match=rf"must have from 1 to {limit - 3} words"):
        CONSTRAINT.start([text], [limit])


def test_a_vocabulary_without_brackets_is_refused():
    with pytest.raises(ValueError, match="symbols must have labels such as"):
        TreeConstraint.of(["</s>", "XX", ")"])
