"""Pretrain a small BERT on texts by masking tokens, measure it and save it.

The masked tokens are drawn anew for each batch (Devlin et al. 2019, section 3.1; dynamic masking:
Liu et al. 2019). With `--inputs next_sentence` (BERT) or `--inputs sentence_order` (ALBERT), the
model also learns whether one text follows another. `--task classify`, `tag`, `regress` and `answer`
fine-tune the saved model.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.config import require
from keras_transformer.data.documents import read_sentences
from keras_transformer.data.masking import TASKS, Masking
from keras_transformer.data.pretraining_batches import INPUTS, PretrainingBatches
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.text_files import read_texts
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import EncoderOnly
from keras_transformer.tasks.mask_filler import MASKS, MaskFiller
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.fine_tuning import ENCODER, batches_for, encoder_for
from keras_transformer.training.task import Count, TaskRun, evaluated, task

# Names of special tokens in BERT, RoBERTa and ESM.
UNKNOWN, FIRST, LAST = ("[UNK]", "<unk>"), ("[CLS]", "<s>", "<cls>"), ("[SEP]", "</s>", "<eos>")


@task(
    **ENCODER,
    num_layers=4,
    dropout=0.1,
    max_length=128,
    tokens_per_batch=4096,
    epochs=10,
    peak_learning_rate=1e-3,
    warmup_steps=200,
)
def train(
    run: TaskRun,
    text_files: list[Path],
    validation_file: Path,
    inputs: str = "lines",
    longest_mask: Count = 1,
    cased: bool = False,
    d_embedding: Annotated[int | None, typer.Option(min=1)] = None,
    shared_blocks: bool = False,
) -> None:
    """Pretrain a BERT by dynamic masking; save it with its tokenizer and its loss.

    --start-from trains an encoder further, for example on texts of one subject. It takes a run of
    this task, or an imported BERT or variant of it (RoBERTa, MPNet, ...), DeBERTa or ESM-2.

    Args:
        text_files: Texts, one per line, or column 1 of a .tsv. Repeatable.
        validation_file: The same, to measure after each epoch.
        inputs: lines: each line by itself. Otherwise a line is a sentence, and an empty line ends
            a document: full_sentences (RoBERTa) fills rows with whole sentences; next_sentence
            (BERT) and sentence_order (ALBERT) are pairs of texts, of which the model also learns
            whether the second follows the first.
        longest_mask: Mask 1 to this many neighbouring tokens together (ALBERT).
        cased: Keep case and accents.
        d_embedding: Width of the token vectors (ALBERT).  [default: the model's]
        shared_blocks: Run one block --num-layers times (ALBERT).
    """
    accepted = ("lines", *INPUTS)
    require(inputs in accepted, "inputs", inputs, f"one of {accepted}")
    read = read_sentences if inputs in INPUTS else _each_line
    texts = [x for path in text_files for x in read(path)]
    held_out = read(validation_file)
    words = [line for text in texts for line in text]
    head = "pretraining" if inputs in TASKS else "masked_lm"
    new = dict(d_embedding=d_embedding, shared_blocks=shared_blocks)
    model, tokenizer = encoder_for(run, head, words, lowercase=not cased, new=new)
    make = functools.partial(batches, run, model, tokenizer, inputs, longest_mask)
    training, validation = make(texts), make(held_out, shuffle=False)
    _compile(model, optimizer=run.optimizer(run.epochs * len(training)))
    run.fit(model, training.dataset(), len(training), validation_data=validation)

    run.save(MaskFiller(model, tokenizer))
    _compile(model, MaskedAccuracy(model.config.pad_id))
    measured = evaluated(model, validation)
    measured = {name.removeprefix("masked_lm_"): value for name, value in measured.items()}
    scores = dict(loss=math.log(measured["perplexity"]), accuracy=measured["accuracy"])
    if inputs in TASKS:
        scores[f"{inputs}_accuracy"] = measured["next_sentence_accuracy"]
    run.record(scores | dict(epochs=run.epochs), "validation", model)
    shown = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
    print(f"per masked token: {shown}; saved to {run.output}")


def _each_line(path):
    return [[line] for line in read_texts(path)]


def batches(
    run: TaskRun,
    model: EncoderOnly,
    tokenizer: TextTokenizer,
    inputs: str,
    longest: int,
    texts: list[list[str]],
    shuffle: bool = True,
) -> SequenceBatches | PretrainingBatches:
    """Return batches of masked texts.

    Args:
        run: The run.
        model, tokenizer: The model that is trained, and its tokenizer.
        inputs, longest: See the options `inputs` and `longest_mask` of `train`.
        texts: Documents, as lists of lines.
        shuffle: Whether each epoch has another order.
    """
    config = model.config
    masking = _masking(tokenizer, config.pad_id, longest)
    if inputs not in INPUTS:
        every = [line for text in texts for line in text]
        lines = tokenizer.encode(every, max_length=config.max_length)
        return batches_for(run, model, lines, masking, shuffle=shuffle)
    # Within a document, a line follows a space, which changes the pieces of byte-level tokenizers.
    spaced = [[*text[:1], *(f" {line}" for line in text[1:])] for text in texts]
    documents = [tokenizer.encode(text, framed=False) for text in spaced]
    sizes = dict(tokens_per_batch=run.tokens_per_batch, max_length=config.max_length)
    sizes |= dict(cls_id=_id_of(tokenizer, FIRST), sep_id=_id_of(tokenizer, LAST), seed=run.seed)
    return PretrainingBatches(documents, masking, inputs, **sizes, shuffle=shuffle)


def _masking(tokenizer, pad_id, longest):
    """Return the masking for a tokenizer; its special tokens are found by their names."""
    pieces = tokenizer.pieces()
    special = tuple(pieces[name] for name in (*UNKNOWN, *FIRST, *LAST) if name in pieces)
    mask_id = _id_of(tokenizer, MASKS)
    return Masking(tokenizer.vocab_size, mask_id, special, pad_id, longest=longest)


def _id_of(tokenizer, names):
    ids = [x for x in map(tokenizer.id_of, names) if x is not None]
    require(len(ids) > 0, "the tokenizer's special token", None, f"one of {names}")
    return ids[0]


def _compile(model, *metrics, optimizer="sgd"):
    """Compile the model with the loss of its head; `metrics` measure the masked tokens."""
    pad_id = model.config.pad_id
    loss, weighed = LabelSmoothedCrossentropy(0.0, pad_id), [Perplexity(pad_id), *metrics]
    if model.config.head == "pretraining":
        pairs = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        losses = {"masked_lm": loss, "next_sentence": pairs}
        of_outputs = {"masked_lm": weighed, "next_sentence": ["accuracy"]}
        model.compile(optimizer, losses, metrics=of_outputs)
    else:
        model.compile(optimizer, loss, metrics=weighed)
