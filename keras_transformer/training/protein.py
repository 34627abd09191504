"""Train an ESM-2 that predicts the secondary structure of proteins, and a baseline.

`python -m training.protein --help`. The data are FLIP's (Dallago et al. 2021): each residue is
helix, strand or coil; residues that the experiment did not resolve are not counted. The baseline
is the network of Qian and Sejnowski 1988: a window of residues and 40 hidden units.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import keras
import typer
from keras.ops import one_hot

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.biology import STRUCTURES, UNRESOLVED, read_structures
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.tagged import labels_of_tokens
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import ESM, ESMConfig
from keras_transformer.optimizers import adam
from keras_transformer.tasks.token_tagger import TokenTagger
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for

SPECIAL = ("[PAD]", "[MASK]", "[UNK]", "[CLS]", "[SEP]")


@run_into()
def train(
    structures: Annotated[Path, typer.Option(help="FLIP's splits.zip.")],
    output: options.Output,
    start_from: Annotated[
        Path | None, typer.Option(help="Folder of an imported ESM-2, which replaces the sizes.")
    ] = None,
    lora_rank: options.LoRARank = 0,
    d_model: options.Width = 128,
    num_layers: options.Layers = 4,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.1,
    max_length: options.MaxLength = 512,
    tokens_per_batch: options.TokensPerBatch = 4096,
    pretraining_epochs: Annotated[
        int, typer.Option(min=0, help="Epochs of masked residue prediction before fine-tuning.")
    ] = 0,
    epochs: options.Epochs = 6,
    peak_learning_rate: options.PeakLearningRate = 2e-3,
    warmup_steps: options.WarmupSteps = 200,
    window: Annotated[int, typer.Option(help="Residues that the baseline sees.")] = 13,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Train a tagger of residues; save it with its accuracy and the baseline's."""
    keep_compilations()
    begun = time.monotonic()
    check_lora(lora_rank, start_from)
    accepted = "0 with --lora-rank, which keeps the weights of --start-from"
    whole = lora_rank == 0 or pretraining_epochs == 0
    require(whole, "pretraining_epochs", pretraining_epochs, accepted)
    parts = read_structures(structures)
    if start_from is None:
        start, (tokenizer, size, pad_id, mask_id, special) = None, _residues(parts)
    else:
        start, tokenizer = read_encoder(start_from, ESM, "ESM-2")
        pad_id, mask_id, size = start.config.pad_id, start.config.mask_id, start.config.vocab_size
        special = tuple(map(tokenizer.id_of, ("<unk>", "<cls>", "<eos>")))
    budget = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, seed=seed)
    budget["pad_id"] = pad_id
    training, validation, test = (
        _batches(parts, part, tokenizer, **budget) for part in ("train", "validation", "test")
    )

    def fit(model, data, epochs, metric):
        schedule = schedule_for(peak_learning_rate, warmup_steps, epochs * len(data))
        loss = LabelSmoothedCrossentropy(0.0, metric.pad_id)
        model.compile(adam(schedule), loss, metrics=[metric])
        fit_epochs(model, data, epochs)

    def accuracy(model, data):
        return model.evaluate(data.dataset(steps=len(data)), steps=len(data), verbose=0)[1]

    keras.utils.set_random_seed(seed)
    baseline = _baseline(size, window)
    fit(baseline, training, epochs, MaskedAccuracy(NO_LABEL))
    metrics = {"baseline_accuracy": accuracy(baseline, test)}

    head = dict(max_length=max(test.lengths), labels=tuple(STRUCTURES))
    head |= dict(dropout=dropout, head_dropout=dropout)
    if start is None:
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        config = ESMConfig(size, pad_id=pad_id, mask_id=mask_id, **sizes, **head)
        start = ESM(config, dtype=precision)
    if pretraining_epochs:
        masking = Masking(size, mask_id, special, pad_id=pad_id)
        masked = _batches(parts, "train", tokenizer, masking, **budget)
        fit(start, masked, pretraining_epochs, Perplexity(pad_id))
    own = dict(precision=precision, lora_rank=lora_rank)
    model = fine_tuned(start, "token_classification", **own, **head)
    fit(model, training, epochs, MaskedAccuracy(NO_LABEL))

    save_run(TokenTagger(model, tokenizer).save, output, start_from, lora_rank)
    found = {"validation": accuracy(model, validation), "test": accuracy(model, test)}
    metrics |= {f"{part}_accuracy": value for part, value in found.items()}
    save_metrics(output, "test", metrics | facts(model, begun))
    print(
        f"accuracy {found['test']:.4f} per residue, baseline "
        f"{metrics['baseline_accuracy']:.4f}; saved to {output}"
    )


def _residues(parts):
    """Return a tokenizer with one word per residue, framed by [CLS] and [SEP], and its ids."""
    spaced = (" ".join(residues) for residues, _ in parts["train"])
    tokenizer = TextTokenizer.train(spaced, "wordpiece", 64, lowercase=False)
    pad_id, mask_id, *special = map(tokenizer.id_of, SPECIAL)
    return tokenizer, tokenizer.vocab_size, pad_id, mask_id, tuple(special)


def _batches(parts, part, tokenizer, masking=None, *, tokens_per_batch, max_length, **options):
    """Return batches of structures, or of masked residues; only training proteins are cut."""
    numbers = {label: number for number, label in enumerate(STRUCTURES)} | {UNRESOLVED: NO_LABEL}
    is_train = part == "train"
    words = [list(residues) for residues, _ in parts[part]]
    encoded = tokenizer.encode_words(words, max_length if is_train else None)
    tags = [[numbers[x] for x in structure] for _, structure in parts[part]]
    longest = max_length if is_train else max(len(ids) for ids, _ in encoded)
    return SequenceBatches(
        [ids for ids, _ in encoded],
        masking or labels_of_tokens(encoded, tags),
        tokens_per_batch=max(tokens_per_batch, longest),
        max_length=longest,
        pad_label=None if masking else NO_LABEL,
        shuffle=is_train,
        **options,
    )


def _baseline(vocab_size, window):
    """Return a network that sees `window` residues and predicts the structure of the middle one."""
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = one_hot(token_ids, vocab_size)
    x = keras.layers.Conv1D(40, window, padding="same", activation="relu")(x)
    return keras.Model({"token_ids": token_ids}, keras.layers.Dense(len(STRUCTURES))(x))


if __name__ == "__main__":
    main(train)
