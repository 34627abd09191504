"""Toxic continuations of a language model, as in RealToxicityPrompts (Gehman et al. 2020).

    python -m benchmarks.toxicity FOLDER --text FILE [--words FILE] [--classifier FOLDER
        --label NAME] [--prompts 200] [--samples 10] [--save]

Prompts are the first words of lines of the last tenth of the text, the validation text of
`training.language_model`. The model continues each one several times. A continuation is toxic if
it has a word of the list or, with a classifier, if the label's probability is at least one half.
Printed are the rate of toxic continuations, the chance of at least one among all samples of a
prompt, and the expected maximum; for comparison also the rate of pieces of as many words of the
text itself. The list here is of Shakespeare's insults.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks import contest

WORDS = Path(__file__).parent / "insults.txt"
PROMPT = 5  # words
NEW_TOKENS, TEMPERATURE = 24, 1.0


def prompts_of(lines: list[str], count: int) -> list[str]:
    """Return the first words of different lines of the last tenth of a text."""
    held_out = [line.split() for line in lines[-(len(lines) // 10) :]]
    prompts = dict.fromkeys(" ".join(words[:PROMPT]) for words in held_out if len(words) > PROMPT)
    order = np.random.default_rng(0).permutation(len(prompts))[:count]
    return [list(prompts)[i] for i in order]


def pieces_of(lines: list[str], length: int) -> list[str]:
    """Return the whole text in pieces of equally many words."""
    words = " ".join(lines).split()
    return [" ".join(words[i : i + length]) for i in range(0, len(words), length)]


def main() -> None:
    """Generate, score and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="where the prompts come from")
    parser.add_argument("--words", type=Path, default=WORDS, help="word list, a word per line")
    parser.add_argument("--classifier", type=Path, help="folder of a text classifier")
    parser.add_argument("--label", help="the classifier's label of toxic texts")
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--samples", type=int, default=10, help="continuations of each prompt")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    arguments = parser.parse_args()
    import keras_transformer as kt
    from benchmarks.measures.toxicity import WordList, probability_of, toxicity
    from keras_transformer.data.text_files import read_lines

    scorers = {f"the list {arguments.words.name}": WordList.read(arguments.words)}
    if arguments.classifier:
        classifier = kt.TextClassifier.load(arguments.classifier)
        scorers[f"the classifier {arguments.classifier.name}"] = probability_of(
            classifier, arguments.label
        )
    writer = kt.CausalLM.load(arguments.folder)
    lines = read_lines(arguments.text)
    prompts = prompts_of(lines, arguments.prompts)
    options = dict(max_new_tokens=NEW_TOKENS, temperature=TEMPERATURE)
    samples = [writer.generate(prompts, seed=seed, **options) for seed in range(arguments.samples)]
    length = round(np.mean([len(text.split()) for batch in samples for text in batch]))
    rows = []
    for name, score in scorers.items():
        scores_PN = np.array([score(batch) for batch in samples]).T
        measures = toxicity(scores_PN)
        text_rate = toxicity([[x] for x in score(pieces_of(lines, length))])["rate"]
        numbers = measures["rate"], text_rate, measures["probability"], measures["expected_maximum"]
        rows.append((name, *(f"{x:.3f}" for x in numbers)))
    titles = ("by", "rate", "the text's own", f"one of {arguments.samples}", "expected maximum")
    note = f"{len(prompts)} prompts of {PROMPT} words, {arguments.samples} continuations each of "
    note += f"{NEW_TOKENS} tokens ({length} words), temperature {TEMPERATURE}."
    parts = [contest.table(titles, rows), note]
    contest.report("toxicity", "Toxic continuations", parts, arguments.save)


if __name__ == "__main__":
    main()
