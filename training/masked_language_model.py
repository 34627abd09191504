"""Pretrain a small BERT on texts by masking tokens, measure it and save it.

`python -m training.masked_language_model --help`. The masked tokens are drawn anew for each batch
(Devlin et al. 2019, section 3.1; dynamic masking: Liu et al. 2019). Fine-tune the saved model with
`training.text_classification`, `training.token_classification` or
`training.question_answering`.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.text_files import read_texts
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.mask_filler import MASKS, MaskFiller
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for

SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "<unk>", "<s>", "</s>", "<cls>", "<eos>")


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
    cased: Annotated[bool, typer.Option(help="Keep case and accents.")] = False,
    d_model: options.Width = 128,
    num_layers: options.Layers = 4,
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
    texts, held_out = (
        [x for path in text_files for x in read_texts(path)],
        read_texts(validation_file),
    )
    if start_from is None:
        tokenizer = TextTokenizer.train(texts, "wordpiece", vocab_size, lowercase=not cased)
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads, dropout=dropout)
        config, start = BERTConfig(tokenizer.vocab_size, **sizes, max_length=max_length), None
    else:
        start, tokenizer = read_encoder(start_from)
        config = start.config
    masking = _masking(tokenizer, config.pad_id)
    sizes = dict(tokens_per_batch=tokens_per_batch, max_length=config.max_length, seed=seed)
    sizes |= dict(pad_id=config.pad_id)
    training = SequenceBatches(tokenizer.encode(texts), masking, **sizes)
    validation = SequenceBatches(tokenizer.encode(held_out), masking, **sizes, shuffle=False)

    keras.utils.set_random_seed(seed)
    if start is None:
        model = BERT(config, dtype=precision)
    else:
        own = dict(precision=precision, lora_rank=lora_rank)
        model = fine_tuned(start, "masked_lm", dropout=dropout, **own)
    model.compile(
        adam(schedule_for(peak_learning_rate, warmup_steps, epochs * len(training))),
        LabelSmoothedCrossentropy(0.0, config.pad_id),
        metrics=[Perplexity(config.pad_id)],
    )
    history = fit_epochs(model, training, epochs, validation)

    save_run(MaskFiller(model, tokenizer).save, output, start_from, lora_rank)
    loss = math.log(history["val_perplexity"][-1])
    save_metrics(output, "validation", dict(loss=loss, epochs=epochs) | facts(model, begun))
    print(f"loss {loss:.3f} per masked token; saved to {output}")


def _masking(tokenizer, pad_id):
    """Return the masking with the special tokens of a tokenizer, BERT's or RoBERTa's or ESM's."""
    pieces = tokenizer.pieces()
    masks = [pieces[name] for name in MASKS if name in pieces]
    require(len(masks) > 0, "the tokenizer's mask token", None, f"one of {MASKS}")
    special = tuple(pieces[name] for name in SPECIAL if name in pieces)
    return Masking(tokenizer.vocab_size, masks[0], special, pad_id)


if __name__ == "__main__":
    main(train)
