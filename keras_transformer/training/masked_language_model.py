"""Pretrain a small BERT on texts by masking tokens, measure it and save it.

`python -m training.masked_language_model --help`. The masked tokens are drawn anew for each batch
(Devlin et al. 2019, section 3.1; dynamic masking: Liu et al. 2019). With `--inputs next_sentence`
(BERT) or `--inputs sentence_order` (ALBERT), it also learns whether one text follows another.
Fine-tune the saved model with `training.text_classification`, `training.token_classification` or
`training.question_answering`.
"""

from __future__ import annotations

import functools
import math
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.documents import read_sentences
from keras_transformer.data.masking import TASKS, Masking
from keras_transformer.data.pretraining_batches import INPUTS, PretrainingBatches
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.text_files import read_texts
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.tasks.mask_filler import MASKS, MaskFiller
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for

# Of BERT, RoBERTa and ESM.
UNKNOWN, FIRST, LAST = ("[UNK]", "<unk>"), ("[CLS]", "<s>", "<cls>"), ("[SEP]", "</s>", "<eos>")


@run_into()
def train(
    text_files: Annotated[
        list[Path],
        typer.Option("--text", help="Texts, one per line, or column 1 of a .tsv. Repeatable."),
    ],
    validation_file: Annotated[
        Path, typer.Option("--validation", help="The same, to measure after each epoch.")
    ],
    output: options.Output,
    start_from: options.StartFrom = None,
    lora_rank: options.LoRARank = 0,
    vocab_size: options.VocabSize = 8000,
    inputs: Annotated[
        str,
        typer.Option(
            help="lines: each line by itself. Otherwise a line is a sentence, and an empty line "
            "ends a document: full_sentences (RoBERTa) fills rows with whole sentences; "
            "next_sentence (BERT) and sentence_order (ALBERT) are pairs of texts, of which the "
            "model also learns whether the second follows the first."
        ),
    ] = "lines",
    longest_mask: Annotated[
        int, typer.Option(min=1, help="Mask 1 to this many neighbouring tokens together (ALBERT).")
    ] = 1,
    cased: Annotated[bool, typer.Option(help="Keep case and accents.")] = False,
    d_model: options.Width = 128,
    d_embedding: Annotated[
        int | None,
        typer.Option(min=1, help="Width of the token vectors (ALBERT).  [default: the model's]"),
    ] = None,
    num_layers: options.Layers = 4,
    shared_blocks: Annotated[
        bool, typer.Option("--shared-blocks", help="Run one block --num-layers times (ALBERT).")
    ] = False,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.1,
    max_length: options.MaxLength = 128,
    tokens_per_batch: options.TokensPerBatch = 4096,
    epochs: options.Epochs = 10,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 200,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Pretrain a BERT by dynamic masking; save it with its tokenizer and its loss.

    With --start-from, an encoder is trained further: on the texts of a subject, for example.
    """
    keep_compilations()
    begun = time.monotonic()
    check_lora(lora_rank, start_from)
    accepted = ("lines", *INPUTS)
    require(inputs in accepted, "inputs", inputs, f"one of {accepted}")
    read = read_sentences if inputs in INPUTS else _each_line
    texts = [x for path in text_files for x in read(path)]
    held_out = read(validation_file)
    words = [line for text in texts for line in text]
    head = "pretraining" if inputs in TASKS else "masked_lm"
    if start_from is None:
        tokenizer = TextTokenizer.train(words, "wordpiece", vocab_size, lowercase=not cased)
        keras.utils.set_random_seed(seed)
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads, dropout=dropout)
        sizes |= dict(d_embedding=d_embedding, shared_blocks=shared_blocks, max_length=max_length)
        model = BERT(BERTConfig(tokenizer.vocab_size, **sizes, head=head), dtype=precision)
    else:
        start, tokenizer = read_encoder(start_from)
        keras.utils.set_random_seed(seed)
        own = dict(precision=precision, lora_rank=lora_rank)
        model = fine_tuned(start, head, dropout=dropout, **own)
    config = model.config
    sizes = dict(tokens_per_batch=tokens_per_batch, max_length=config.max_length, seed=seed)
    make = functools.partial(_batches, tokenizer, config.pad_id, inputs, longest_mask, sizes)
    training, validation = make(texts), make(held_out, shuffle=False)
    schedule = schedule_for(peak_learning_rate, warmup_steps, epochs * len(training))
    _compile(model, optimizer=adam(schedule))
    fit_epochs(model, training, epochs, validation)

    save_run(MaskFiller(model, tokenizer).save, output, start_from, lora_rank)
    _compile(model, MaskedAccuracy(model.config.pad_id))
    data, steps = validation.dataset(steps=len(validation)), len(validation)
    found = model.evaluate(data, steps=steps, return_dict=True, verbose=0)
    found = {name.removeprefix("masked_lm_"): value for name, value in found.items()}
    loss = math.log(found["perplexity"])
    scores = dict(loss=loss, accuracy=found["accuracy"], epochs=epochs)
    if inputs in TASKS:
        scores[f"{inputs}_accuracy"] = found["next_sentence_accuracy"]
    save_metrics(output, "validation", scores | facts(model, begun))
    shown = ", ".join(f"{name} {value:.3f}" for name, value in scores.items() if name != "epochs")
    print(f"per masked token: {shown}; saved to {output}")


def _each_line(path):
    return [[line] for line in read_texts(path)]


def _batches(tokenizer, pad_id, inputs, longest, sizes, texts, shuffle=True):
    """Return batches of the kind that `inputs` names."""
    masking = _masking(tokenizer, pad_id, longest)
    if inputs not in INPUTS:
        every = [line for text in texts for line in text]
        lines = tokenizer.encode(every, max_length=sizes["max_length"])
        return SequenceBatches(lines, masking, **sizes, pad_id=pad_id, shuffle=shuffle)
    # A byte-level tokenizer has other pieces for a word after a space, as within a document.
    spaced = [[*text[:1], *(f" {line}" for line in text[1:])] for text in texts]
    documents = [tokenizer.encode(text, framed=False) for text in spaced]
    ids = dict(cls_id=_id_of(tokenizer, FIRST), sep_id=_id_of(tokenizer, LAST))
    return PretrainingBatches(documents, masking, inputs, **ids, **sizes, shuffle=shuffle)


def _masking(tokenizer, pad_id, longest):
    """Return the masking with the special tokens of a tokenizer, BERT's or RoBERTa's or ESM's."""
    pieces = tokenizer.pieces()
    special = tuple(pieces[name] for name in (*UNKNOWN, *FIRST, *LAST) if name in pieces)
    mask_id = _id_of(tokenizer, MASKS)
    return Masking(tokenizer.vocab_size, mask_id, special, pad_id, longest=longest)


def _id_of(tokenizer, names):
    found = [x for x in map(tokenizer.id_of, names) if x is not None]
    require(len(found) > 0, "the tokenizer's special token", None, f"one of {names}")
    return found[0]


def _compile(model, *metrics, optimizer="sgd"):
    """Compile the model with the loss of its head; the metrics are of the masked tokens."""
    pad_id = model.config.pad_id
    loss, metrics = LabelSmoothedCrossentropy(0.0, pad_id), [Perplexity(pad_id), *metrics]
    if model.config.head == "pretraining":
        pairs = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        loss = {"masked_lm": loss, "next_sentence": pairs}
        metrics = {"masked_lm": metrics, "next_sentence": ["accuracy"]}
    model.compile(optimizer, loss, metrics=metrics)


if __name__ == "__main__":
    main(train)
