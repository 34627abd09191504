"""Train a small speech model that spells spoken digits, measure it and save it.

`python -m training.speech_recognition --help`. KERAS_BACKEND chooses the backend.
"""

from __future__ import annotations

import dataclasses
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
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.models.vocabulary import with_config
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.speech.hearing import Hearing
from keras_transformer.speech.transcriber import Transcriber
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, save_run, with_lora
from keras_transformer.training.runs import facts, main, run_into, say

RATE, MELS = 8000, 40
LANGUAGE = "en"  # of a multilingual Whisper


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
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a trained model or of an imported Whisper. It replaces the tokenizer, "
            "the features and the sizes."
        ),
    ] = None,
    lora_rank: options.LoRARank = 0,
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
    check_lora(lora_rank, start_from)
    path = (data_folder or Path(os.environ.get("KT_DATA", "data"))) / "fsdd" / "recordings.tar.gz"
    check_lora(lora_rank, start_from)
    start = Transcriber.load(start_from, "float32") if start_from else None
    hearing = start.hearing if start else Hearing(RATE, is_multilingual=False)
    rate, rng = hearing.sample_rate, np.random.default_rng(seed)
    heard, tests = _clips(path, held_out, train_size, seed, rate)
    heard = [x for x, _ in joined_words(heard, words, rng, rate)]
    joined = joined_words(tests, words, rng, rate)
    tests, places = [x for x, _ in joined], [spans for _, spans in joined]
    tokenizer, config = (start.tokenizer, start.model.config) if start else _made(words)
    batches = _batches(heard, tokenizer, config, start, hearing, batch_size, seed)

    keras.utils.set_random_seed(seed)
    if start is None:
        sizes = dict(d_model=d_model, num_encoder_layers=num_layers, num_decoder_layers=num_layers)
        sizes |= dict(num_heads=4, dropout=dropout, max_frames=batches.max_frames)
        model = Speech(dataclasses.replace(config, d_ff=None, **sizes))
    else:
        config = dataclasses.replace(config, dropout=dropout)
        model = with_lora(with_config(start.model, config, "float32"), lora_rank)
    steps = epochs * len(batches)
    schedule = WarmupSchedule(peak_learning_rate, max(1, steps // 10), 1 + steps)
    loss = LabelSmoothedCrossentropy(0.1, NO_LABEL)
    model.compile(adam(schedule), loss, metrics=[Perplexity(NO_LABEL)])
    say(f"{model.count_params():,} parameters, {len(heard)} clips, {keras.backend.backend()}")
    begin = time.monotonic()
    length = dict(steps_per_epoch=len(batches), epochs=epochs)
    model.fit(iter(batches), **length, shuffle=False, verbose=2)
    trained = facts(model, begin)

    # As trained: clips of any length, also if those of --start-from were padded to 30 seconds.
    hearing = dataclasses.replace(hearing, pads_clips=False)
    transcriber = Transcriber(model, tokenizer, hearing)
    scores = _scores(transcriber, tests, places)
    save_run(transcriber.save, output, start_from, lora_rank)
    run = dict(epochs=epochs, seed=seed, held_out=held_out, words=words)
    save_metrics(output, "training", run | trained)
    save_metrics(output, "test", scores)
    print(f"{scores['accuracy']:.4f} of {len(tests)} clips right; saved to {output}")
    if "seconds_off" in scores:
        print(f"starts and ends of their words are {scores['seconds_off']:.3f} s off on average")


def _scores(transcriber, tests, places):
    """Return the share of correct texts and, if clips have several words, how far these are off."""
    own = dict(batch_size=100, language=LANGUAGE if transcriber.languages else None)
    found = transcriber.transcribe([x.samples for x in tests], **own)
    right = [i for i, x in enumerate(tests) if x.text == found[i]]
    scores = dict(accuracy=len(right) / len(tests), clips=len(tests))
    if right and max(map(len, places)) > 1:
        timed = transcriber.transcribe_words([tests[i].samples for i in right], **own)
        spans = [[(word.start, word.end) for word in own] for own in timed]
        errors = [np.subtract(a, places[i]) for a, i in zip(spans, right, strict=True)]
        scores["seconds_off"] = float(np.abs(np.concatenate(errors)).mean())
    return scores


def _made(words):
    """Return the tokenizer of letters, and the config of a model whose sizes are still open."""
    tokenizer = TextTokenizer.train([*DIGITS, " " * (words > 1)], "characters")
    size, longest = tokenizer.vocab_size, max(map(len, DIGITS)) * words + words - 1
    ids = dict(pad_id=size, bos_id=size + 1, eos_id=tokenizer.id_of("<|endoftext|>"))
    return tokenizer, SpeechConfig(size + 2, num_mels=MELS, max_length=longest + 3, **ids)


def _batches(heard, tokenizer, config, start, hearing, batch_size, seed):
    """Return the batches of clips with their texts, checked against the model's limits."""
    ids = tokenizer.encode([x.text for x in heard], framed=False)
    begin = start.first_ids(LANGUAGE)[1:] if start else []
    batches = SpeechBatches(
        [x.samples for x in heard],
        [[*letters, config.eos_ids[0]] for letters in ids],
        batch_size,
        hearing.sample_rate,
        config.num_mels,
        pad_id=config.pad_id,
        bos_id=config.bos_id,
        begin=begin,
        pad_label=NO_LABEL,  # in a Whisper, pad_id is eos_id
        seed=seed,
    )
    if start:
        longest = len(begin) + max(map(len, ids)) + 1
        for name, found, most in (
            ("frames of the longest clip", batches.max_frames, config.max_frames),
            ("tokens of the longest text", longest, config.max_length),
        ):
            require(found <= most, name, found, f"at most {most}, the limit of --start-from")
    return batches


def _clips(path, held_out, train_size, seed, rate):
    """Return the clips for training, shuffled, and those for the test."""
    recordings = read_spoken_digits(path, rate)
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
