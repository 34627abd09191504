"""Trains a small BERT to tell splice junctions in DNA, beside naive Bayes: a file to one folder.

`python -m training.dna --help`. The data are UCI's (Noordewier et al. 1991): 60 bases, in whose
middle an exon ends (EI), one begins (IE), or neither (N). A fifth of the different sequences, by a
fixed draw, is for the measurement, another tenth chooses the epoch. Their overlapping words of
some bases each (Ji et al. 2021) are texts, which `training.text_classification` trains on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from keras_transformer.config import require, require_whole
from keras_transformer.data.biology import read_splice_junctions
from keras_transformer.data.tagged import numbered
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.system.files import replacing
from keras_transformer.training.runs import main, run_into
from training import text_classification


@run_into()
def train(
    sequences: Annotated[Path, typer.Option(help="UCI's splice.data; may be a .gz.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    bases: Annotated[int, typer.Option(help="Bases of a word.")] = 3,
    d_model: Annotated[int, typer.Option(help="Width.")] = 64,
    num_layers: Annotated[int, typer.Option(help="Blocks.")] = 2,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.3,
    tokens_per_batch: Annotated[int, typer.Option(help="Cells of a batch.")] = 2048,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 30,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 1e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 100,
    seed: Annotated[int, typer.Option(help="Of weights, dropout and order.")] = 0,
) -> None:
    """Trains a classifier of DNA and saves it with its accuracy and that of naive Bayes."""
    require_whole("bases", bases, 1)
    found = sorted(read_splice_junctions(sequences).items())
    require(len(found) >= 10, f"sequences in {sequences}", len(found), "10 or more")
    longest = len(found[0][0])
    require(bases <= longest, "bases", bases, f"at most {longest}, as a sequence has")
    order = np.random.default_rng(0).permutation(len(found))
    ends = [len(found) // 5, len(found) * 3 // 10]
    parts = {
        name: [found[row] for row in rows]
        for name, rows in zip(("test", "validation", "train"), np.split(order, ends), strict=True)
    }

    # Naive Bayes: the share of each letter at each place of a class, each counted once more.
    labels = sorted({label for _, label in parts["train"]})
    letters = sorted(set("".join(sequence for sequence, _ in found)))
    one_hot, classes = {}, {}
    for name, rows in parts.items():
        one_hot[name] = np.array([[[x == y for y in letters] for x in own] for own, _ in rows])
        classes[name] = np.array(numbered([label for _, label in rows], labels, sequences))
    counts_CTV = [1 + one_hot["train"][classes["train"] == c].sum(0) for c in range(len(labels))]
    logs_CTV = np.log([own / own.sum(-1, keepdims=True) for own in counts_CTV])
    prior_C = np.log(np.bincount(classes["train"]))
    accuracies = {
        f"{name}_accuracy": np.mean(
            (np.einsum("btv,ctv->bc", one_hot[name], logs_CTV) + prior_C).argmax(-1)
            == classes[name]
        ).item()
        for name in ("validation", "test")
    }

    # Texts.
    files = {name: output / f"{name}.tsv" for name in parts}
    for name, rows in parts.items():
        lines = ["words\tclass"]
        for sequence, label in rows:
            words = [sequence[i : i + bases] for i in range(len(sequence) - bases + 1)]
            lines.append(f"{' '.join(words)}\t{label}")
        with replacing(files[name]) as temporary:
            temporary.write_text("\n".join(lines), "utf-8")
    text_classification.train.__wrapped__(  # the folder is this run's already
        **{f"{name}_file": path for name, path in files.items()},
        output=output,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        dropout=dropout,
        max_length=len(found[0][0]) + 2,
        tokens_per_batch=tokens_per_batch,
        epochs=epochs,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        seed=seed,
    )
    save_metrics(output, "naive_bayes", accuracies)
    print(f"accuracy of naive Bayes {accuracies['test_accuracy']:.4f}")


if __name__ == "__main__":
    main(train)
