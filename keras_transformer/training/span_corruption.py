"""Pretrain a small T5 on text by span corruption, and save it.

`keras-transformer train --start-from` trains the saved model further on any task written as pairs
of texts (Raffel et al. 2020, section 2.4), such as "sst2 sentence: a fine film", a tab and
"positive". The model is a T5 v1.1: it has a gated feed-forward (Shazeer 2020) and no dropout.
"""

from __future__ import annotations

import math
from pathlib import Path

import keras
import numpy as np

from keras_transformer.data.corruption import SpanCorruption, corrupted
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.text_files import read_texts
from keras_transformer.data.windows import Windows
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import T5, T5Config
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.training.task import CountOrZero, TaskRun, task
from keras_transformer.translate.translator import Translator

SENTINELS = 100
STEPS = 500  # approximate number of steps per epoch


@task(
    vocab_size=8000,
    d_model=128,
    num_layers=3,
    num_heads=4,
    length=128,
    rows=32,
    peak_learning_rate=1e-3,
    warmup_steps=200,
)
def train(run: TaskRun, text_files: list[Path], d_ff: int = 256, steps: CountOrZero = 3000) -> None:
    """Pretrain a T5 by span corruption; save it with its tokenizer and its loss.

    The last twentieth of each file is for validation.

    Args:
        text_files: Texts, one per line, or column 1 of a .tsv. Repeatable.
        d_ff: Width of the gated feed-forward.
        steps: Steps of training; 0: an untrained model, as a baseline.
    """
    tokenizer, ids = _tokens(text_files, run.vocab_size)
    corruption = SpanCorruption(tokenizer.sentinel_ids, tokenizer.eos_id)
    windows = Windows(ids["train"], run.length, run.rows, run.seed)

    def corrupt(windows, *seeds):
        generator = np.random.default_rng([run.seed, *seeds])
        return corrupted(windows["token_ids"], corruption, generator, tokenizer.bos_id)

    training = Stream(lambda step: corrupt(windows.batch(step)[0], step, 1))
    validation = corrupt(Windows(ids["validation"], run.length, 1).consecutive()[0])

    keras.utils.set_random_seed(run.seed)
    special = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    config = T5Config(
        tokenizer.source_vocab_size,
        d_model=run.d_model,
        d_ff=d_ff,
        num_encoder_layers=run.num_layers,
        num_decoder_layers=run.num_layers,
        num_heads=run.num_heads,
        head_dim=run.d_model // run.num_heads,
        dropout=0.0,
        activation="gelu_tanh",
        gated=True,
        tie_output=False,
        scale_output=False,
        **special,
    )
    model = T5(config, dtype=run.precision)
    loss = LabelSmoothedCrossentropy(0.0, config.pad_id)
    optimizer = run.optimizer(max(steps, (run.warmup_steps or 0) + 1))
    model.compile(optimizer, loss, metrics=[Perplexity(config.pad_id)])
    if steps:
        epochs = max(1, steps // STEPS)
        run.fit(model, for_keras(training), steps // epochs, epochs=epochs)

    perplexity = model.evaluate(*validation, batch_size=run.rows, verbose=0)[1]
    run.save(Translator(model, tokenizer))
    scores = dict(loss=math.log(perplexity), perplexity=perplexity, steps=steps)
    run.record(scores, "validation", model)
    print(f"loss {scores['loss']:.3f} per target token; saved to {run.output}")


def _tokens(text_files, vocab_size):
    """Return the tokenizer, and the ids of each part with its lines concatenated."""
    lines: dict[str, list[str]] = {"train": [], "validation": []}
    for texts in map(read_texts, text_files):
        split = -(-len(texts) * 19 // 20)
        lines["train"] += texts[:split]
        lines["validation"] += texts[split:]
    if not all(lines.values()):
        raise ValueError(f"text must have 20 lines or more, got {len(lines['train'])}")
    tokenizer = SentencePieceTokenizer.train(
        lines["train"], [], vocab_size=vocab_size, sentinels=SENTINELS
    )
    ids = {
        part: np.concatenate([row[:-1] for row in tokenizer.encode_source(texts)])
        for part, texts in lines.items()
    }
    return tokenizer, ids
