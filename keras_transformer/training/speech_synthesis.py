"""Train a small model that speaks digits, measure it with a recognizer and save it."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_transformer.data.audio import log_mel
from keras_transformer.data.griffin_lim import from_log_mel
from keras_transformer.data.recordings import DIGITS, read_spoken_digits
from keras_transformer.data.synthesis_batches import SynthesisBatches
from keras_transformer.models import TextToSpeech, TextToSpeechConfig
from keras_transformer.speech.synthesizer import Synthesizer
from keras_transformer.speech.transcriber import Transcriber
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.speech_recognition import CLIPS, MELS, RATE
from keras_transformer.training.task import Count, TaskRun, task


@task(
    output=Path("saved_models/voices"),
    data_folder=None,
    epochs=30,
    batch_size=64,
    d_model=128,
    num_layers=2,
    dropout=0.1,
    peak_learning_rate=2e-3,
    train_size=None,
)
def train(run: TaskRun, recognizer: Path | None = None, frames_per_step: Count = 4) -> None:
    """Train on the Free Spoken Digit Dataset, and save the model.

    The first five clips of each speaker and digit are not trained on: they are the test clips.
    With a recognizer, the share of correctly transcribed words is measured for three kinds of
    sounds: the test clips, the same clips through log-mel features and Griffin-Lim, and each digit
    synthesized for each speaker.

    Args:
        recognizer: Run of `--task transcribe` that transcribes the result.
        frames_per_step: Frames per decoder step.
    """
    judge = Transcriber.load(recognizer) if recognizer else None
    recordings = read_spoken_digits(run.data / CLIPS, RATE)
    heard = [x for x in recordings if x.take >= 5]
    order = np.random.default_rng(run.seed).permutation(len(heard))
    heard = [heard[i] for i in order[: run.train_size]]
    speakers = sorted({x.speaker for x in recordings})
    tokenizer = TextTokenizer.train(DIGITS, "characters")
    first = tokenizer.vocab_size
    pad_id = first + len(speakers)
    batches = SynthesisBatches(
        [_features(x) for x in heard],
        [[first + speakers.index(x.speaker), *tokenizer.encode([x.text])[0]] for x in heard],
        run.batch_size,
        frames_per_step,
        pad_id=pad_id,
        seed=run.seed,
    )

    keras.utils.set_random_seed(run.seed)
    config = TextToSpeechConfig(
        pad_id + 1,
        num_mels=MELS,
        frames_per_step=frames_per_step,
        d_model=run.d_model,
        num_encoder_layers=run.num_layers,
        num_decoder_layers=run.num_layers,
        num_heads=4,
        prenet_size=run.d_model // 2,
        dropout=run.dropout,
        max_length=1 + max(map(len, DIGITS)),
        max_frames=batches.max_steps * frames_per_step,
        pad_id=pad_id,
    )
    model = TextToSpeech(config, dtype=run.precision)
    weighted = dict(reduction="mean_with_sample_weight")
    losses = {
        "frames": keras.losses.MeanAbsoluteError(**weighted),
        "stop": keras.losses.BinaryCrossentropy(from_logits=True, **weighted),
    }
    model.compile(run.optimizer(run.epochs * len(batches)), losses)
    run.fit(model, iter(batches), len(batches))

    synthesizer = Synthesizer(model, tokenizer, RATE, speakers)
    run.save(synthesizer)
    run.record(dict(epochs=run.epochs, seed=run.seed), "training", model)
    if judge:
        shares = _shares_right(judge, synthesizer, [x for x in recordings if x.take < 5])
        run.record(shares, "test")
        print("; ".join(f"{name}: {share:.4f}" for name, share in shares.items()))
    print(f"saved to {run.output}")


def _features(recording):
    return ops.convert_to_numpy(log_mel(recording.samples, RATE, MELS))


def _shares_right(judge, synthesizer, tests):
    """Return the share of correct words: of real, resynthesized and synthesized clips."""
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
        texts = judge.transcribe([x for x, _ in clips], sample_rate=RATE, batch_size=100)
        right = sum(text == y for text, (_, y) in zip(texts, clips, strict=True))
        shares[name] = right / len(clips)
    return shares
