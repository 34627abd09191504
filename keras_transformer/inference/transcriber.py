"""From speech to text: features, model, search and tokenizer as one object."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.data.audio import log_mel, read_wav, resample
from keras_transformer.decoding import IMPOSSIBLE, decode
from keras_transformer.inference.folder import CONFIG, load_with_tokenizer, read_config, save_folder
from keras_transformer.inference.hearing import Hearing
from keras_transformer.inference.runner import Runner, search_batches, until_end
from keras_transformer.models import Speech
from keras_transformer.search import TRANSCRIBE, Transcription, spelled_out
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer

HOP = 0.01  # seconds per frame
TASK = "speech"  # in config.json
TASKS = ("transcribe", "translate")


class Transcriber:
    """A Whisper, or a run of `training.speech_recognition`, that transcribes recordings.

    ```python
    transcriber = load_pretrained("openai/whisper-tiny")
    transcriber.transcribe(["speech.wav"], language="en")
    ```

    Recordings longer than the model's limit, 30 seconds in Whisper, are cut at quiet places, and
    the texts of the parts are joined. The output of a Whisper is forced to begin with the tokens
    of language, task and "no timestamps" (Radford et al. 2022, section 2.3).

    Args:
        model: A `Speech`.
        tokenizer: The tokenizer that the model was trained with.
        hearing: The model's input format and special tokens; None: the defaults of `Hearing`.

    Raises:
        ValueError: If the tokenizer has more pieces than the model.
    """

    def __init__(self, model: Speech, tokenizer: TextTokenizer, hearing: Hearing | None = None):
        if tokenizer.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"the tokenizer does not match the model: it has {tokenizer.vocab_size} pieces, "
                f"the model {model.config.vocab_size}"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.hearing = hearing or Hearing()
        self._runner = Runner()

    @property
    def languages(self) -> dict[str, int]:
        """Language codes of a multilingual model with their token ids; empty for other models."""
        if not self.hearing.is_multilingual:
            return {}
        pieces = self.tokenizer.pieces()
        codes = {piece[2:-2]: i for piece, i in pieces.items() if piece.startswith("<|")}
        return {code: i for code, i in codes.items() if code.isalpha() and len(code) in (2, 3)}

    @spelled_out(Transcription, TRANSCRIBE)
    def transcribe(
        self,
        sounds: Sequence[str | os.PathLike | BinaryIO | np.ndarray],
        *,
        sample_rate: int | None = None,
        language: str | None = None,
        task: str = "transcribe",
        batch_size: int = 8,
        **options: Any,
    ) -> list[str]:
        """Return the text spoken in each recording.

        Args:
            sounds: WAV files of 16-bit PCM, or samples (N,) in [-1, 1], of any length.
            sample_rate: Rate of the given samples in Hz; None: the model's. Recordings of other
                rates are resampled to the model's.
            language: Code such as "en" for a multilingual model; None: the most probable language
                of each part.
            task: "transcribe", or "translate" into English.
            batch_size: Parts per batch.
            options: Options of `search.Transcription`: `beam_size=1`, `length_penalty=0.0`,
                `max_new_tokens=None` and `scoring="wu"`.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If an argument is out of range, or a file or samples cannot be read.
        """
        if isinstance(sounds, str | os.PathLike | np.ndarray) or hasattr(sounds, "read"):
            raise ValueError(f"sounds must be a sequence of sounds, got one: {sounds!r:.80}")
        parts = [self._parts(sound, sample_rate) for sound in sounds]
        options |= dict(language=language, task=task, batch_size=batch_size)
        flat = self.transcribe_ids([part for own in parts for part in own], **options)
        texts = iter(self.tokenizer.decode(flat))
        return [" ".join(next(texts).strip() for _ in own).strip() for own in parts]

    @spelled_out(Transcription, TRANSCRIBE)
    def transcribe_ids(
        self,
        clips: Sequence[np.ndarray],
        *,
        language: str | None = None,
        task: str = "transcribe",
        batch_size: int = 8,
        **options: Any,
    ) -> list[list[int]]:
        """Return the token ids, without EOS, of the text spoken in each clip.

        Args:
            clips: Samples (N,) at the model's rate, none longer than the model's limit.
            language: See `transcribe`.
            task: See `transcribe`.
            batch_size: Clips per batch.
            options: See `transcribe`.
        """
        require(task in TASKS, "task", task, f"one of {TASKS}")
        require_whole("batch_size", batch_size, 1)
        search = Transcription.of(options, TRANSCRIBE, num_hypotheses=1)
        config, known = self.model.config, self.languages
        if language is not None:
            require(language in known, "language", language, f"None or one of {sorted(known)}")
        features = [self._features(clip) for clip in clips]
        begin = self.first_ids(language, task)
        room = config.max_length - len(begin)
        if search.max_new_tokens is not None:
            room = min(room, search.max_new_tokens)
        found: list[list[int]] = [[] for _ in clips]
        lengths = [len(x) for x in features]
        most = batch_size * config.max_frames
        for chosen, rows, length in search_batches(lengths, most, config.max_frames):
            source = np.zeros((rows, length, config.num_mels), "float32")
            num_frames = np.full(rows, length, "int32")
            for row, i in enumerate(chosen):
                source[row, : lengths[i]] = features[i]
                num_frames[row] = lengths[i]
            inputs = {"features": source}
            if not self.hearing.pads_clips:
                inputs["num_frames"] = num_frames
            first_ids = np.tile(np.array(begin, "int32"), (rows, 1))
            if known and language is None:
                first_ids[:, 1] = self._likeliest(inputs, list(known.values()))
            ids = self._search(inputs, first_ids, room, search)
            for row, i in enumerate(chosen):
                found[i] = until_end(ids[row, : room + 1].tolist(), config.eos_ids)
        return found

    def first_ids(self, language: str | None, task: str = "transcribe") -> list[int]:
        """Return the first ids of the decoder's input: BOS and, of a Whisper, its forced tokens.

        Args:
            language: Code of the language; None: its id is 0, for a language to be detected.
            task: See `transcribe`.
        """
        ids, no_times = [self.model.config.bos_id], self.tokenizer.id_of("<|notimestamps|>")
        if known := self.languages:
            ids += [known.get(language or "", 0), self.tokenizer.id_of(f"<|{task}|>")]
        return ids if no_times is None else [*ids, no_times]

    def _parts(self, sound, sample_rate):
        rate = self.hearing.sample_rate
        if isinstance(sound, np.ndarray):
            if sound.ndim != 1 or not np.issubdtype(sound.dtype, np.floating):
                raise ValueError(
                    f"sounds must be files or samples (N,) of floats, got {sound.shape} of "
                    f"{sound.dtype}"
                )
            before = rate if sample_rate is None else sample_rate
            require_whole("sample_rate", before, 1)
            samples = sound if before == rate else resample(sound, before, rate)
        else:
            samples, _ = read_wav(sound, rate)
        samples = np.asarray(samples, "float32")
        longest = round(self.model.config.max_frames * HOP * rate)
        parts = []
        while len(samples) > longest:
            end = _quietest(samples[:longest])
            parts.append(samples[:end])
            samples = samples[end:]
        return [*parts, samples]

    def _features(self, samples):
        config, rate = self.model.config, self.hearing.sample_rate
        longest = round(config.max_frames * HOP * rate)
        if len(samples) > longest:
            raise ValueError(f"clips must be of at most {longest} samples, got {len(samples)}")
        if self.hearing.pads_clips:
            samples = np.pad(samples, (0, longest - len(samples)))
        return ops.convert_to_numpy(log_mel(samples, rate, config.num_mels, hop=HOP))

    def _likeliest(self, inputs, ids):
        """Return the most probable language of each clip: the prediction after BOS."""
        first = np.full((len(inputs["features"]), 1), self.model.config.bos_id, "int32")
        logits_BV = ops.convert_to_numpy(self.model({**inputs, "target_ids": first}))[:, 0]
        return np.array(ids)[logits_BV[:, ids].argmax(axis=-1)]

    def _search(self, inputs, first_ids, room, search):
        """Return the best ids (B, L); EOS is forced after the last token that fits."""
        key = room, first_ids.shape[1], search
        (ids,) = self._runner.arrays(
            self.model, key, lambda: self._function(*key), [inputs, first_ids]
        )
        return ids

    def _function(self, room, begun, search):
        config, hearing = self.model.config, self.hearing
        first_V = np.zeros(config.vocab_size, "float32")
        first_V[list(hearing.suppressed_first)] = IMPOSSIBLE

        def find(inputs, first_ids):
            logits, state, step = self.model.prefill(
                **inputs, first_ids=first_ids, length=begun + room, beam_size=search.beam_size
            )
            sequences = dict(
                eos_ids=config.eos_ids,
                length=room + 1,
                max_lengths_B=ops.full(ops.shape(logits)[:1], room + 1, dtype="int32"),
                index=begun,
                pad_id=config.pad_id,
                banned_ids=(config.bos_id, *hearing.suppressed),
            )
            logits = ops.cast(logits, "float32") + first_V
            return decode(step, logits, state, search, **sequences)[0][:, 0]

        return find

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `tokenizer.json` and `config.json`; any backend can load them.

        With a `base`, the folder that training with LoRA started from, write an adapter of it.
        """
        facts = {"task": TASK, "hearing": asdict(self.hearing)}
        save_folder(folder, self.model, self.tokenizer, facts, base=base)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Transcriber:
        """Load a transcriber that any backend saved.

        Args:
            folder: Folder of a saved transcriber.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not a saved transcriber, or a file in it is broken.
        """
        config = read_config(folder, "transcriber", FILE, precision)
        task = config.get("task", "translation")
        if task != TASK:
            raise ValueError(f"{folder} is not a saved transcriber but a model of task {task!r}")
        try:
            hearing = Hearing.of(config.get("hearing"))
        except ValueError as error:
            raise ValueError(f"{Path(folder, CONFIG)}: {error}") from error
        return cls(*load_with_tokenizer(folder, "transcriber", Speech, precision), hearing)


def _quietest(samples: np.ndarray) -> int:
    """Return the middle of the quietest 300th in the last sixth: 0.1 s in the last 5 of 30 s."""
    begin, size = len(samples) * 5 // 6, max(1, len(samples) // 300)
    power = np.concatenate([[0.0], np.cumsum(np.square(samples[begin:], dtype="float64"))])
    return begin + int((power[size:] - power[:-size]).argmin()) + size // 2
