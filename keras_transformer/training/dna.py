"""Train a small BERT that recognises splice junctions in DNA, with naive Bayes as a baseline.

`python -m training.dna --help`. The data are UCI's (Noordewier et al. 1991): 60 bases, in the
middle of which an exon ends (EI), an intron ends (IE), or neither (N). A fixed random fifth of the
distinct sequences is for testing; another tenth chooses the epoch. Each sequence becomes a text of
overlapping words of a few bases (Ji et al. 2021), for `training.text_classification`. The saved
`TextClassifier` takes the sequences themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from keras_transformer.config import require, require_whole
from keras_transformer.data.biology import overlapping_words, read_splice_junctions
from keras_transformer.data.tagged import numbered
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.system.files import replacing
from keras_transformer.tasks.text_classifier import TextClassifier
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import main, run_into
from training import text_classification


@run_into()
def train(
    sequences: Annotated[Path, typer.Option(help="UCI's splice.data; may be a .gz.")],
    output: options.Output,
    bases: Annotated[int, typer.Option(help="Bases per word.")] = 3,
    d_model: options.Width = 64,
    num_layers: options.Layers = 2,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.3,
    tokens_per_batch: options.TokensPerBatch = 2048,
    epochs: options.Epochs = 30,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 100,
    seed: options.Seed = 0,
) -> None:
    """Train a classifier of DNA; save it with its accuracy and that of naive Bayes."""
    require_whole("bases", bases, 1)
    found = sorted(read_splice_junctions(sequences).items())
    require(len(found) >= 10, f"sequences in {sequences}", len(found), "10 or more")
    longest = len(found[0][0])
    require(bases <= longest, "bases", bases, f"at most {longest}, the length of a sequence")
    order = np.random.default_rng(0).permutation(len(found))
    ends = [len(found) // 5, len(found) * 3 // 10]
    parts = {
        name: [found[row] for row in rows]
        for name, rows in zip(("test", "validation", "train"), np.split(order, ends), strict=True)
    }
    accuracies = _naive_bayes(parts, sequences)

    files = {name: output / f"{name}.tsv" for name in parts}
    for name, rows in parts.items():
        lines = ["words\tclass"]
        for sequence, label in rows:
            lines.append(f"{overlapping_words(sequence, bases)}\t{label}")
        with replacing(files[name]) as temporary:
            temporary.write_text("\n".join(lines), "utf-8")
    text_classification.train.__wrapped__(  # this run has locked the folder already
        **{f"{name}_file": path for name, path in files.items()},
        output=output,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        dropout=dropout,
        max_length=len(found[0][0]) + 2,
        tokens_per_batch=tokens_per_batch,
        epochs=epochs,
        peak_learning_rate=peak_learning_rate,
        warmup_steps=warmup_steps,
        seed=seed,
    )
    found = TextClassifier.load(output)
    TextClassifier(found.model, found.tokenizer, letters_per_word=bases).save(output)
    save_metrics(output, "naive_bayes", accuracies)
    print(f"accuracy of naive Bayes {accuracies['test_accuracy']:.4f}")


def _naive_bayes(parts, sequences):
    """Return the accuracies of naive Bayes.

    The letters are counted per class and position, with add-one (Laplace) smoothing.
    """
    labels = sorted({label for _, label in parts["train"]})
    letters = sorted(set("".join(sequence for rows in parts.values() for sequence, _ in rows)))
    one_hot, classes = {}, {}
    for name, rows in parts.items():
        one_hot[name] = np.array([[[x == y for y in letters] for x in own] for own, _ in rows])
        classes[name] = np.array(numbered([label for _, label in rows], labels, sequences))
    counts_CTV = [1 + one_hot["train"][classes["train"] == c].sum(0) for c in range(len(labels))]
    logs_CTV = np.log([own / own.sum(-1, keepdims=True) for own in counts_CTV])
    prior_C = np.log(np.bincount(classes["train"]))
    return {
        f"{name}_accuracy": np.mean(
            (np.einsum("btv,ctv->bc", one_hot[name], logs_CTV) + prior_C).argmax(-1)
            == classes[name]
        ).item()
        for name in ("validation", "test")
    }


if __name__ == "__main__":
    main(train)
