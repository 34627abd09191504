"""Phrase-structure trees: readers of treebanks, linearization and its inverse, spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_transformer.data.archives import read_zip

OPEN, CLOSE, WORD = "(", ")", "XX"  # symbols of a linearized tree: "(" is joined to a label
EMPTY = "-NONE-"  # the tag of traces and other empty elements
DEEPEST = 250  # maximum depth of brackets: the functions here recurse once per level
PUNCTUATION = frozenset({",", ":", "``", "''", "."})  # tags that EVALB's COLLINS.prm ignores


@dataclass(frozen=True)
class Tree:
    """A constituent with child trees, or a word with its part-of-speech tag.

    `str` writes the tree with brackets, "(NP (DT the) (NN cat))".

    Args:
        label: Label of the constituent, or tag of the word.
        children: One or more trees, or exactly one word.
    """

    label: str
    children: tuple[Tree | str, ...]

    def __str__(self) -> str:
        return f"({' '.join([self.label, *map(str, self.children)])})"

    @property
    def is_word(self) -> bool:
        """Whether the tree is a word with its tag."""
        return isinstance(self.children[0], str)

    def leaves(self) -> Iterator[Tree]:
        """Yield the words with their tags, as trees, from left to right."""
        for child in self.children:
            if isinstance(child, Tree):
                yield from child.leaves()
            else:
                yield self

    def words(self) -> list[str]:
        """Return the words, from left to right."""
        return [str(leaf.children[0]) for leaf in self.leaves()]


def read_trees(text: str) -> list[Tree]:
    """Read trees in the bracket format of the Penn Treebank's `.mrg` files.

    Raises:
        ValueError: If brackets do not balance, hold something else than trees or one word, or are
            nested more than `DEEPEST` levels deep.
    """
    return _trees(re.findall(r"[()]|[^\s()]+", text))


def _trees(tokens: Sequence[str | Tree]) -> list[Tree]:
    """Return the trees of a sequence of brackets, labels, words and complete trees."""
    open_: list[list] = [[]]
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == OPEN:
            if len(open_) > DEEPEST:
                raise ValueError(f"brackets must be at most {DEEPEST} levels deep, got more")
            open_.append(["", []])
        elif token != CLOSE and before == OPEN:
            open_[-1][0] = token
        elif token != CLOSE and len(open_) > 1:
            open_[-1][1].append(token)
        elif token == CLOSE and len(open_) > 1:
            label, children = open_.pop()
            words = sum(isinstance(child, str) for child in children)
            if not children or (words and len(children) > 1):
                shown = " ".join(map(str, children))
                raise ValueError(f"a bracket must hold trees or one word, got ({label} {shown})")
            (open_[-1][1] if len(open_) > 1 else open_[0]).append(Tree(label, tuple(children)))
        else:
            raise ValueError(f"brackets must balance, got {token!r} outside any bracket")
    if len(open_) > 1:
        raise ValueError(f"brackets must balance, got {len(open_) - 1} left open")
    return open_[0]


def read_treebank(path: str | Path) -> dict[int, list[Tree]]:
    """Read and simplify the trees of the files `combined/wsj_*.mrg` of a zipped Penn Treebank.

    Returns:
        The trees of each file by its number, in ascending order.

    Raises:
        FileNotFoundError: If the zip file does not exist.
        ValueError: If it is not a zip file, holds none of these files, or one is malformed.
    """
    files = {}
    for match, content in read_zip(path, r"combined/wsj_(\d+)\.mrg$"):
        trees = map(simplified, read_trees(content.decode("latin-1")))
        files[int(match[1])] = [tree for tree in trees if tree is not None]
    if not files:
        raise ValueError(f"{path} must hold files such as combined/wsj_0001.mrg, got none")
    return files


def simplified(tree: Tree) -> Tree | None:
    """Return the tree in the form that parsers are evaluated on; None if nothing is left.

    Function tags ("NP-SBJ-1" becomes "NP"), empty elements and constituents of empty elements only
    are removed. A root without a label, or labelled TOP or ROOT, is removed if it has one child;
    else its label becomes TOP.
    """
    if tree.is_word:
        return None if tree.label == EMPTY else tree
    below = (simplified(child) for child in tree.children if isinstance(child, Tree))
    children = tuple(child for child in below if child is not None)
    if not children:
        return None
    if tree.label in ("", "ROOT", "TOP"):
        return children[0] if len(children) == 1 else Tree("TOP", children)
    return Tree(re.split("[-=|]", tree.label)[0], children)


def linearize(tree: Tree, tags: bool = False) -> str:
    """Linearize a tree depth first (Vinyals et al. 2015, section 2.2): "(S (NP XX XX ) XX )".

    Unlike in the paper, closing brackets have no labels: they follow from the opening brackets, so
    their prediction could only add errors.

    Args:
        tree: The tree.
        tags: Whether to write each word as its tag; else as the symbol XX, as in the paper.
    """
    if tree.is_word:
        return tree.label if tags else WORD
    inner = (linearize(child, tags) for child in tree.children if isinstance(child, Tree))
    return " ".join([OPEN + tree.label, *inner, CLOSE])


def tree_of(line: str, words: Sequence[str]) -> Tree:
    """Return the tree of a linearization and its words: the inverse of `linearize`.

    Each symbol without a bracket becomes the tag of one word, also XX.

    Raises:
        ValueError: If the line is not a tree over exactly these words, or is a single word.
    """
    left = list(reversed(words))
    tokens: list[str | Tree] = []
    for symbol in line.split():
        if symbol.startswith(OPEN):
            tokens += [OPEN, symbol.removeprefix(OPEN)]
        elif symbol == CLOSE:
            tokens.append(CLOSE)
        elif left:
            tokens.append(Tree(symbol, (left.pop(),)))
        else:
            raise ValueError(f"line must have {len(words)} words, got more: {line!r}")
    trees = _trees(tokens)
    if left or len(trees) != 1 or trees[0].is_word:
        raise ValueError(f"line must be one tree over {len(words)} words, got {line!r}")
    return trees[0]


def spans(tree: Tree, without: Sequence[int] = ()) -> list[tuple[str, int, int]]:
    """Return (label, first word, last word + 1) of each constituent, for `bracket_f1`.

    The spans are those of EVALB with COLLINS.prm: tags and TOP do not count, and PRT counts as
    ADVP. Words in `without` are skipped in the numbering.

    Args:
        tree: The tree.
        without: Indices of words to leave out. EVALB leaves out those of `punctuation`, so that the
            attachment of punctuation does not matter.
    """
    constituents, left_out = [], frozenset(without)

    def walk(node, place, number):
        begin = number
        for child in node.children:
            if child.is_word:
                place, number = place + 1, number + (place not in left_out)
            else:
                place, number = walk(child, place, number)
        if node.label != "TOP" and number > begin:
            constituents.append(("ADVP" if node.label == "PRT" else node.label, begin, number))
        return place, number

    if not tree.is_word:
        walk(tree, 0, 0)
    return constituents


def punctuation(tree: Tree) -> list[int]:
    """Return the indices of the words that are tagged as punctuation."""
    return [i for i, leaf in enumerate(tree.leaves()) if leaf.label in PUNCTUATION]


def right_branching(words: Sequence[str], label: str = "VP", root: str = "S") -> Tree:
    """Return the right-branching tree, a baseline: each constituent is a word and the rest.

    The last word, usually a full stop, is a child of the root. The tags of the words are XX.

    Args:
        words: The words, at least one.
        label: Label of the constituents.
        root: Label of the root.
    """
    *inner, last = [Tree(WORD, (word,)) for word in words]
    if not inner:
        return Tree(root, (last,))
    tree = inner[-1] if len(inner) == 1 else Tree(label, tuple(inner[-2:]))
    for word in inner[-3::-1]:
        tree = Tree(label, (word, tree))
    return Tree(root, (*(tree.children if tree.label == label else (tree,)), last))
