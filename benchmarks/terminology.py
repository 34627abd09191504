"""Glossaries: how many terms a translator keeps with and without one, and the cost.

    python -m benchmarks.terminology FOLDER --train EN DE --test EN DE [--terms 500]
        [--sentences 500] [--rounds 3] [--beam-size 4] [--inline] [--save]

FOLDER is a translator, with `--inline` one that was trained with `inline_terms`: then the terms are
written into the sources, and the search is not constrained. The glossary is made from TRAIN: its
most frequent words of five letters or more whose most probable translation (IBM model 1) is a
German noun, with the inflections of that noun, which are the other candidates with the same first
four letters. The sentences are the first of TEST that have a term. In three rows: sentences whose
reference has the terms, as Dinu et al. 2019 choose them; all sentences; all sentences, with a
glossary of other nouns, the best candidates that are no inflections, which the translator rarely
chooses by itself.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import contest

STEM = 4  # letters that inflections share
COLUMNS = ("sentences", "terms", "kept without", "kept", "BLEU without", "BLEU", "time")


def candidates(sources: list[str], targets: list[str], count: int) -> dict[str, list[str]]:
    """Return the most probable translations of the most frequent words, best first."""
    from keras_transformer.text.lexical_shortlist import Shortlist
    from keras_transformer.text.words import WordTokenizer

    cleaned = [[" ".join(x.strip(".,;:!?\"'()") for x in text.split()) for text in side]
               for side in (sources, targets)]  # fmt: skip
    tokenizer = WordTokenizer.train(*cleaned, min_count=5)
    made = Shortlist.train(tokenizer, *cleaned, per_piece=8, frequent=0)
    words = tokenizer.pieces_of("source")
    ids = {word: i for i, word in enumerate(words)}
    of_target = tokenizer.pieces_of("target")
    counts = Counter(word for text in cleaned[0] for word in text.split() if len(word) > STEM)
    frequent = [word for word, _ in counts.most_common() if word in ids and word.islower()]
    return {
        word: [of_target[i] for i in made.candidates[ids[word]] if i > tokenizer.eos_id]
        for word in frequent[:count]
    }


def glossaries(found: dict[str, list[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the nouns with their inflections, and with other nouns in place of them."""

    def alike(word, other):
        return word[:STEM] == other[:STEM]

    nouns = {word: row for word, row in found.items() if row and row[0][0].isupper()}
    forms = {word: [x for x in row if alike(x, row[0])] for word, row in nouns.items()}
    others = {
        word: [x for x in row if not alike(x, row[0]) and x[0].isupper()][:1]
        for word, row in nouns.items()
    }
    return forms, {word: row for word, row in others.items() if row}


def measured(
    translator: Any, pairs: list, glossary: Any, rounds: int, inline: bool, **options: Any
) -> list:
    """Return the cells of a row: terms, kept, BLEU and time, without and with the glossary."""
    import sacrebleu

    from keras_transformer.text.glossary import is_kept

    sources, references = zip(*pairs, strict=True)
    wanted = [(i, forms) for i, text in enumerate(sources) for forms in glossary.terms_in(text)]
    kept, bleu, seconds = [], [], {}
    requests = [dict(texts=list(sources)), dict(texts=list(sources), constraint=glossary)]
    if inline:
        requests[1] = dict(texts=[glossary.inlined(text) for text in sources])
    for request in requests:
        lines = translator.translate(**request, **options)
        kept.append(sum(is_kept(forms, lines[i]) for i, forms in wanted) / len(wanted))
        bleu.append(sacrebleu.corpus_bleu(lines, [references]).score)
    for _ in range(rounds):
        for which, request in enumerate(requests):
            start = time.process_time()
            translator.translate(**request, **options)
            seconds.setdefault(which, []).append(time.process_time() - start)
    plain, with_terms = (statistics.median(x) for x in seconds.values())
    return [
        str(len(wanted)),
        *(f"{100 * x:.1f} %" for x in kept),
        *(f"{x:.2f}" for x in bleu),
        f"{with_terms / plain:.2f}",
    ]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=Path, nargs=2, required=True)
    parser.add_argument("--test", type=Path, nargs=2, required=True)
    parser.add_argument("--terms", type=int, default=500)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--inline", action="store_true", help="write terms into the sources")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()

    from keras_transformer import Translator
    from keras_transformer.data.text_files import read_pairs
    from keras_transformer.text.glossary import Glossary, is_kept

    train, test = (list(read_pairs(*x)) for x in (arguments.train, arguments.test))
    terms = candidates(*map(list, zip(*train, strict=True)), arguments.terms)
    translator = Translator.load(arguments.folder)
    forms, others = map(Glossary, glossaries(terms))

    def in_reference(pair):
        return all(is_kept(row, pair[1]) for row in forms.terms_in(pair[0]))

    rows = []
    for name, glossary, is_chosen in (
        ("whose reference has the terms", forms, in_reference),
        ("all", forms, bool),
        ("all, other nouns", others, bool),
    ):
        pairs = [pair for pair in test if glossary.terms_in(pair[0]) and is_chosen(pair)]
        pairs = pairs[: arguments.sentences]
        options = dict(inline=arguments.inline, beam_size=arguments.beam_size)
        cells = measured(translator, pairs, glossary, arguments.rounds, **options)
        rows.append([f"{len(pairs)} {name}", *cells])
    note = f"{len(forms)} and {len(others)} terms; beam {arguments.beam_size}; time of the "
    note += f"processor, with the glossary by without, medians of {arguments.rounds} rounds."
    parts = [contest.table(COLUMNS, rows), note]
    contest.report("terminology", "Translation with a glossary", parts, arguments.save)


if __name__ == "__main__":
    main()
