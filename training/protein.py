"""Trains an ESM-2 to tell the secondary structure of proteins, beside a baseline.

`python -m training.protein --help`. The data are FLIP's (Dallago et al. 2021): for each residue
helix, strand or coil; what the experiment did not resolve is not counted. The baseline is the
network of Qian and Sejnowski 1988: a window of residues and 40 hidden units.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import typer
from keras.ops import one_hot

from keras_transformer.backend import keep_compilations
from keras_transformer.data.biology import STRUCTURES, UNRESOLVED, read_structures
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequences import SequenceBatches
from keras_transformer.data.tagged import labels_of_tokens
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.folder import load_with_tokenizer, save_folder
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import ESM, ESMConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import main, run_into, schedule_for

SPECIAL = ("[PAD]", "[MASK]", "[UNK]", "[CLS]", "[SEP]")


@run_into()
def train(
    structures: Annotated[Path, typer.Option(help="FLIP's splits.zip.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    start_from: Annotated[Path | None, typer.Option(help="An imported ESM-2.")] = None,
    d_model: Annotated[int, typer.Option(help="Width.")] = 128,
    num_layers: Annotated[int, typer.Option(help="Blocks.")] = 4,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.1,
    max_length: Annotated[int, typer.Option(help="Residues of a protein in training.")] = 512,
    tokens_per_batch: Annotated[int, typer.Option(help="Cells of a batch.")] = 4096,
    pretraining_epochs: Annotated[
        int, typer.Option(min=0, help="Passes with masked residues.")
    ] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the proteins.")] = 6,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 2e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 200,
    window: Annotated[int, typer.Option(help="Residues that the baseline sees.")] = 13,
    precision: Annotated[str, typer.Option(help="Keras dtype policy.")] = "float32",
    seed: Annotated[int, typer.Option(help="Of weights, dropout, order and masks.")] = 0,
) -> None:
    """Trains a tagger of residues and saves it with its accuracy and the baseline's."""
    keep_compilations()
    begun = time.monotonic()

    # Proteins: a residue is a word of one letter, framed by [CLS] and [SEP], or as of the ESM-2.
    parts = read_structures(structures)
    if start_from is None:
        spaced = (" ".join(residues) for residues, _ in parts["train"])
        tokenizer = TextTokenizer.train(spaced, "wordpiece", 64, lowercase=False)
        pad_id, mask_id, *special = map(tokenizer.id_of, SPECIAL)
        size = tokenizer.vocab_size
    else:
        start, tokenizer = load_with_tokenizer(start_from, "ESM-2", ESM)
        pad_id, mask_id, size = start.config.pad_id, start.config.mask_id, start.config.vocab_size
        special = map(tokenizer.id_of, ("<unk>", "<cls>", "<eos>"))
    numbers = {label: number for number, label in enumerate(STRUCTURES)} | {UNRESOLVED: NO_LABEL}

    def batches(part, labels=None):
        encoded = tokenizer.encode_words([list(residues) for residues, _ in parts[part]])
        tags = [[numbers[x] for x in structure] for _, structure in parts[part]]
        is_train = part == "train"
        longest = max_length if is_train else max(len(ids) for ids, _ in encoded)
        return SequenceBatches(
            [ids for ids, _ in encoded],
            labels or labels_of_tokens(encoded, tags),
            tokens_per_batch=max(tokens_per_batch, longest),
            max_length=longest,  # nothing that is measured is cut
            pad_id=pad_id,
            pad_label=None if labels else NO_LABEL,
            shuffle=is_train,
            seed=seed,
        )

    training, validation, test = map(batches, ("train", "validation", "test"))

    def fit(model, data, epochs, metric):
        steps = len(data)
        schedule = schedule_for(learning_rate, warmup_steps, epochs * steps)
        loss = LabelSmoothedCrossentropy(0.0, metric.pad_id)
        model.compile(adam(schedule), loss, metrics=[metric])
        print(f"{model.count_params():,} parameters, {steps} batches", file=sys.stderr)
        model.fit(data.dataset(), steps_per_epoch=steps, epochs=epochs, shuffle=False, verbose=2)

    def accuracy(model, data):
        return model.evaluate(data.dataset(steps=len(data)), steps=len(data), verbose=0)[1]

    # The baseline, of as many passes.
    keras.utils.set_random_seed(seed)
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Conv1D(40, window, padding="same", activation="relu")(one_hot(token_ids, size))
    baseline = keras.Model({"token_ids": token_ids}, keras.layers.Dense(len(STRUCTURES))(x))
    fit(baseline, training, epochs, MaskedAccuracy(NO_LABEL))
    metrics = {"baseline_accuracy": accuracy(baseline, test)}

    # The model: residues that are hidden first, if wanted, then the structure.
    options = dict(max_length=max(test.lengths), labels=tuple(STRUCTURES))
    options |= dict(dropout=dropout, head_dropout=dropout)
    if start_from is None:
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        config = ESMConfig(size, pad_id=pad_id, mask_id=mask_id, **sizes, **options)
        start = ESM(config, dtype=precision)
    if pretraining_epochs:
        masked = batches("train", Masking(size, mask_id, tuple(special), pad_id=pad_id))
        fit(start, masked, pretraining_epochs, Perplexity(pad_id))
    model = start.with_head("token_classification", **options)
    fit(model, training, epochs, MaskedAccuracy(NO_LABEL))

    # How good it is.
    save_folder(output, model, tokenizer, {"task": "token_classification"})
    found = {"validation": accuracy(model, validation), "test": accuracy(model, test)}
    metrics |= {f"{part}_accuracy": value for part, value in found.items()}
    metrics |= dict(parameters=model.count_params(), seconds=time.monotonic() - begun)
    save_metrics(output, "test", metrics | {"backend": keras.backend.backend()})
    print(
        f"accuracy {found['test']:.4f} a residue, of the baseline "
        f"{metrics['baseline_accuracy']:.4f}; saved to {output}"
    )


if __name__ == "__main__":
    main(train)
