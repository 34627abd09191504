"""The `Synthesizer`, which speaks texts: tokenizer, model and Griffin-Lim as one object."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.config import require, require_whole
from keras_transformer.data.griffin_lim import from_log_mel
from keras_transformer.decoding import decode_frames
from keras_transformer.models import TextToSpeech
from keras_transformer.running.batches import search_batches
from keras_transformer.running.inputs import padded
from keras_transformer.running.runner import Runner
from keras_transformer.saved.contents import CONFIG, read_config
from keras_transformer.saved.folder import load_with_tokenizer, save_folder
from keras_transformer.system.named_models import located
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer
from keras_transformer.text.tokenizer import checked_texts

TASK = "speech_synthesis"  # name of the task in config.json
UNKNOWN = "<|endoftext|>"  # the unknown token of a tokenizer of characters


class Synthesizer:
    """A speech synthesizer that `training.speech_synthesis` saved.

    ```python
    synthesizer = Synthesizer.load("saved_models/voices")
    (samples,) = synthesizer.speak(["seven"], speaker="theo")
    write_wav("seven.wav", samples, synthesizer.sample_rate)
    ```

    The model's input begins with the id of the speaker, `tokenizer.vocab_size` plus the speaker's
    index in `speakers`. The sound of a text does not depend on the other texts in its batch.

    Args:
        model: A `TextToSpeech`.
        tokenizer: Tokenizer of characters that the model was trained with.
        sample_rate: Sample rate in Hz of the features that the model was trained on.
        speakers: Names of the speakers in the order of their ids, one or more.

    Raises:
        ValueError: If an argument is out of range, or the model has fewer ids than tokenizer and
            speakers together.
    """

    def __init__(
        self,
        model: TextToSpeech,
        tokenizer: TextTokenizer,
        sample_rate: int,
        speakers: Sequence[str],
    ):
        require_whole("sample_rate", sample_rate, 1)
        named = isinstance(speakers, list | tuple) and all(isinstance(x, str) for x in speakers)
        require(named and len(speakers) > 0, "speakers", speakers, "one or more names")
        if tokenizer.vocab_size + len(speakers) > model.config.vocab_size:
            raise ValueError(
                f"the tokenizer does not match the model: it has {tokenizer.vocab_size} pieces "
                f"besides {len(speakers)} speakers, the model {model.config.vocab_size} ids"
            )
        self.model, self.tokenizer = model, tokenizer
        self.sample_rate, self.speakers = sample_rate, tuple(speakers)
        self._runner = Runner()

    def speak(
        self, texts: Sequence[str], *, speaker: str | None = None, batch_size: int = 32
    ) -> list[np.ndarray]:
        """Return the sound of each text: samples (N,) float32 in [-1, 1] at `sample_rate`.

        Speech longer than the model's `max_frames` is cut, with a warning.

        Args:
            texts: Texts, all of whose characters occur in the training texts.
            speaker: One of `speakers`; None: the first.
            batch_size: Texts per batch if they have the maximum length; shorter texts are processed
                in larger batches.

        Raises:
            ValueError: If an argument is out of range, or a text is empty, too long or has unknown
                characters.
        """
        features = self.features(texts, speaker=speaker, batch_size=batch_size)
        return [from_log_mel(x, self.sample_rate) for x in features]

    def features(
        self, texts: Sequence[str], *, speaker: str | None = None, batch_size: int = 32
    ) -> list[np.ndarray]:
        """Return the log-mel features (frames, mels) of each text; arguments as in `speak`.

        If the speech of a text does not end within the model's `max_frames`, it is cut with a
        warning.
        """
        speaker = self.speakers[0] if speaker is None else speaker
        require(speaker in self.speakers, "speaker", speaker, f"one of {list(self.speakers)}")
        require_whole("batch_size", batch_size, 1)
        texts, config = checked_texts(texts), self.model.config
        first = self.tokenizer.vocab_size + self.speakers.index(speaker)
        ids = [[first, *row] for row in self.tokenizer.encode(texts)]
        for text, row in zip(texts, ids, strict=True):
            self._check(text, row)
        most, lengths = config.max_length, [len(row) for row in ids]
        features: list[Any] = [None] * len(ids)
        for chosen, rows, length in search_batches(
            lengths, batch_size * most, most, COMPILES_EACH_SHAPE
        ):
            source = padded([ids[i] for i in chosen], rows, length, config.pad_id)
            source[len(chosen) :, 0] = first  # a row that only fills the batch must have a token
            values_BLR, lengths_B = self._runner.arrays(
                self.model, "frames", self._function, [source]
            )
            for place, i in enumerate(chosen):
                if lengths_B[place] == config.max_steps:
                    seconds = config.max_frames / 100
                    warnings.warn(f"{texts[i]!r:.60} is cut after {seconds} s", stacklevel=3)
                frames = values_BLR[place, : lengths_B[place]]
                features[i] = frames.reshape(-1, config.num_mels)
        return features

    def _check(self, text, ids):
        """Raise ValueError for a text that is empty, too long, or has unknown characters."""
        if len(ids) == 1:
            raise ValueError(f"texts must have one or more characters each, got {text!r}")
        most = self.model.config.max_length - 1
        if len(ids) - 1 > most:
            raise ValueError(
                f"texts must have at most {most} characters each, got {len(ids) - 1} in "
                f"{text!r:.60}"
            )
        if self.tokenizer.id_of(UNKNOWN) in ids:
            known = "".join(sorted(x for x in self.tokenizer.pieces() if len(x) == 1))
            raise ValueError(f"texts must consist of the characters {known!r}, got {text!r:.60}")

    def _function(self):
        length = self.model.config.max_steps

        def find(source_ids):
            frames, stops, state, step = self.model.prefill(source_ids, length)
            return decode_frames(step, frames, stops, state, length)

        return find

    def save(self, folder: str | os.PathLike) -> None:
        """Write `model.keras`, `tokenizer.json`, `config.json` and a model card.

        Any backend can load them.
        """
        facts = {"task": TASK, "sample_rate": self.sample_rate, "speakers": list(self.speakers)}
        save_folder(folder, self.model, self.tokenizer, facts)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Synthesizer:
        """Load a synthesizer that any backend saved.

        Args:
            folder: Folder of a saved synthesizer.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not a saved synthesizer, or a file in it is broken.
        """
        folder = located(folder)
        config = read_config(folder, "synthesizer", FILE, precision)
        model, tokenizer = load_with_tokenizer(folder, "synthesizer", TextToSpeech, precision)
        rate, speakers = config.get("sample_rate"), config.get("speakers")
        try:
            return cls(model, tokenizer, rate, speakers)  # type: ignore[arg-type]  # checked there
        except ValueError as error:
            raise ValueError(f"{Path(folder, CONFIG)}: {error}") from error
