"""Trees by hand: brackets, simplification, lines of symbols and back, spans that count."""

import zipfile

import hypothesis
import hypothesis.strategies as st
import pytest

from keras_transformer.data.trees import (
    DEEPEST,
    Tree,
    linearize,
    punctuation,
    read_treebank,
    read_trees,
    right_branching,
    simplified,
    spans,
    tree_of,
)

RAW = """
( (S
    (NP-SBJ-1 (DT The) (NN cat) )
    (VP (VBD wanted)
      (S (NP-SBJ (-NONE- *-1) ) (VP (TO to) (VP (VB go) (PRT|ADVP (RP out) ) ) ) ) )
    (. .) ))
"""
PLAIN = (
    "(S (NP (DT The) (NN cat)) (VP (VBD wanted) "
    "(S (VP (TO to) (VP (VB go) (PRT (RP out)))))) (. .))"
)


def test_a_tree_of_the_treebank_by_hand(tmp_path):
    (raw,) = read_trees(RAW)
    assert "".join(str(raw).split()) == "".join(RAW.split())
    assert raw.words() == ["The", "cat", "wanted", "*-1", "to", "go", "out", "."]
    tree = simplified(raw)
    assert str(tree) == PLAIN
    line = "(S (NP XX XX ) (VP XX (S (VP XX (VP XX (PRT XX ) ) ) ) ) XX )"
    assert linearize(tree) == line
    assert linearize(tree_of(line, tree.words())) == line
    assert tree_of(line, tree.words()).words() == tree.words()
    tagged = "(S (NP DT NN ) (VP VBD (S (VP TO (VP VB (PRT RP ) ) ) ) ) . )"
    assert linearize(tree, tags=True) == tagged
    assert tree_of(tagged, tree.words()) == tree

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("treebank/combined/wsj_0012.mrg", 2 * RAW)
        archive.writestr("treebank/combined/wsj_0003.mrg", RAW + "( (NP (-NONE- *)) )")
        archive.writestr("treebank/combined/README", "(")
    assert read_treebank(tmp_path / "x.zip") == {3: [tree], 12: [tree, tree]}


labels = st.sampled_from(["S", "NP", "VP"])
leaves = st.builds(lambda tag, word: Tree(tag, (word,)), labels, st.text("(ab)", min_size=1))
trees = st.recursive(
    leaves,
    lambda inner: st.builds(Tree, labels, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=8,
).filter(lambda tree: not tree.is_word)


@hypothesis.given(trees)
def test_lines_come_back_as_trees(tree):
    """Whatever the words look like."""
    again = tree_of(linearize(tree), tree.words())
    assert linearize(again) == linearize(tree) and again.words() == tree.words()
    assert spans(again) == spans(tree)


def test_spans_by_hand():
    """Words 0 to 3 without the comma and the dot: The cat sat down."""
    (tree,) = read_trees(
        "(TOP (S (NP (DT The) (, ,) (NN cat)) (VP (VBD sat) (PRT (RP down)) (. .))"
        " (PRN (, ,) (: --))))"
    )
    left_out = punctuation(tree)
    assert left_out == [1, 5, 6, 7]
    expected = [("S", 0, 4), ("NP", 0, 2), ("VP", 2, 4), ("ADVP", 3, 4)]
    assert sorted(spans(tree, left_out)) == sorted(expected)
    assert ("NP", 0, 3) in spans(tree)
    # Attached elsewhere, the dot changes nothing.
    (other,) = read_trees(
        "(S (NP (XX The) (XX ,) (XX cat)) (VP (XX sat) (ADVP (XX down))) (XX .) (XX ,) (XX --))"
    )
    assert sorted(spans(other, left_out)) == sorted(expected)


def test_right_branching_by_hand():
    tree = right_branching("a b c .".split())
    assert linearize(tree) == "(S XX (VP XX XX ) XX )"
    assert linearize(right_branching("a b c d .".split())) == "(S XX (VP XX (VP XX XX ) ) XX )"
    assert linearize(right_branching("a b .".split())) == "(S XX XX XX )"
    assert linearize(right_branching(["a"])) == "(S XX )"


@pytest.mark.parametrize(
    "text,message",
    [
        ("(S (NP (NN a))", "left open"),
        ("(S (NN a)))", "outside any bracket"),
        ("(S (NP ) (NN a))", "must hold trees or one word"),
        ("(S (NN a) b)", "must hold trees or one word"),
    ],
)
def test_broken_brackets(text, message):
    with pytest.raises(ValueError, match=message):
        read_trees(text)


def test_depth_of_brackets_is_limited():
    (tree,) = read_trees("(S " * DEEPEST + "a" + ")" * DEEPEST)
    assert tree.words() == ["a"]
    with pytest.raises(ValueError, match=f"at most {DEEPEST} levels deep"):
        read_trees("(S " * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1))


NO_TREES = """
(S XX )
(S XX XX
XX (S XX )
(S XX ) (S XX )
(S XX XX ) )
XX XX
(S (NP ) XX XX )
(S XX XX <unk> )
""".split("\n")


@pytest.mark.parametrize("line", NO_TREES)
def test_lines_that_are_no_tree_over_two_words(line):
    with pytest.raises(ValueError):
        tree_of(line, ["a", "b"])


def test_files_that_are_no_treebank(tmp_path):
    (tmp_path / "x.zip").write_text("no zip")
    with pytest.raises(ValueError, match=r"x\.zip must be a complete zip file"):
        read_treebank(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("README", "")
    with pytest.raises(ValueError, match="must hold files such as"):
        read_treebank(tmp_path / "x.zip")
