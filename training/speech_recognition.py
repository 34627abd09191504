"""Trains a small speech model to spell spoken digits, measures it and saves it.

`python -m training.speech_recognition --help`. The backend is KERAS_BACKEND's.
"""

from __future__ import annotations

import io
import os
import re
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer
from keras import ops

from keras_transformer.assessment import save_metrics
from keras_transformer.config import require
from keras_transformer.data.audio import log_mel, read_wav
from keras_transformer.data.images import read_archive
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.ops import keep_compilations
from keras_transformer.schedules import WarmupSchedule, adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.transcriber import Hearing, Transcriber

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
RATE, MELS, SHAPE = 8000, 40, 64  # batches are padded to a multiple of SHAPE frames


def train(
    data_folder: Annotated[
        Path | None, typer.Option(help="Holds fsdd. Default: KT_DATA, or data.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("saved_models/digits"),
    held_out: Annotated[
        str | None,
        typer.Option(help="Test on this speaker, unheard, in place of the official split."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 30,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    d_model: Annotated[int, typer.Option(min=2)] = 64,
    layers: Annotated[int, typer.Option(min=1, help="Of encoder and decoder.")] = 2,
    dropout: Annotated[float, typer.Option(min=0, max=0.99)] = 0.1,
    learning_rate: Annotated[float, typer.Option(help="At its peak.")] = 1e-3,
    train_size: Annotated[int | None, typer.Option(help="Use so many clips at most.")] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and masks.")] = 0,
) -> None:
    """Trains on log-mel features with masked bands, and prints how many words are spelled right.

    The official test set is the first five clips of each speaker and digit, of speakers that are
    all in training, too: `--held-out` is harder and more honest.

    Examples:

        python -m training.speech_recognition --held-out theo
    """
    keep_compilations()
    # Clips: samples, features, letters, and which side they are on.
    tokenizer = TextTokenizer.train(WORDS, "characters")
    pad_id, bos_id = tokenizer.vocab_size, tokenizer.vocab_size + 1
    eos_id = tokenizer.id_of("<|endoftext|>")
    source = data_folder or Path(os.environ.get("KT_DATA", "data"))
    sounds, clips, words, is_test, speakers = [], [], [], [], set()
    recordings = source / "fsdd" / "recordings.tar.gz"
    for name, content in read_archive(recordings):
        if not name.endswith(".wav"):
            continue
        facts = re.search(r"(\d)_([^_/]+)_(\d+)\.wav$", name)
        require(bool(facts), f"names in {recordings}", name, "such as 7_theo_12.wav")
        digit, speaker, index = facts.groups()
        try:
            samples, _ = read_wav(io.BytesIO(content), RATE)
            clips.append(ops.convert_to_numpy(log_mel(samples, RATE, MELS)))
        except ValueError as error:
            raise ValueError(f"{recordings}, {name}: {error}") from error
        sounds.append(samples)
        words.append([*tokenizer.encode([WORDS[int(digit)]])[0], eos_id])
        is_test.append(int(index) < 5 if held_out is None else speaker == held_out)
        speakers.add(speaker)
    known = held_out is None or held_out in speakers
    require(known, "held_out", held_out, f"one of {sorted(speakers)}")
    rng = np.random.default_rng(seed)
    train_set = rng.permutation([i for i, test in enumerate(is_test) if not test])[:train_size]
    test_set = [i for i, test in enumerate(is_test) if test]
    require(len(test_set) > 0, f"clips for testing in {recordings}", 0, "one or more")
    accepted = f"at most {len(train_set)}, as there are clips for training"
    require(batch_size <= len(train_set), "batch_size", batch_size, accepted)
    target_length = max(map(len, words))
    labels = np.array([word + [pad_id] * (target_length - len(word)) for word in words], "int32")
    first = np.full((len(labels), 1), bos_id, "int32")
    target_ids = np.concatenate([first, labels[:, :-1]], axis=1)

    def padded(chosen, masked=False):
        longest = max(len(clips[i]) for i in chosen)
        features = np.zeros((len(chosen), -(-longest // SHAPE) * SHAPE, MELS), "float32")
        for row, i in enumerate(chosen):
            features[row, : len(clips[i])] = clips[i]
            if masked:  # a band of mels and one of frames (SpecAugment; Park et al. 2019)
                low, begin = rng.integers(0, MELS), rng.integers(0, len(clips[i]))
                features[row, :, low : low + rng.integers(0, 9)] = 0
                features[row, begin : begin + rng.integers(0, 9)] = 0
        num_frames = np.array([len(clips[i]) for i in chosen], "int32")
        return {"features": features, "num_frames": num_frames}

    def batches():
        while True:
            order = rng.permutation(train_set)
            for start in range(0, len(order) - batch_size + 1, batch_size):
                chosen = order[start : start + batch_size]
                inputs = padded(chosen, masked=True) | {"target_ids": target_ids[chosen]}
                yield inputs, labels[chosen]

    # The model.
    keras.utils.set_random_seed(seed)
    config = SpeechConfig(
        tokenizer.vocab_size + 2,
        num_mels=MELS,
        d_model=d_model,
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        num_heads=4,
        dropout=dropout,
        max_frames=-(-max(map(len, clips)) // SHAPE) * SHAPE,
        max_length=target_length + 2,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
    )
    model = Speech(config)
    steps = len(train_set) // batch_size
    schedule = WarmupSchedule(learning_rate, max(1, steps * epochs // 10), 1 + steps * epochs)
    model.compile(
        adam(schedule), LabelSmoothedCrossentropy(0.1, pad_id), metrics=[Perplexity(pad_id)]
    )
    print(f"{model.count_params():,} parameters, {len(train_set)} clips, {keras.backend.backend()}")
    begin = time.time()
    model.fit(batches(), steps_per_epoch=steps, epochs=epochs, shuffle=False, verbose=2)
    seconds = time.time() - begin

    # How good it is: words that greedy search spells right.
    hearing = Hearing(RATE, pads_clips=False, is_multilingual=False)
    transcriber = Transcriber(model, tokenizer, hearing)
    found = transcriber.transcribe([sounds[i] for i in test_set], batch_size=100)
    spelled = tokenizer.decode([words[i] for i in test_set])
    right = sum(one == other for one, other in zip(found, spelled, strict=True))
    accuracy = right / len(test_set)

    transcriber.save(output)
    training = dict(epochs=epochs, seconds=seconds, seed=seed, held_out=held_out)
    training |= dict(parameters=model.count_params(), backend=keras.backend.backend())
    save_metrics(output, "training", training)
    save_metrics(output, "test", dict(accuracy=accuracy, clips=len(test_set)))
    print(f"{accuracy:.4f} of {len(test_set)} words right, {seconds:.0f} s; {output}")


if __name__ == "__main__":
    typer.run(train)
