"""Contrastive accuracy: how often a translator prefers the right one of two translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from keras_transformer.config import require
from keras_transformer.translate.translator import Translator


class Sides(Protocol):
    """A source with a right and a wrong translation, such as `contrastive_pairs.Contrast`."""

    @property
    def english(self) -> str: ...
    @property
    def right(self) -> str: ...
    @property
    def wrong(self) -> str: ...


def contrastive_accuracy(
    translator: Translator, suite: Mapping[str, Sequence[Sides]], *, tokens_per_batch: int = 4096
) -> dict[str, float]:
    """Return in how many pairs the right translation is more probable, in percent.

    A pair is right if log p(right | source) > log p(wrong | source), summed over the tokens
    (Sennrich 2017, section 2). A guess gives 50 %.

    ```python
    suite = {name: contrasts(name) for name in PHENOMENA}
    print(contrastive_accuracy(Translator.load("saved_models/grammar"), suite))
    ```

    Args:
        translator: The translator.
        suite: The pairs of each phenomenon.
        tokens_per_batch: Maximum tokens per side of a batch, padding included.

    Raises:
        ValueError: If a phenomenon has no pairs, or a text is too long for the model.
    """
    for name, pairs in suite.items():
        require(len(pairs) > 0, f"suite[{name!r}]", pairs, "one or more pairs")
    every = [pair for pairs in suite.values() for pair in pairs]
    sources = [x.english for x in every]
    right, wrong = (
        translator.score(sources, texts, tokens_per_batch=tokens_per_batch)
        for texts in ([x.right for x in every], [x.wrong for x in every])
    )
    preferred = iter([a > b for a, b in zip(right, wrong, strict=True)])
    return {
        name: 100 * sum(next(preferred) for _ in pairs) / len(pairs)
        for name, pairs in suite.items()
    }
