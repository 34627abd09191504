"""Train a small speech model that spells spoken digits, measure it and save it.

`python -m training.speech_recognition --help`. KERAS_BACKEND chooses the backend.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.recordings import (
    DIGITS,
    SpeechBatches,
    joined_words,
    read_spoken_digits,
)
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.hearing import Hearing
from keras_transformer.inference.transcriber import Transcriber
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import facts, main, run_into, say

RATE, MELS = 8000, 40


@run_into()
def train(
    data_folder: options.DataFolder = None,
    output: options.Output = Path("saved_models/digits"),
    held_out: Annotated[
        str | None,
        typer.Option(help="Speaker for testing only.  [default: the official split]"),
    ] = None,
    words: Annotated[
        int, typer.Option(min=1, help="Join up to this many clips of a speaker, with pauses.")
    ] = 1,
    epochs: options.Epochs = 60,
    batch_size: options.BatchSize = 32,
    d_model: options.Width = 64,
    num_layers: options.Layers = 2,
    dropout: options.Dropout = 0.1,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    train_size: options.TrainSize = None,
    seed: options.Seed = 0,
) -> None:
    """Train on log-mel features of altered clips, and print the share of correct words.

    The official test set is the first five clips of each speaker and digit; its speakers are all
    in the training set too. `--held-out` is a harder and more honest test. With several words, the
    times of the words in the test set are measured, too.

    Examples:

        python -m training.speech_recognition --held-out theo
        python -m training.speech_recognition --words 3
    """
    keep_compilations()
    path = (data_folder or Path(os.environ.get("KT_DATA", "data"))) / "fsdd" / "recordings.tar.gz"
    heard, tests = _clips(path, held_out, train_size, seed)
    rng = np.random.default_rng(seed)
    heard = [x for x, _ in joined_words(heard, words, rng, RATE)]
    joined = joined_words(tests, words, rng, RATE)
    tests, places = [x for x, _ in joined], [spans for _, spans in joined]
    tokenizer = TextTokenizer.train([*DIGITS, " " * (words > 1)], "characters")
    ids = dict(pad_id=tokenizer.vocab_size, bos_id=tokenizer.vocab_size + 1)
    eos_id = tokenizer.id_of("<|endoftext|>")
    batches = SpeechBatches(
        [x.samples for x in heard],
        [[*letters, eos_id] for letters in tokenizer.encode([x.text for x in heard])],
        batch_size,
        RATE,
        MELS,
        **ids,
        seed=seed,
    )

    keras.utils.set_random_seed(seed)
    config = SpeechConfig(
        tokenizer.vocab_size + 2,
        num_mels=MELS,
        d_model=d_model,
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
        num_heads=4,
        dropout=dropout,
        max_frames=batches.max_frames,
        max_length=max(map(len, DIGITS)) * words + words + 2,
        **ids,
        eos_id=eos_id,
    )
    model = Speech(config)
    steps = epochs * len(batches)
    schedule = WarmupSchedule(peak_learning_rate, max(1, steps // 10), 1 + steps)
    loss = LabelSmoothedCrossentropy(0.1, config.pad_id)
    model.compile(adam(schedule), loss, metrics=[Perplexity(config.pad_id)])
    say(f"{model.count_params():,} parameters, {len(heard)} clips, {keras.backend.backend()}")
    begin = time.monotonic()
    length = dict(steps_per_epoch=len(batches), epochs=epochs)
    model.fit(iter(batches), **length, shuffle=False, verbose=2)
    trained = facts(model, begin)

    hearing = Hearing(RATE, pads_clips=False, is_multilingual=False)
    transcriber = Transcriber(model, tokenizer, hearing)
    scores = _scores(transcriber, tests, places)
    transcriber.save(output)
    save_metrics(
        output, "training", dict(epochs=epochs, seed=seed, held_out=held_out, words=words) | trained
    )
    save_metrics(output, "test", scores)
    print(f"{scores['accuracy']:.4f} of {len(tests)} clips right; saved to {output}")
    if "seconds_off" in scores:
        print(f"starts and ends of their words are {scores['seconds_off']:.3f} s off on average")


def _scores(transcriber, tests, places):
    """Return the share of correct texts and, if clips have several words, how far these are off."""
    found = transcriber.transcribe([x.samples for x in tests], batch_size=100)
    right = [i for i, x in enumerate(tests) if x.text == found[i]]
    scores = dict(accuracy=len(right) / len(tests), clips=len(tests))
    if right and max(map(len, places)) > 1:
        timed = transcriber.transcribe_words([tests[i].samples for i in right], batch_size=100)
        spans = [[(word.start, word.end) for word in own] for own in timed]
        errors = [np.subtract(a, places[i]) for a, i in zip(spans, right, strict=True)]
        scores["seconds_off"] = float(np.abs(np.concatenate(errors)).mean())
    return scores


def _clips(path, held_out, train_size, seed):
    """Return the clips for training, shuffled, and those for the test."""
    recordings = read_spoken_digits(path, RATE)
    speakers = {x.speaker for x in recordings}
    known = held_out is None or held_out in speakers
    require(known, "held_out", held_out, f"one of {sorted(speakers)}")
    is_test = [x.take < 5 if held_out is None else x.speaker == held_out for x in recordings]
    tests = [x for x, test in zip(recordings, is_test, strict=True) if test]
    require(len(tests) > 0, f"clips for testing in {path}", 0, "one or more")
    heard = [x for x, test in zip(recordings, is_test, strict=True) if not test]
    order = np.random.default_rng(seed).permutation(len(heard))
    return [heard[i] for i in order[:train_size]], tests


if __name__ == "__main__":
    main(train)
