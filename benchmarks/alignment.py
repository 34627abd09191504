"""Word alignments of translators of the built-in grammar, against its lexicon.

    python -m benchmarks.alignment FOLDER [FOLDER ...] [--sentences 1000] [--save]

Each FOLDER is a translator from English to German. The lexicon knows which English and German forms
belong to one noun, adjective, verb or name. Where a sentence of the test set and its translation
have one form each of a word, these two must be aligned. The table has the share of such links that
are found by `align`, and by `align_tokens` from the words of the training text alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from benchmarks import contest

ENDINGS = ("", "e", "en", "er", "es", "em")  # of German adjectives
CASES = ("", "n", "en", "s", "es")  # of German nouns


def lexemes() -> Iterable[tuple[str, set[str], set[str]]]:
    """Yield the kind, the English and the German forms of each word of the lexicon."""
    from keras_transformer.demo import lexicon

    for noun in lexicon.NOUNS.values():
        german = {x + case for x in (noun.german, noun.german_plural) if x for case in CASES}
        yield "nouns", {noun.english, noun.english_plural} - {""}, german
    for adjective in lexicon.ADJECTIVE_LIST:
        yield "adjectives", {adjective.english}, {adjective.german + x for x in ENDINGS}
    for verb in lexicon.VERB_LIST:
        german = {*verb.present, *verb.preterite, verb.participle, verb.prefix + verb.infinitive}
        yield "verbs", set(verb.english), german - {""}
    for name in (*lexicon.WORDS["women"], *lexicon.WORDS["men"]):
        yield "names", {name, f"{name}'s"}, {name, f"{name}s"}


def known() -> tuple[dict[str, int], dict[str, int], list[str]]:
    """Map English forms, and German forms, to the index of their word; list the kinds of all words.

    Forms that belong to several words are left out. Forms are in lower case.
    """
    owners: tuple[dict, dict] = defaultdict(set), defaultdict(set)
    kinds = []
    for number, (kind, *sides) in enumerate(lexemes()):
        kinds.append(kind)
        for forms, numbers in zip(sides, owners, strict=True):
            for form in forms:
                numbers[form.lower()].add(number)
    english, german = ({x: min(y) for x, y in numbers.items() if len(y) == 1} for numbers in owners)
    return english, german, kinds


def truth(source: list[str], target: list[str], lexicon: tuple) -> list[tuple[str, int, int]]:
    """Return the links that are certain: (kind, index of the source word, of the target word)."""
    english, german, kinds = lexicon
    places: tuple[dict, dict] = defaultdict(list), defaultdict(list)
    for side, words, forms in ((0, source, english), (1, target, german)):
        for place, word in enumerate(words):
            if (number := forms.get(word.lower())) is not None:
                places[side][number].append(place)
    return [
        (kinds[number], *source_places, *places[1][number])
        for number, source_places in places[0].items()
        if len(source_places) == 1 == len(places[1][number])
    ]


def shares(gold: list, found: Iterable[dict[int, int]]) -> dict[str, float]:
    """Return the percentage of the links that an aligner gives, by kind.

    Args:
        gold: The certain links of each sentence, from `truth`.
        found: For each sentence, the source word that the aligner gives for a target word.
    """
    counts: dict = defaultdict(lambda: [0, 0])
    for links, alignment in zip(gold, found, strict=True):
        for kind, source, target in links:
            for name in (kind, "all"):
                counts[name][0] += alignment.get(target) == source
                counts[name][1] += 1
    return {name: 100 * hits / total for name, (hits, total) in counts.items()}


def main() -> None:
    """Align and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--sentences", type=int, default=1000, help="of the test set")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()

    from keras_transformer import Translator
    from keras_transformer.analysis.alignment import align, words
    from keras_transformer.data.alignments import align_tokens
    from keras_transformer.data.built_in_corpora import load_corpus

    corpus = load_corpus("grammar")
    pairs = next(iter(corpus.tests.values()))[: options.sentences]
    lexicon = known()

    def split(text):
        return [text[start:end] for start, end in words(text)]

    gold = [truth(split(source), split(target), lexicon) for source, target in pairs]
    numbers: dict[str, int] = {}
    ids = [
        [[numbers.setdefault(word, len(numbers)) for word in split(text)] for text in side]
        for side in zip(*pairs, *corpus.train, strict=True)
    ]
    learned = align_tokens(*ids)[: len(pairs)]
    columns = {"the text alone": [{t: int(s) for t, s in enumerate(x)} for x in learned]}
    for folder in options.folders:
        alignments = align(Translator.load(folder), *map(list, zip(*pairs, strict=True)))
        columns[folder.name] = [{t: s for s, t in links} for links in alignments]
    results = {name: shares(gold, column) for name, column in columns.items()}
    rows = [
        (
            kind,
            sum(kind in (link[0], "all") for links in gold for link in links),
            *(f"{x[kind]:.1f}" for x in results.values()),
        )
        for kind in ("nouns", "adjectives", "verbs", "names", "all")
    ]
    parts = [
        contest.table(("words", "links", *results), rows),
        f"Percentage of the sure links that are found, {len(pairs)} sentences.",
    ]
    contest.report("alignment", "Word alignments on the grammar", parts, options.save)


if __name__ == "__main__":
    main()
