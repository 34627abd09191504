"""Train a small model that speaks digits, judge it by a recognizer and save it.

`python -m training.speech_synthesis --help`. KERAS_BACKEND chooses the backend.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer
from keras import ops

from keras_transformer.backend import keep_compilations
from keras_transformer.data.audio import log_mel
from keras_transformer.data.griffin_lim import from_log_mel
from keras_transformer.data.recordings import DIGITS, read_spoken_digits
from keras_transformer.data.synthesis_batches import SynthesisBatches
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.models import TextToSpeech, TextToSpeechConfig
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.speech.synthesizer import Synthesizer
from keras_transformer.speech.transcriber import Transcriber
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import facts, main, run_into, say

RATE, MELS = 8000, 40


@run_into()
def train(
    data_folder: options.DataFolder = None,
    output: options.Output = Path("saved_models/voices"),
    recognizer: Annotated[
        Path | None,
        typer.Option(help="Run of training.speech_recognition that transcribes the result."),
    ] = None,
    epochs: options.Epochs = 30,
    batch_size: options.BatchSize = 64,
    frames_per_step: Annotated[int, typer.Option(min=1, help="Frames per decoder step.")] = 4,
    d_model: options.Width = 128,
    num_layers: options.Layers = 2,
    dropout: options.Dropout = 0.1,
    peak_learning_rate: options.PeakLearningRate = 2e-3,
    train_size: options.TrainSize = None,
    seed: options.Seed = 0,
) -> None:
    """Train on the digits and speakers of the Free Spoken Digit Dataset, takes 5 to 49.

    With a recognizer, print the share of correctly transcribed words of three kinds: real test
    clips, the same clips through log-mel features and Griffin-Lim, and each digit synthesized for
    each speaker.

    Examples:

        python -m training.speech_synthesis --recognizer saved_models/digits
    """
    keep_compilations()
    judge = Transcriber.load(recognizer) if recognizer else None
    path = (data_folder or Path(os.environ.get("KT_DATA", "data"))) / "fsdd" / "recordings.tar.gz"
    recordings = read_spoken_digits(path, RATE)
    heard = [x for x in recordings if x.take >= 5]
    heard = [heard[i] for i in np.random.default_rng(seed).permutation(len(heard))[:train_size]]
    speakers = sorted({x.speaker for x in recordings})
    tokenizer = TextTokenizer.train(DIGITS, "characters")
    first = tokenizer.vocab_size
    batches = SynthesisBatches(
        [_features(x) for x in heard],
        [[first + speakers.index(x.speaker), *tokenizer.encode([x.text])[0]] for x in heard],
        batch_size,
        frames_per_step,
        pad_id=first + len(speakers),
        seed=seed,
    )

    keras.utils.set_random_seed(seed)
    config = TextToSpeechConfig(
        first + len(speakers) + 1,
        num_mels=MELS,
        frames_per_step=frames_per_step,
        d_model=d_model,
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
        num_heads=4,
        prenet_size=d_model // 2,
        dropout=dropout,
        max_length=1 + max(map(len, DIGITS)),
        max_frames=batches.max_steps * frames_per_step,
        pad_id=first + len(speakers),
    )
    model = TextToSpeech(config)
    steps = epochs * len(batches)
    schedule = WarmupSchedule(peak_learning_rate, max(1, steps // 10), 1 + steps)
    weighted = dict(reduction="mean_with_sample_weight")
    losses = {
        "frames": keras.losses.MeanAbsoluteError(**weighted),
        "stop": keras.losses.BinaryCrossentropy(from_logits=True, **weighted),
    }
    model.compile(adam(schedule), losses)
    say(f"{model.count_params():,} parameters, {len(heard)} clips, {keras.backend.backend()}")
    begin = time.monotonic()
    length = dict(steps_per_epoch=len(batches), epochs=epochs)
    model.fit(iter(batches), **length, shuffle=False, verbose=2)
    trained = facts(model, begin)

    synthesizer = Synthesizer(model, tokenizer, RATE, speakers)
    synthesizer.save(output)
    save_metrics(output, "training", dict(epochs=epochs, seed=seed) | trained)
    if judge:
        shares = _shares_right(judge, synthesizer, [x for x in recordings if x.take < 5])
        save_metrics(output, "test", shares)
        print("; ".join(f"{name}: {share:.4f}" for name, share in shares.items()))
    print(f"saved to {output}")


def _features(recording):
    return ops.convert_to_numpy(log_mel(recording.samples, RATE, MELS))


def _shares_right(judge, synthesizer, tests):
    """Return the shares of words right among real, resynthesized and synthesized clips."""
    sounds = {
        "real": [(x.samples, x.text) for x in tests],
        "griffin_lim": [(from_log_mel(_features(x), RATE), x.text) for x in tests],
        "synthesized": [
            (samples, text)
            for speaker in synthesizer.speakers
            for samples, text in zip(
                synthesizer.speak(DIGITS, speaker=speaker), DIGITS, strict=True
            )
        ],
    }
    shares = {}
    for name, clips in sounds.items():
        found = judge.transcribe([x for x, _ in clips], sample_rate=RATE, batch_size=100)
        right = sum(text == y for text, (_, y) in zip(found, clips, strict=True))
        shares[name] = right / len(clips)
    return shares


if __name__ == "__main__":
    main(train)
