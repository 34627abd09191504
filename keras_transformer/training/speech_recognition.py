"""Train a small speech model that transcribes spoken digits, measure it and save it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.config import require
from keras_transformer.data.recordings import (
    DIGITS,
    Recording,
    SpeechBatches,
    joined_words,
    read_spoken_digits,
)
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.models.vocabulary import with_config
from keras_transformer.speech.hearing import Hearing
from keras_transformer.speech.transcriber import Transcriber
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.fine_tuning import with_lora
from keras_transformer.training.task import Count, TaskRun, task

CLIPS = Path("fsdd") / "recordings.tar.gz"  # in the folder of the data sets
RATE, MELS = 8000, 40
LANGUAGE = "en"  # for a multilingual Whisper


@task(
    output=Path("saved_models/digits"),
    data_folder=None,
    start_from=None,
    lora_rank=0,
    epochs=60,
    batch_size=32,
    d_model=64,
    num_layers=2,
    dropout=0.1,
    peak_learning_rate=1e-3,
    train_size=None,
)
def train(run: TaskRun, held_out: str | None = None, words: Count = 1) -> None:
    """Train on log-mel features of augmented clips; save the model with its accuracy.

    The accuracy is the share of the test clips whose text is right. The official test set is the
    first five clips of each speaker and digit; all its speakers are in the training set, too.
    --held-out tests on a speaker that is not in the training set, which is harder. With several
    words, the times of the words in the test set are measured, too. --start-from takes a trained
    model or an imported Whisper, whose features it uses.

    Args:
        held_out: Speaker for testing only.  [default: the official split]
        words: Join up to this many clips of a speaker, with pauses.
    """
    start = Transcriber.load(run.start_from, "float32") if run.start_from else None
    hearing = start.hearing if start else Hearing(RATE, is_multilingual=False)
    rate, rng = hearing.sample_rate, np.random.default_rng(run.seed)
    heard, tests = _clips(run, held_out, rate)
    heard = [x for x, _ in joined_words(heard, words, rng, rate)]
    tests, places = zip(*joined_words(tests, words, rng, rate), strict=True)
    tokenizer, config = (start.tokenizer, start.model.config) if start else _made(words)
    batches = _batches(run, heard, tokenizer, config, start, hearing)

    keras.utils.set_random_seed(run.seed)
    if start is None:
        sizes: dict[str, Any] = dict(d_model=run.d_model, d_ff=None, num_heads=4)
        sizes |= dict(num_encoder_layers=run.num_layers, num_decoder_layers=run.num_layers)
        sizes |= dict(max_frames=batches.max_frames, dropout=run.dropout)
        config = dataclasses.replace(config, **sizes)
        model = Speech(config, dtype=run.precision)
    else:
        config = dataclasses.replace(config, dropout=run.dropout)
        model = with_lora(with_config(start.model, config, run.precision), run.lora_rank)
    optimizer = run.optimizer(run.epochs * len(batches))
    loss = LabelSmoothedCrossentropy(0.1, NO_LABEL)
    model.compile(optimizer, loss, metrics=[Perplexity(NO_LABEL)])
    run.fit(model, iter(batches), len(batches))

    # This run trains without padding to 30 seconds, even if the model of --start-from had it.
    hearing = dataclasses.replace(hearing, pads_clips=False)
    transcriber = Transcriber(model, tokenizer, hearing)
    scores = _scores(transcriber, tests, places)
    run.save(transcriber)
    facts = dict(epochs=run.epochs, seed=run.seed, held_out=held_out, words=words)
    run.record(facts, "training", model)
    run.record(scores, "test")
    print(f"{scores['accuracy']:.4f} of {len(tests)} clips right; saved to {run.output}")
    if "seconds_off" in scores:
        print(f"starts and ends of their words are {scores['seconds_off']:.3f} s off on average")


def _scores(transcriber, tests, places):
    """Return the share of correct texts; for clips of several words, also the error of times."""
    options = dict(batch_size=100, language=LANGUAGE if transcriber.languages else None)
    texts = transcriber.transcribe([x.samples for x in tests], **options)
    right = [i for i, x in enumerate(tests) if x.text == texts[i]]
    scores = dict(accuracy=len(right) / len(tests), clips=len(tests))
    if right and max(map(len, places)) > 1:
        timed = transcriber.transcribe_words([tests[i].samples for i in right], **options)
        spans = [[(word.start, word.end) for word in clip] for clip in timed]
        errors = [np.subtract(a, places[i]) for a, i in zip(spans, right, strict=True)]
        scores["seconds_off"] = float(np.abs(np.concatenate(errors)).mean())
    return scores


def _made(words):
    """Return a tokenizer of letters, and a config; `train` replaces the sizes of the config."""
    tokenizer = TextTokenizer.train([*DIGITS, " " * (words > 1)], "characters")
    size, longest = tokenizer.vocab_size, max(map(len, DIGITS)) * words + words - 1
    ids = dict(pad_id=size, bos_id=size + 1, eos_id=tokenizer.id_of("<|endoftext|>"))
    return tokenizer, SpeechConfig(size + 2, num_mels=MELS, max_length=longest + 3, **ids)


def _batches(run, heard, tokenizer, config, start, hearing):
    """Return the batches of clips with their texts, checked against the model's limits."""
    ids = tokenizer.encode([x.text for x in heard], framed=False)
    begin = start.first_ids(LANGUAGE)[1:] if start else []
    batches = SpeechBatches(
        [x.samples for x in heard],
        [[*letters, config.eos_ids[0]] for letters in ids],
        run.batch_size,
        hearing.sample_rate,
        config.num_mels,
        pad_id=config.pad_id,
        bos_id=config.bos_id,
        begin=begin,
        pad_label=NO_LABEL,  # not pad_id, which is eos_id in a Whisper
        seed=run.seed,
    )
    if start:
        longest = len(begin) + max(map(len, ids)) + 1
        for name, size, most in (
            ("frames of the longest clip", batches.max_frames, config.max_frames),
            ("tokens of the longest text", longest, config.max_length),
        ):
            require(size <= most, name, size, f"at most {most}, the limit of --start-from")
    return batches


def _clips(run, held_out, rate):
    """Return the clips for training, shuffled, and those for the test."""
    path = run.data / CLIPS
    recordings = read_spoken_digits(path, rate)
    speakers = {x.speaker for x in recordings}
    known = held_out is None or held_out in speakers
    require(known, "held_out", held_out, f"one of {sorted(speakers)}")
    parts: dict[bool, list[Recording]] = {True: [], False: []}
    for x in recordings:
        parts[x.take < 5 if held_out is None else x.speaker == held_out].append(x)
    require(len(parts[True]) > 0, f"clips for testing in {path}", 0, "one or more")
    heard = parts[False]
    order = np.random.default_rng(run.seed).permutation(len(heard))
    return [heard[i] for i in order[: run.train_size]], parts[True]
