"""Train a tagger of words, a small BERT from scratch or a pretrained encoder, and measure it.

`python -m training.token_classification --help`. Each line of a file is a word, a tab and its tag,
such as B-person; an empty line ends a sentence, as in WNUT 2017 (Derczynski et al. 2017).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.tagged import labels_of_tokens, numbered, read_tagged
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.evaluation.spans import span_f1
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.tasks.token_tagger import TokenTagger
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for


@run_into()
def train(
    train_file: Annotated[Path, typer.Option("--train", help="Words and tags; may be a .gz.")],
    test_file: Annotated[Path, typer.Option("--test", help="The same, for the final measurement.")],
    output: options.Output,
    start_from: options.StartFrom = None,
    lora_rank: options.LoRARank = 0,
    vocab_size: options.VocabSize = 8000,
    d_model: options.Width = 128,
    num_layers: options.Layers = 2,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.3,
    max_length: options.MaxLength = 192,
    tokens_per_batch: options.TokensPerBatch = 2048,
    epochs: options.Epochs = 15,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 50,
    seed: options.Seed = 0,
) -> None:
    """Train a tagger of words; save it with its tokenizer and the F1 of its spans."""
    keep_compilations()
    begun = time.monotonic()
    check_lora(lora_rank, start_from)
    sentences = {"train": read_tagged(train_file), "test": read_tagged(test_file)}
    labels = tuple(sorted({tag for _, tags in sentences["train"] for tag in tags}))
    for _, tags in sentences["test"]:
        numbered(tags, labels, test_file)

    if start_from is None:
        words = (" ".join(words) for words, _ in sentences["train"])
        tokenizer = TextTokenizer.train(words, "wordpiece", vocab_size, lowercase=False)
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        sizes |= dict(dropout=dropout, max_length=max_length, num_types=1)
        model = BERT(BERTConfig(tokenizer.vocab_size, head="masked_lm", **sizes))
    else:
        model, tokenizer = read_encoder(start_from)
        max_length = model.config.max_length
    keras.utils.set_random_seed(seed)
    head = dict(labels=labels, dropout=dropout, head_dropout=dropout)
    model = fine_tuned(model, "token_classification", lora_rank=lora_rank, **head)

    # The first piece of each word carries its tag.
    encoded = tokenizer.encode_words([words for words, _ in sentences["train"]], max_length)
    numbers = [numbered(tags, labels, train_file) for _, tags in sentences["train"]]
    batches = SequenceBatches(
        [ids for ids, _ in encoded],
        labels_of_tokens(encoded, numbers),
        tokens_per_batch=tokens_per_batch,
        max_length=max_length,
        pad_id=model.config.pad_id,
        pad_label=NO_LABEL,
        seed=seed,
    )
    model.compile(
        adam(schedule_for(peak_learning_rate, warmup_steps, epochs * len(batches))),
        LabelSmoothedCrossentropy(0.0, NO_LABEL),
        metrics=[MaskedAccuracy(NO_LABEL)],
    )
    fit_epochs(model, batches, epochs)

    tagger = TokenTagger(model, tokenizer)
    tags = tagger.tag_words([words for words, _ in sentences["test"]])
    found = [[tag.label for tag in own] for own in tags]
    metrics = span_f1(found, [tags for _, tags in sentences["test"]])
    save_run(tagger.save, output, start_from, lora_rank)
    save_metrics(output, "test", metrics | facts(model, begun))
    print(f"span F1 {metrics['f1']:.3f}; saved to {output}")


if __name__ == "__main__":
    main(train)
