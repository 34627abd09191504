"""Phrase-structure trees: read from brackets, simplified, as lines of symbols and back, spans."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

OPEN, CLOSE, WORD = "(", ")", "XX"  # symbols of a line: "(NP", ")" and that of each word
EMPTY = "-NONE-"  # the tag of what is not spoken
PUNCTUATION = frozenset({",", ":", "``", "''", "."})  # tags that do not count in COLLINS.prm


@dataclass(frozen=True)
class Tree:
    """A label and what it is over: trees; or, where the label is a tag, one word.

    `str` gives it in brackets, "(NP (DT the) (NN cat))".
    """

    label: str
    children: tuple[Tree | str, ...]

    def __str__(self) -> str:
        return f"({' '.join([self.label, *map(str, self.children)])})"

    @property
    def is_word(self) -> bool:
        """Whether it is a tag and its word."""
        return isinstance(self.children[0], str)

    def leaves(self) -> Iterator[Tree]:
        """Tags with their words, from left to right."""
        if self.is_word:
            yield self
        else:
            for child in self.children:
                yield from child.leaves()

    def words(self) -> list[str]:
        """The words, from left to right."""
        return [leaf.children[0] for leaf in self.leaves()]


def read_trees(text: str) -> list[Tree]:
    """The trees of a text in brackets, as the Penn Treebank's `.mrg` files have them.

    Raises:
        ValueError: if brackets do not balance, or there is an empty one, or a word beside trees.
    """
    return _trees(re.findall(r"[()]|[^\s()]+", text))


def _trees(tokens: Sequence[str | Tree]) -> list[Tree]:
    open_: list[list] = [[]]
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == OPEN:
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
            raise ValueError(f"brackets must balance, got {token!r} outside of all of them")
    if len(open_) > 1:
        raise ValueError(f"brackets must balance, got {len(open_) - 1} that stay open")
    return open_[0]


def read_treebank(path: str | Path) -> dict[int, list[Tree]]:
    """The trees of each file `combined/wsj_0001.mrg` of a zipped Penn Treebank, simplified.

    Returns:
        Trees by the file's number, in order.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no zip file, has none of these files, or one is broken.
    """
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if match := re.search(r"combined/wsj_(\d+)\.mrg$", name):
                    trees = map(simplified, read_trees(archive.read(name).decode("latin-1")))
                    found[int(match[1])] = [tree for tree in trees if tree is not None]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} must be a zip file: {error}") from error
    if not found:
        raise ValueError(f"{path} must hold files such as combined/wsj_0001.mrg, got none")
    return found


def simplified(tree: Tree) -> Tree | None:
    """The tree as parsers are measured on it; None if nothing is left.

    Function tags go ("NP-SBJ-1" is "NP"), and so do what is not spoken, what is empty without it,
    and the root that has no label or is called TOP or ROOT, where it is over one tree.
    """
    if tree.is_word:
        return None if tree.label == EMPTY else tree
    children = tuple(child for x in tree.children if (child := simplified(x)) is not None)
    if not children:
        return None
    if tree.label in ("", "ROOT", "TOP"):
        return children[0] if len(children) == 1 else Tree("TOP", children)
    return Tree(re.split("[-=|]", tree.label)[0], children)


def linearize(tree: Tree, tags: bool = False) -> str:
    """A line of symbols, depth first (Vinyals et al. 2015, section 2.2): "(S (NP XX XX ) XX )".

    Closing brackets have no label, unlike there: it follows from the one that opened, so to predict
    it can only go wrong.

    Args:
        tree: over words.
        tags: whether a word is its tag; else all are the one symbol XX, as there.
    """
    if tree.is_word:
        return tree.label if tags else WORD
    inner = (linearize(child, tags) for child in tree.children)
    return " ".join([OPEN + tree.label, *inner, CLOSE])


def tree_of(line: str, words: Sequence[str]) -> Tree:
    """The inverse of `linearize`, given the words: each symbol without a bracket is one's tag.

    Raises:
        ValueError: if the line is no tree over exactly these words.
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
    """Label, first word and the one after the last of each constituent, for `bracket_f1`.

    As EVALB counts them under COLLINS.prm: tags and TOP do not count, PRT is ADVP, and words are
    numbered without punctuation, so that nothing depends on where it is attached.

    Args:
        tree: over words.
        without: places of words that are left out, of `punctuation`.
    """
    found, left_out = [], frozenset(without)

    def walk(node, place, number):
        begin = number
        for child in node.children:
            if child.is_word:
                place, number = place + 1, number + (place not in left_out)
            else:
                place, number = walk(child, place, number)
        if node.label != "TOP" and number > begin:
            found.append(("ADVP" if node.label == "PRT" else node.label, begin, number))
        return place, number

    if not tree.is_word:
        walk(tree, 0, 0)
    return found


def punctuation(tree: Tree) -> list[int]:
    """Places of the words whose tags are punctuation."""
    return [i for i, leaf in enumerate(tree.leaves()) if leaf.label in PUNCTUATION]


def right_branching(words: Sequence[str], label: str = "VP", root: str = "S") -> Tree:
    """The baseline in which each constituent is a word and the rest, the last word apart."""
    *inner, last = [Tree(WORD, (word,)) for word in words]
    if not inner:
        return Tree(root, (last,))
    tree = inner[-1] if len(inner) == 1 else Tree(label, tuple(inner[-2:]))
    for word in inner[-3::-1]:
        tree = Tree(label, (word, tree))
    return Tree(root, (*(tree.children if tree.label == label else (tree,)), last))
