"""Quality of one translator of many language pairs, in all directions, on Tatoeba.

    python -m benchmarks.many_pairs FOLDER --data DATA [--part dev] [--single en-de=FOLDER ...]
        [--limit 0] [--beam-size 5] [--length-penalty 1.0] [--save]

FOLDER is a translator of the recipe `tatoeba`, DATA the folder of `tatoeba-en-de` and so on.
Between English and another language the files are the test sets. For the other directions, such as
German to French, there are no training pairs (zero-shot, Johnson et al. 2017, section 4.6). Their
test sets are made of the English sentences that two files share: the German and the French
translation of one sentence are a pair, the first ones if there are several. "Through English" is
the same model, twice. `--single` names translators of one pair to compare with.

    keras-transformer train --recipe tatoeba --data-folder DATA --output saved_models/many
    for code in de fr es; do
        files=DATA/tatoeba-en-$code
        keras-transformer train --recipe multi30k --output saved_models/en-$code \\
            --train $files/train.en.gz --train $files/train.$code.gz \\
            --validation $files/dev.en.gz --validation $files/dev.$code.gz \\
            --set target_language=$code --set epochs=10 --set model.dropout=0.1
    done
    python -m benchmarks.many_pairs saved_models/many --data DATA \\
        --single en-de=saved_models/en-de --single en-fr=saved_models/en-fr \\
        --single en-es=saved_models/en-es
"""

from __future__ import annotations

import argparse
import copy
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import contest

PIVOT = "en"
Pairs = list[tuple[str, str]]
Direction = tuple[str, str]


def test_sets(data: Path, part: str, languages: Sequence[str]) -> dict[Direction, Pairs]:
    """Return the pairs of each direction between English and these languages, and between them.

    Args:
        data: Folder of the folders `tatoeba-en-de` and so on.
        part: Name of the files before the language code, such as "dev".
        languages: Codes of the languages other than English.
    """
    from keras_transformer.data.text_files import read_pairs

    sets: dict[Direction, Pairs] = {}
    for code in languages:
        folder = data / f"tatoeba-{PIVOT}-{code}"
        files = (folder / f"{part}.{language}.gz" for language in (PIVOT, code))
        sets[PIVOT, code] = read_pairs(*files)
    sets |= {(code, PIVOT): _swapped(sets[PIVOT, code]) for code in languages}
    for first, second in itertools.combinations(languages, 2):
        pairs = shared(sets[PIVOT, first], sets[PIVOT, second])
        if pairs:
            sets |= {(first, second): pairs, (second, first): _swapped(pairs)}
    return sets


def shared(first: Pairs, second: Pairs) -> Pairs:
    """Return pairs of the first translations, in both lists, of each source that they share."""
    translations, others = dict(reversed(first)), dict(reversed(second))
    return [(translations[text], others[text]) for text in dict(first) if text in others]


def references(pairs: Pairs, all_pairs: Pairs) -> list[list[str | None]]:
    """Return lists of references as sacreBLEU takes them: the first, then what others wrote.

    Tatoeba has several translations of many a sentence, each of them right: of the first 1,000
    sentences into French, 663 have another one in the file.

    Args:
        pairs: The test set.
        all_pairs: The pairs whose targets count as references of equal sources.
    """
    targets: dict[str, dict[str, None]] = {}
    for source, target in all_pairs:
        targets.setdefault(source, {})[target] = None
    columns = [[target, *(x for x in targets[source] if x != target)] for source, target in pairs]
    return [list(row) for row in itertools.zip_longest(*columns)]


def scores(
    translator: Any,
    direction: Direction,
    pairs: Pairs,
    options: Mapping[str, Any],
    all_pairs: Pairs,
) -> dict[str, Any]:
    """Return BLEU and chrF in a direction, translated directly and in two steps through English.

    Args:
        translator: A translator of many pairs, or of this one.
        direction: Source and target language.
        pairs: The test set.
        options: Options of the search.
        all_pairs: Pairs with more references of the same sources.

    Returns:
        The scores of `evaluate`; `through`, BLEU in two steps; `all`, BLEU with all references;
        and `person`, the BLEU of the second reference, where there is one, with the first.
    """
    import sacrebleu

    from keras_transformer.evaluation.scores import evaluate

    def translate(texts, source, target):
        return translator.between(source, target).translate(texts, **options)

    translator = copy.copy(translator)
    translator.directions = ()  # else it takes the two steps by itself
    sources, targets = ([*side] for side in zip(*pairs, strict=True))
    outputs, choices = translate(sources, *direction), references(pairs, all_pairs)
    results = evaluate(outputs, targets)
    results["all"] = sacrebleu.corpus_bleu(outputs, choices).score
    if len(choices) > 1:
        others = [pair for pair in zip(*choices[:2], strict=True) if pair[1]]
        first, second = zip(*others, strict=True)
        results["person"] = sacrebleu.corpus_bleu(second, [first]).score
    if PIVOT not in direction and translator.tokenizer.target_languages:
        english = translate(sources, direction[0], PIVOT)
        results["through"] = evaluate(translate(english, PIVOT, direction[1]), targets)["bleu"]
    return results


def rows_of(
    translator: Any,
    sets: Mapping[Direction, Pairs],
    singles: Mapping[Direction, Any],
    options: Mapping[str, Any],
    limit: int = 0,
) -> list[tuple[str, ...]]:
    """Return a row of the table for each direction.

    Args:
        translator: The translator of many pairs.
        sets: Test sets, from `test_sets`.
        singles: Translators of one pair.
        options: Options of the search.
        limit: Maximum number of pairs of a direction to translate; 0: all.
    """
    rows = []
    for direction, all_pairs in sets.items():
        pairs = all_pairs[: limit or None]
        results = scores(translator, direction, pairs, options, all_pairs)
        single = singles.get(direction)
        alone = scores(single, direction, pairs, options, all_pairs)["bleu"] if single else None
        numbers = (results.get(x) for x in ("bleu", "chrf", "through", "all", "person"))
        numbers = (*numbers, alone)
        kind = "trained" if PIVOT in direction else "zero-shot"
        cells = ("" if x is None else f"{x:.1f}" for x in numbers)
        rows.append(("-".join(direction), kind, str(len(pairs)), *cells))
    return rows


def _swapped(pairs):
    return [(target, source) for source, target in pairs]


def main() -> None:
    """Score and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--data", type=Path, required=True, help="folder of tatoeba-en-de etc.")
    parser.add_argument("--part", default="dev", help="name of the files before the language")
    parser.add_argument(
        "--single", action="append", default=[], metavar="SOURCE-TARGET=FOLDER",
        help="a translator of one pair",
    )  # fmt: skip
    parser.add_argument("--limit", type=int, default=0, help="pairs of a direction; 0: all")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    arguments = parser.parse_args()

    from keras_transformer import Translator

    translator = Translator.load(arguments.folder)
    languages = [x for x in translator.tokenizer.target_languages if x != PIVOT]
    if not languages:
        parser.error(f"{arguments.folder} has no target languages to choose from")
    singles = {}
    for text in arguments.single:
        name, equals, folder = text.partition("=")
        if not equals or name.count("-") != 1:
            parser.error(f"--single must read SOURCE-TARGET=FOLDER, got {text!r}")
        singles[tuple(name.split("-"))] = Translator.load(folder)
    sets = test_sets(arguments.data, arguments.part, languages)
    options = dict(beam_size=arguments.beam_size, length_penalty=arguments.length_penalty)
    columns = (
        "direction", "training", "pairs", "BLEU", "chrF", "BLEU through English",
        "BLEU with all references", "BLEU of another reference",
        "BLEU of a model of this pair alone",
    )  # fmt: skip
    rows = rows_of(translator, sets, singles, options, arguments.limit)
    parts = [
        contest.table(columns, rows),
        f"{translator.model.count_params():,} weights; beam size {arguments.beam_size}, length "
        f"penalty {arguments.length_penalty:g}; sacreBLEU and chrF, one reference but where said. "
        "Another reference is the second translation of a sentence in the file, scored with the "
        "first, over the sentences that have one.",
    ]
    contest.report("many_pairs", "One model of many language pairs", parts, arguments.save)


if __name__ == "__main__":
    main()
