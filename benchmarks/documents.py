"""Pronouns in documents of the built-in grammar, translated with and without previous sentences.

    python -m benchmarks.documents FOLDER [FOLDER ...] [--context 0 1 2] [--save]

Each FOLDER is a translator of the recipe `documents`. The texts are the 500 documents of the test
set of that corpus. In each sentence but the first, "it" refers to a noun of an earlier sentence and
is er, sie, es or ihn; the sentence itself does not tell which. The table has the share of these
sentences that have the pronoun of the reference, and BLEU of all sentences.

    keras-transformer train --recipe documents --output saved_models/documents
    keras-transformer train --recipe documents --set context_sentences=0 --output saved_models/alone
    python -m benchmarks.documents saved_models/documents saved_models/alone
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks import contest

PRONOUN = re.compile(r"\b(er|sie|es|ihn)\b", re.IGNORECASE)


def right_pronouns(translations: Sequence[str], references: Sequence[str]) -> tuple[int, int]:
    """Return the number of translations with their reference's pronouns, and of those that count.

    Args:
        translations: German sentences.
        references: Their references. Only those count that have a pronoun and follow another
            sentence; an empty text ends a document.
    """
    right = count = 0
    begins = True
    for translation, reference in zip(translations, references, strict=True):
        wanted = [x.lower() for x in PRONOUN.findall(reference)]
        if wanted and not begins:
            right += [x.lower() for x in PRONOUN.findall(translation)] == wanted
            count += 1
        begins = not reference
    return right, count


def main() -> None:
    """Translate, count and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--context", type=int, nargs="+", default=[0, 1, 2], help="sentences")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()

    import sacrebleu

    from keras_transformer import Translator
    from keras_transformer.data.built_in_corpora import load_corpus
    from keras_transformer.text.context import reads_context
    from keras_transformer.translate.document_translation import translate_documents

    sources, references = zip(*load_corpus("documents", train_size=1).tests["test"], strict=True)
    rows = []
    for folder in options.folders:
        translator = Translator.load(folder)
        for context in options.context if reads_context(translator.tokenizer) else [0]:
            if context:
                translations = translate_documents(translator, sources, context)
            else:
                translations = translator.translate(sources)
            right, count = right_pronouns(translations, references)
            filled = [i for i, text in enumerate(references) if text]
            texts, expected = [translations[i] for i in filled], [[references[i] for i in filled]]
            bleu = sacrebleu.corpus_bleu(texts, expected).score
            rows.append((folder.name, context, f"{100 * right / count:.1f}", f"{bleu:.2f}"))
    parts = [
        contest.table(("translator", "sentences before", "right pronouns, %", "BLEU"), rows),
        f"{count} pronouns in {references.count('')} documents.",
    ]
    contest.report("documents", "Pronouns in documents of the grammar", parts, options.save)


if __name__ == "__main__":
    main()
