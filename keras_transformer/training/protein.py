"""Train an ESM-2 that predicts the secondary structure of proteins, and a baseline.

The data are FLIP's (Dallago et al. 2021): each residue is helix, strand or coil; residues that the
experiment did not resolve are not counted. The baseline is the network of Qian and Sejnowski 1988:
a window of residues and 40 hidden units.
"""

from __future__ import annotations

from pathlib import Path

import keras
from keras.ops import one_hot

from keras_transformer.config import require
from keras_transformer.data.biology import STRUCTURES, UNRESOLVED, read_structures
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.tagged import labels_of_tokens
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import ESM, ESMConfig
from keras_transformer.tasks.token_tagger import TokenTagger
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.fine_tuning import fine_tuned, read_encoder
from keras_transformer.training.task import CountOrZero, TaskRun, evaluated, task

SPECIAL = ("[PAD]", "[MASK]", "[UNK]", "[CLS]", "[SEP]")


@task(
    start_from=None,
    lora_rank=0,
    d_model=128,
    num_layers=4,
    num_heads=4,
    dropout=0.1,
    max_length=512,
    tokens_per_batch=4096,
    epochs=6,
    peak_learning_rate=2e-3,
    warmup_steps=200,
)
def train(
    run: TaskRun, structures: Path, pretraining_epochs: CountOrZero = 0, window: int = 13
) -> None:
    """Train a tagger of residues; save it with its accuracy and the baseline's.

    --start-from takes an imported ESM-2.

    Args:
        structures: FLIP's splits.zip.
        pretraining_epochs: Epochs of masked residue prediction before fine-tuning.
        window: Residues that the baseline sees.
    """
    accepted = "0 with --lora-rank, which keeps the weights of --start-from"
    whole = run.lora_rank == 0 or pretraining_epochs == 0
    require(whole, "pretraining_epochs", pretraining_epochs, accepted)
    parts = read_structures(structures)
    if run.start_from is None:
        start, (tokenizer, size, pad_id, mask_id, special) = None, _residues(parts)
    else:
        start, tokenizer = read_encoder(run.start_from, ESM, "ESM-2")
        pad_id, mask_id, size = start.config.pad_id, start.config.mask_id, start.config.vocab_size
        special = tuple(map(tokenizer.id_of, ("<unk>", "<cls>", "<eos>")))
    training, validation, test = (
        _batches(run, parts, part, tokenizer, pad_id) for part in ("train", "validation", "test")
    )

    keras.utils.set_random_seed(run.seed)
    baseline = _baseline(size, window)
    _fit(run, baseline, training, run.epochs, MaskedAccuracy(NO_LABEL))
    scores = {"baseline_accuracy": evaluated(baseline, test)["accuracy"]}

    head = dict(max_length=max(test.lengths), labels=tuple(STRUCTURES))
    head |= dict(dropout=run.dropout, head_dropout=run.dropout)
    if start is None:
        config = ESMConfig(size, pad_id=pad_id, mask_id=mask_id, **run.sizes | head)
        start = ESM(config, dtype=run.precision)
    if pretraining_epochs:
        masking = Masking(size, mask_id, special, pad_id=pad_id)
        masked = _batches(run, parts, "train", tokenizer, pad_id, masking)
        _fit(run, start, masked, pretraining_epochs, Perplexity(pad_id))
    head |= dict(precision=run.precision, lora_rank=run.lora_rank)
    model = fine_tuned(start, "token_classification", **head)
    _fit(run, model, training, run.epochs, MaskedAccuracy(NO_LABEL))

    run.save(TokenTagger(model, tokenizer))
    scores["validation_accuracy"] = evaluated(model, validation)["accuracy"]
    scores["test_accuracy"] = evaluated(model, test)["accuracy"]
    run.record(scores, "test", model)
    print(
        f"accuracy {scores['test_accuracy']:.4f} per residue, baseline "
        f"{scores['baseline_accuracy']:.4f}; saved to {run.output}"
    )


def _fit(run, model, batches, epochs, metric):
    loss = LabelSmoothedCrossentropy(0.0, metric.pad_id)
    model.compile(run.optimizer(epochs * len(batches)), loss, metrics=[metric])
    run.fit(model, batches.dataset(), len(batches), epochs=epochs)


def _residues(parts):
    """Train a tokenizer with a token for each residue.

    Return it, its vocabulary size, and the ids of padding, of the mask and of the other special
    tokens.
    """
    spaced = (" ".join(residues) for residues, _ in parts["train"])
    tokenizer = TextTokenizer.train(spaced, "wordpiece", 64, lowercase=False)
    pad_id, mask_id, *special = map(tokenizer.id_of, SPECIAL)
    return tokenizer, tokenizer.vocab_size, pad_id, mask_id, tuple(special)


def _batches(run, parts, part, tokenizer, pad_id, masking=None):
    """Return batches whose labels are structures or, if `masking` is given, masked residues.

    Only training proteins are truncated, to the `max_length` of the run.
    """
    numbers = {label: number for number, label in enumerate(STRUCTURES)} | {UNRESOLVED: NO_LABEL}
    is_train = part == "train"
    words = [list(residues) for residues, _ in parts[part]]
    encoded = tokenizer.encode_words(words, run.max_length if is_train else None)
    tags = [[numbers[x] for x in structure] for _, structure in parts[part]]
    longest = run.max_length if is_train else max(len(ids) for ids, _ in encoded)
    return SequenceBatches(
        [ids for ids, _ in encoded],
        masking or labels_of_tokens(encoded, tags),
        tokens_per_batch=max(run.tokens_per_batch, longest),
        max_length=longest,
        pad_id=pad_id,
        pad_label=None if masking else NO_LABEL,
        shuffle=is_train,
        seed=run.seed,
    )


def _baseline(vocab_size, window):
    """Return a network that sees `window` residues and predicts the structure of the middle one."""
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = one_hot(token_ids, vocab_size)
    x = keras.layers.Conv1D(40, window, padding="same", activation="relu")(x)
    return keras.Model({"token_ids": token_ids}, keras.layers.Dense(len(STRUCTURES))(x))
