"""Repetition and invention in the continuations of a language model of novels, against the novels.

    python -m benchmarks.stories FOLDER --text FILE ... [--prompts 50] [--save]

Prompts are the first words of lines of the last tenth of the texts. Each is continued in several
ways. Printed are, for the continuations and for as many words of the texts themselves: the share of
4-grams that occur twice in one text (repetition), the share of different bigrams (variety: Li et
al. 2016), and the share of words that the texts do not have (invention); and one continuation.
"""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path

from benchmarks import contest
from benchmarks.toxicity import pieces_of, prompts_of

NEW_TOKENS = 200
WAYS = {
    "the most probable word": {},
    "sampled, temperature 1": dict(temperature=1.0),
    "temperature 0.8, top-p 0.9": dict(temperature=0.8, top_p=0.9),
    "the same, repetition penalty 1.2": dict(temperature=0.8, top_p=0.9, repetition_penalty=1.2),
}


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"\w+", text.casefold())


def repetition(texts: list[str]) -> float:
    """Return the share of 4-grams of words that occurred earlier in the same text."""
    grams = [list(zip(*(words_of(x)[i:] for i in range(4)), strict=False)) for x in texts]
    total = sum(map(len, grams))
    return 1 - sum(len(set(text_grams)) for text_grams in grams) / total if total else 0.0


def variety(texts: list[str]) -> float:
    """Return the number of different bigrams of words divided by that of all."""
    pairs = [pair for x in texts for pair in itertools.pairwise(words_of(x))]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def main() -> None:
    """Generate, measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--text", type=Path, action="append", required=True)
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    arguments = parser.parse_args()
    import keras_transformer as kt
    from keras_transformer.data.text_files import read_lines

    writer = kt.CausalLM.load(arguments.folder)
    lines = [line for path in arguments.text for line in read_lines(path)]
    known = {word for line in lines for word in words_of(line)}
    prompts = prompts_of(lines, arguments.prompts)
    texts = {
        name: writer.generate(prompts, max_new_tokens=NEW_TOKENS, seed=0, **options)
        for name, options in WAYS.items()
    }
    words = [len(words_of(x)) for group in texts.values() for x in group]
    texts["the novels"] = pieces_of(lines, round(sum(words) / len(words)))[-arguments.prompts :]
    rows = []
    for name, group in texts.items():
        all_words = [word for x in group for word in words_of(x)]
        invented = sum(word not in known for word in all_words) / len(all_words)
        rows.append((name, *(f"{x:.1%}" for x in (repetition(group), variety(group), invented))))
    example = f"{prompts[0]}{texts[list(WAYS)[-1]][0]}".replace("\n", " ")
    parts = [
        contest.table(("", "4-grams repeated", "different bigrams", "words invented"), rows),
        f"{len(prompts)} prompts, {NEW_TOKENS} new tokens each. The first one, in the last way:",
        f"> {example}",
    ]
    contest.report("stories", "Stories, continued", parts, arguments.save)


if __name__ == "__main__":
    main()
