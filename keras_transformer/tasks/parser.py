"""The `Parser`, which finds phrase-structure trees of sentences."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.data.trees import Tree, tree_of
from keras_transformer.decoding import TreeConstraint
from keras_transformer.models import Transformer
from keras_transformer.saved.folder import load_with_sides, save_folder
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.system.named_models import located
from keras_transformer.text import WordTokenizer
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.translator import Translator

MAX_EXTRA_LENGTH = 180  # default maximum number of symbols of a tree besides its words
BESIDES_WORDS = 4  # tokens of the shortest tree besides its words: two brackets, BOS and EOS


class Parser:
    """A parser of sentences into phrase-structure trees that `training.parsing` saved.

    ```python
    parser = Parser.load("saved_models/parser")
    (tree,) = parser.parse(["The cat sat on the mat ."])
    print(tree)  # with brackets, as in a treebank
    ```

    The model translates words to the symbols of a linearized tree (Vaswani et al. 2017, section
    6.3). The search allows only symbols that can be completed to one tree over the words, so every
    result is a tree.

    Args:
        model: A `Transformer` from words to linearized trees.
        tokenizer: Tokenizer that the model was trained with.

    Raises:
        ValueError: If the tokenizer does not match the model, or lacks the symbols of trees.
    """

    def __init__(self, model: Transformer, tokenizer: WordTokenizer):
        words = isinstance(tokenizer, WordTokenizer)
        require(words, "tokenizer", type(tokenizer).__name__, "a WordTokenizer")
        self._translator = Translator(model, tokenizer)
        self._constraint = TreeConstraint.of(tokenizer.pieces_of("target"))
        self.model, self.tokenizer = model, tokenizer

    @spelled_out(Search, TRANSLATE, max_extra_length=MAX_EXTRA_LENGTH)
    def parse(
        self,
        sentences: Sequence[str],
        *,
        tokens_per_batch: int = 4096,
        strict: bool = False,
        **options: Any,
    ) -> list[Tree | None]:
        """Return the best tree of each sentence; None for a sentence without words.

        Args:
            sentences: Sentences whose words and punctuation are separated by spaces, as in the
                treebank that the parser was trained on. Round brackets in words are replaced by
                -LRB- and -RRB-, as in the treebank.
            tokens_per_batch: Maximum words per batch, padding included.
            strict: Whether a sentence of more than `max_length - 4` words raises ValueError; else
                it is cut with a warning.
            options: Options of `search.Search`, such as `beam_size=4`, `length_penalty=0.6` and
                `max_extra_length=180`, except those of sampling.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If an option is out of range, or a sentence is too long and `strict` is set.
        """
        texts = [self._words(x, strict) for x in checked_texts(sentences, "sentences")]
        options = {"max_extra_length": MAX_EXTRA_LENGTH, **options}
        lines = self._translator.translate(
            [" ".join(words) for words in texts],
            tokens_per_batch=tokens_per_batch,
            constraint=self._constraint,
            **options,
        )
        pairs = zip(lines, texts, strict=True)
        return [tree_of(line, words) if words else None for line, words in pairs]

    def _words(self, sentence, strict):
        """Return the words of a sentence, cut to the model's limit, with brackets replaced."""
        words = sentence.replace("(", "-LRB-").replace(")", "-RRB-").split()
        limit = self.model.config.max_length - BESIDES_WORDS
        if len(words) > limit:
            problem = (
                f"sentences must have at most {limit} words each, for the model's max_length, got "
                f"{len(words)} in {sentence!r:.60}"
            )
            if strict:
                raise ValueError(problem)
            warnings.warn(f"{problem}: it is cut", stacklevel=4)
        return words[:limit]

    def in_words(self, found: Tree | None) -> str:
        """Return the tree of a sentence as a line of text with brackets; "" if there is none."""
        return str(found or "")

    def save(self, folder: str | os.PathLike) -> None:
        """Write `model.keras`, the tokenizer's files, `config.json` and a model card.

        Any backend can load them.
        """
        save_folder(folder, self.model, self.tokenizer, {"task": "parsing"})

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Parser:
        """Load a saved parser, on any backend.

        Args:
            folder: Folder that `save` or `training.parsing` wrote.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not a saved parser, or a file in it is broken.
        """
        folder = located(folder)
        model, tokenizer, _ = load_with_sides(folder, "parser", precision)
        try:
            return cls(model, tokenizer)  # type: ignore[arg-type]  # checked there
        except ValueError as error:
            raise ValueError(f"{folder} is not a saved parser: {error}") from error
