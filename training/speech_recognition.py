"""Trains a small speech model to spell spoken digits, measures it and saves it.

`python -m training.speech_recognition --help`. The backend is KERAS_BACKEND's.
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
from keras_transformer.data.recordings import DIGITS, SpeechBatches, read_spoken_digits
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.transcriber import Hearing, Transcriber
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import main, run_into

RATE, MELS = 8000, 40


@run_into()
def train(
    data_folder: Annotated[
        Path | None, typer.Option(help="Holds fsdd. Default: KT_DATA, or data.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("saved_models/digits"),
    held_out: Annotated[
        str | None,
        typer.Option(help="Test on this speaker, unheard, in place of the official split."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 60,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    d_model: Annotated[int, typer.Option(min=2)] = 64,
    layers: Annotated[int, typer.Option(min=1, help="Of encoder and decoder.")] = 2,
    dropout: Annotated[float, typer.Option(min=0, max=0.99)] = 0.1,
    learning_rate: Annotated[float, typer.Option(help="At its peak.")] = 1e-3,
    train_size: Annotated[int | None, typer.Option(help="Use so many clips at most.")] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and changes.")] = 0,
) -> None:
    """Trains on log-mel features of changed clips, and prints how many words are spelled right.

    The official test set is the first five clips of each speaker and digit, of speakers that are
    all in training, too: `--held-out` is harder and more honest.

    Examples:

        python -m training.speech_recognition --held-out theo
    """
    keep_compilations()
    # Who is heard in training, and who is tested.
    path = (data_folder or Path(os.environ.get("KT_DATA", "data"))) / "fsdd" / "recordings.tar.gz"
    recordings = read_spoken_digits(path, RATE)
    speakers = {x.speaker for x in recordings}
    known = held_out is None or held_out in speakers
    require(known, "held_out", held_out, f"one of {sorted(speakers)}")
    is_test = [x.take < 5 if held_out is None else x.speaker == held_out for x in recordings]
    tests = [x for x, test in zip(recordings, is_test, strict=True) if test]
    require(len(tests) > 0, f"clips for testing in {path}", 0, "one or more")
    heard = [x for x, test in zip(recordings, is_test, strict=True) if not test]
    heard = [heard[i] for i in np.random.default_rng(seed).permutation(len(heard))[:train_size]]

    # Features, which sound different each time, and letters.
    tokenizer = TextTokenizer.train(DIGITS, "characters")
    pad_id, bos_id = tokenizer.vocab_size, tokenizer.vocab_size + 1
    eos_id = tokenizer.id_of("<|endoftext|>")
    batches = SpeechBatches(
        [x.samples for x in heard],
        [[*ids, eos_id] for ids in tokenizer.encode([x.text for x in heard])],
        batch_size,
        RATE,
        MELS,
        pad_id=pad_id,
        bos_id=bos_id,
        seed=seed,
    )

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
        max_frames=batches.max_frames,
        max_length=max(map(len, DIGITS)) + 3,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
    )
    model = Speech(config)
    steps = epochs * len(batches)
    schedule = WarmupSchedule(learning_rate, max(1, steps // 10), 1 + steps)
    loss = LabelSmoothedCrossentropy(0.1, pad_id)
    model.compile(adam(schedule), loss, metrics=[Perplexity(pad_id)])
    print(f"{model.count_params():,} parameters, {len(heard)} clips, {keras.backend.backend()}")
    begin = time.time()
    sizes = dict(steps_per_epoch=len(batches), epochs=epochs)
    model.fit(iter(batches), **sizes, shuffle=False, verbose=2)
    seconds = time.time() - begin

    # How good it is: words that greedy search spells right.
    hearing = Hearing(RATE, pads_clips=False, is_multilingual=False)
    transcriber = Transcriber(model, tokenizer, hearing)
    found = transcriber.transcribe([x.samples for x in tests], batch_size=100)
    right = sum(text == x.text for text, x in zip(found, tests, strict=True))
    accuracy = right / len(tests)
    transcriber.save(output)
    training = dict(epochs=epochs, seconds=seconds, seed=seed, held_out=held_out)
    training |= dict(parameters=model.count_params(), backend=keras.backend.backend())
    save_metrics(output, "training", training)
    save_metrics(output, "test", dict(accuracy=accuracy, clips=len(tests)))
    print(f"{accuracy:.4f} of {len(tests)} words right, {seconds:.0f} s; {output}")


if __name__ == "__main__":
    main(train)
