"""The `Transcriber`, which transcribes recordings: model, search and tokenizer as one object."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.config import require, require_whole
from keras_transformer.data.audio import log_mel
from keras_transformer.models import Speech
from keras_transformer.running.batches import search_batches, until_end
from keras_transformer.running.inputs import require_pieces
from keras_transformer.running.runner import Runner
from keras_transformer.running.search_functions import transcription_function
from keras_transformer.saved.contents import CONFIG, read_config
from keras_transformer.saved.folder import load_with_tokenizer, save_folder
from keras_transformer.search import TRANSCRIBE, Transcription, spelled_out
from keras_transformer.speech.hearing import HOP, Hearing, time_ids
from keras_transformer.speech.live_words import agreed_words
from keras_transformer.speech.sounds import Sound, cut, samples_of
from keras_transformer.speech.word_times import Word, check_alignment_heads, timed_words
from keras_transformer.system.named_models import located
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer

TASK = "speech"  # name of the task in config.json
TASKS = ("transcribe", "translate")


class Transcriber:
    """A transcriber of recordings: a Whisper, or a model of `training.speech_recognition`.

    ```python
    transcriber = load_pretrained("openai/whisper-tiny")
    transcriber.transcribe(["speech.wav"], language="en")
    ```

    Recordings longer than the model's limit, 30 seconds in Whisper, are cut at quiet places, and
    the texts of the parts are joined. The decoder of a multilingual Whisper begins with BOS and the
    tokens of language, task and "no timestamps" (Radford et al. 2022, section 2.3).

    Args:
        model: A `Speech`.
        tokenizer: The tokenizer that the model was trained with.
        hearing: The model's input format and special tokens; None: the defaults of `Hearing`.
        search: Default search options of this model, by name, see `search.Transcription`; for
            example those of an imported model's authors. None: those of `Transcription`.

    Raises:
        ValueError: If the tokenizer has more pieces than the model, or an alignment head is not in
            the model.
    """

    def __init__(
        self,
        model: Speech,
        tokenizer: TextTokenizer,
        hearing: Hearing | None = None,
        search: Mapping[str, Any] | None = None,
    ):
        require_pieces(tokenizer, model.config)
        self.model, self.tokenizer = model, tokenizer
        self.hearing, self.search = hearing or Hearing(), dict(search or {})
        check_alignment_heads(self.hearing, model.config)
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
        sounds: Sequence[Sound],
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
            sample_rate: Rate in Hz of sounds that are arrays; None: the model's. Sounds of another
                rate are resampled.
            language: Code such as "en", for a multilingual model. None: the default of the model's
                authors (`hearing.language`), if any, else the most probable language of each part.
            task: "transcribe", or "translate" into English.
            batch_size: Parts per batch if they have the maximum length; shorter parts are processed
                in larger batches.
            options: Options of `search.Transcription`, such as `beam_size=1`, `length_penalty=0.0`
                and `max_new_tokens=None`, except those of sampling.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If an argument is out of range, a file cannot be read, or an array is not
                samples (N,) of finite floats.
        """
        parts = self._parts(sounds, sample_rate)
        options |= dict(language=language, task=task, batch_size=batch_size)
        flat = self.transcribe_ids([part for row in parts for part in row], **options)
        texts = iter(self.tokenizer.decode(flat))
        return [" ".join(next(texts).strip() for _ in row).strip() for row in parts]

    @spelled_out(Transcription, TRANSCRIBE)
    def transcribe_words(
        self,
        sounds: Sequence[Sound],
        *,
        sample_rate: int | None = None,
        language: str | None = None,
        task: str = "transcribe",
        batch_size: int = 8,
        **options: Any,
    ) -> list[list[Word]]:
        """Return the words spoken in each recording, with their start and end in seconds.

        The times are derived from cross-attention, see `word_times.token_starts`, in steps of
        0.02 s; a pause counts as part of a neighbouring word. The arguments are those of
        `transcribe`.
        """
        parts, results = self._parts(sounds, sample_rate), []
        flat = [part for row in parts for part in row]
        all_ids = iter(self._ids_of(flat, language, task, batch_size, options))
        for row in parts:
            begin, words = 0.0, list[Word]()
            for part in row:
                seconds = len(part) / self.hearing.sample_rate
                spoken = self._features(part), seconds, *next(all_ids)
                words += timed_words(self.model, self.tokenizer, self.hearing, begin, *spoken)
                begin += seconds
            results.append(words)
        return results

    @spelled_out(Transcription, TRANSCRIBE)
    def stream(
        self,
        chunks: Iterable[np.ndarray],
        *,
        sample_rate: int | None = None,
        interval: float | None = None,
        language: str | None = None,
        task: str = "transcribe",
        **options: Any,
    ) -> Iterator[Word]:
        """Yield the words of one sound while it arrives, with their start and end in seconds.

        A word is yielded when two transcriptions in a row agree on it, see
        `live_words.agreed_words`. The other arguments are those of `transcribe`.

        Args:
            chunks: Samples (N,) of the sound in [-1, 1], in pieces of any length.
            sample_rate: Rate of the samples in Hz; None: the model's.
            interval: Seconds of new sound between transcriptions; the delay of a word is about
                twice as long. None: 1, or a quarter of the model's limit if that is less.
        """
        rate = self.hearing.sample_rate if sample_rate is None else sample_rate
        require_whole("sample_rate", rate, 1)
        options |= dict(sample_rate=rate, language=language, task=task)

        def transcribe(samples):
            return self.transcribe_words([samples], **options)[0]

        return agreed_words(transcribe, chunks, rate, self.model.config.max_frames * HOP, interval)

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
            language, task, batch_size, options: See `transcribe`.
        """
        return [ids for _, ids in self._ids_of(clips, language, task, batch_size, options)]

    def _ids_of(self, clips, language, task, batch_size, options):
        """Return, for each clip, the ids that the decoder begins with, and the ids of the text."""
        require(task in TASKS, "task", task, f"one of {TASKS}")
        require_whole("batch_size", batch_size, 1)
        config, times = self.model.config, time_ids(self.hearing, self.tokenizer)
        search = Transcription.of(options, TRANSCRIBE, self.search, num_hypotheses=1)
        search = replace(
            search,
            suppress_tokens=tuple(x for x in self.hearing.suppressed if x not in config.eos_ids),
            begin_suppress_tokens=self.hearing.suppressed_first,
        )
        known, language = self.languages, language or self.hearing.language
        accepted = f"None or one of {sorted(known)}"
        require(language is None or language in known, "language", language, accepted)
        features = [self._features(clip) for clip in clips]
        begin = self.first_ids(language, task)
        most = search.max_new_tokens or config.max_length
        room = min(config.max_length - len(begin), most)
        results: list[tuple[list[int], list[int]]] = [([], []) for _ in clips]
        lengths = [len(x) for x in features]
        frames_per_batch = batch_size * config.max_frames
        for chosen, rows, length in search_batches(
            lengths, frames_per_batch, config.max_frames, COMPILES_EACH_SHAPE
        ):
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
            key = search, room, first_ids.shape[1]
            make = functools.partial(transcription_function, self.model, *key)
            (ids,) = self._runner.arrays(self.model, key, make, [inputs, first_ids])
            for row, i in enumerate(chosen):
                text_ids = until_end(ids[row, :room].tolist(), (*config.eos_ids, config.pad_id))
                text_ids = [x for x in text_ids if x not in times]
                results[i] = first_ids[row].tolist(), text_ids
        return results

    def first_ids(self, language: str | None, task: str = "transcribe") -> list[int]:
        """Return the ids that the decoder's input begins with: BOS, and Whisper's special tokens.

        If `language` is None, the id at the position of its token is 0.

        Args:
            language: Language code, or None.
            task: "transcribe" or "translate".
        """
        ids, no_times = [self.model.config.bos_id], self.tokenizer.id_of("<|notimestamps|>")
        if known := self.languages:
            ids += [known.get(language or "", 0), self.tokenizer.id_of(f"<|{task}|>")]
        return ids if no_times is None else [*ids, no_times]

    def _parts(self, sounds, sample_rate):
        """Return each sound as a list of parts, samples (N,) within the model's limit."""
        if isinstance(sounds, str | os.PathLike | np.ndarray) or hasattr(sounds, "read"):
            raise ValueError(f"sounds must be a sequence of sounds, got one: {sounds!r:.80}")
        rate = self.hearing.sample_rate
        return [cut(samples_of(x, sample_rate, rate), self._longest) for x in sounds]

    @property
    def _longest(self):
        return round(self.model.config.max_frames * HOP * self.hearing.sample_rate)

    def _features(self, samples):
        mels, longest = self.model.config.num_mels, self._longest
        require(len(samples) <= longest, "clips", len(samples), f"of at most {longest} samples")
        if self.hearing.pads_clips:
            samples = np.pad(samples, (0, longest - len(samples)))
        return ops.convert_to_numpy(log_mel(samples, self.hearing.sample_rate, mels, hop=HOP))

    def _likeliest(self, inputs, ids):
        """Return the id of the most probable language of each clip, as predicted after BOS."""
        first = np.full((len(inputs["features"]), 1), self.model.config.bos_id, "int32")
        logits_BV = ops.convert_to_numpy(self.model({**inputs, "target_ids": first}))[:, 0]
        return np.array(ids)[logits_BV[:, ids].argmax(axis=-1)]

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `tokenizer.json`, `config.json` and a model card.

        The arguments are those of `EncoderTask.save`.
        """
        facts = {"task": TASK, "hearing": asdict(self.hearing)}
        facts |= {"search": self.search} if self.search else {}
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
        folder = located(folder)
        config = read_config(folder, "transcriber", FILE, precision)
        try:
            hearing = Hearing.of(config.get("hearing"))
        except ValueError as error:
            raise ValueError(f"{Path(folder, CONFIG)}: {error}") from error
        search = Transcription.saved(config, Path(folder, CONFIG))
        return cls(*load_with_tokenizer(folder, "transcriber", Speech, precision), hearing, search)
