"""Several training corpora as one: their text, shares and languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.data.built_in_corpora import Corpus
from keras_transformer.data.cleaning import clean
from keras_transformer.data.text_files import Pairs, read_pairs
from keras_transformer.text.marian_tokenizer import tag_of
from keras_transformer.training.corpus_options import CorpusOptions
from keras_transformer.training.document_pairs import separated, with_context
from keras_transformer.training.noise import with_noise
from keras_transformer.training.prefix_pairs import with_prefixes
from keras_transformer.training.runs import say


@dataclass(frozen=True)
class _Text:
    """The text of one of the `corpora` of a recipe in one direction, without tags.

    With `context_sentences`, the pairs of `train` and `validation` contain context; `test` has one
    sentence per pair, and an empty pair at the end of each document.
    """

    options: CorpusOptions
    languages: tuple[str, str]
    train: Pairs
    validation: Pairs
    test: Pairs


def read_corpora(
    tables: Sequence[CorpusOptions],
    folder: Path,
    temperature: float = 1.0,
    train_size: int | None = None,
    context_sentences: int = 0,
    noise: float = 0.0,
    seed: int = 0,
    prefix_pairs: float = 0.0,
    **cleaning: Any,
) -> Corpus:
    """Read several corpora, clean each, and join them to one.

    With several pairs of languages, a tag before each source names its target language.

    Args:
        tables: Options of each corpus.
        folder: Folder that paths are relative to.
        temperature: T of `visits_of`; 1: the weights of the corpora are used.
        train_size: Maximum number of training pairs of each corpus; None: all.
        context_sentences: Number of previous sentences that are joined to each sentence of a corpus
            with `documents`; 0: none.
        noise, seed: Arguments `share` and `seed` of `with_noise`.
        prefix_pairs: Argument `share` of `with_prefixes`.
        cleaning: Options of `clean`.

    Raises:
        ValueError: If a file is broken, a corpus is empty after cleaning, the weight of a corpus is
            so small that none of its pairs occurs, no corpus has validation text, a text contains a
            tag, or `context_sentences` is given and no corpus has `documents`.
        FileNotFoundError: If a file is missing.
    """
    if context_sentences:
        has_documents = any(table.documents for table in tables)
        accepted = "0 where no corpus has documents = true"
        require(has_documents, "context_sentences", context_sentences, accepted)
    texts = [
        replace(x, train=with_prefixes(with_noise(x.train, noise, seed), prefix_pairs, seed))
        for table in tables
        for x in _read(table, folder, train_size, context_sentences, cleaning)
    ]
    pairs_of_languages = dict.fromkeys(x.languages for x in texts)
    is_multilingual = len(pairs_of_languages) > 1
    tags = {x.options.tag: None for x in texts if x.options.tag}
    if is_multilingual:
        tags |= {tag_of(target): None for _, target in pairs_of_languages}
    _refuse_tags(texts, tags)
    sizes, weights = [len(x.train) for x in texts], [x.options.weight for x in texts]
    visits = visits_of(sizes, weights, temperature)
    for text, size, x in zip(texts, sizes, visits, strict=True):
        accepted = f"at least {1 / size:.2g} for {text.options.source}, of {size} pairs"
        require(size * x >= 1, "weight", text.options.weight, accepted)
    _report(texts, visits)

    def joined(part):
        pairs = []
        for text in texts:
            words = ([tag_of(text.languages[1])] if is_multilingual else []) + [text.options.tag]
            before = "".join(f"{word} " for word in words if word)
            pairs += [(before + source, target) for source, target in getattr(text, part)]
        return pairs

    tests: dict[str, Pairs] = {}
    for text in texts:
        if text.test:
            between = [("", "")] if context_sentences else []
            tests.setdefault(_name(text), []).extend([*text.test, *between])
    require(tests, "corpora", [x.source for x in tables], "with a validation_source in one of them")
    sources, targets = (
        [*dict.fromkeys(languages)] for languages in zip(*pairs_of_languages, strict=True)
    )
    return Corpus(
        "corpora",
        sources[0] if len(sources) == 1 else None,
        targets[0] if len(targets) == 1 else None,
        joined("train"),
        joined("validation"),
        tests,
        visits=np.repeat(visits, sizes),
        symbols=tuple(x.options.tag for x in texts if x.options.tag),
        directions={_name(x): x.languages for x in texts} if is_multilingual else {},
    )


def visits_of(
    sizes: Sequence[int], weights: Sequence[float], temperature: float = 1.0
) -> list[float]:
    """Return how often a pair of each corpus occurs in an epoch.

    With a temperature T above 1, the share of a corpus of n pairs is proportional to n^(1/T)
    (Arivazhagan et al. 2019, section 4.2): pairs of the largest corpus occur once, pairs of smaller
    corpora more often.

    Args:
        sizes: Number of pairs of each corpus.
        weights: Weight of each corpus, used if the temperature is 1.
        temperature: T, at least 1; a higher one makes the shares more equal.
    """
    if temperature == 1:
        return [float(x) for x in weights]
    return [(max(sizes) / size) ** (1 - 1 / temperature) for size in sizes]


def _read(options, folder, size, context, cleaning):
    """Return the texts of one of the `corpora`: one `_Text`, or two with `both_directions`."""
    languages = options.source_language, options.target_language
    sides = dict(zip(("source_language", "target_language"), languages, strict=True))

    def read(part):
        files = options.files(part)
        return read_pairs(*(folder / file for file in files), **sides) if files else []

    train, validation = read("")[:size], read("validation_")
    test = validation
    if context:
        if not options.documents:
            train, test = separated(train), separated(test)
        train, validation = with_context(train, context), with_context(test, context, alone=False)
    train, report = clean(train, **cleaning)
    if not train:
        raise ValueError(f"{folder / options.source} is empty after cleaning: {report}")
    say(f"corpus {'-'.join(languages)} of {options.source}: {report}")
    texts = [_Text(options, languages, train, validation, test)]
    if options.both_directions:
        swapped = ([(y, x) for x, y in part] for part in (train, validation, test))
        texts.append(_Text(options, languages[::-1], *swapped))
    return texts


def _name(text):
    return f"validation {'-'.join(text.languages)}"


def _refuse_tags(texts, tags):
    """Raise ValueError if a source text contains one of the tags."""
    if not tags:
        return
    pattern = re.compile("|".join(map(re.escape, tags)))
    for text in texts:
        for source, _ in (*text.train, *text.validation):
            if match := pattern.search(source):
                raise ValueError(
                    f"{text.options.source} or its validation text contains {match[0]}, which is "
                    f"a tag: {source!r:.60}"
                )


def _report(texts, visits):
    counts = [len(text.train) * x for text, x in zip(texts, visits, strict=True)]
    for text, x, count in zip(texts, visits, counts, strict=True):
        tag = f" with {text.options.tag}" if text.options.tag else ""
        say(
            f"{'-'.join(text.languages)}{tag}: {len(text.train):,} pairs, {x:.2f} times per epoch, "
            f"{count / sum(counts):.1%} of the pairs"
        )
