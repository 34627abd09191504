"""The `CausalLM`, which continues texts: tokenizer, language model and search as one object."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import (
    COMPILES_EACH_SHAPE,
    SEARCHES_BY_SHAPE,
    smoothed_cross_entropy,
    usable_precision,
)
from keras_transformer.config import require
from keras_transformer.decoding import IMPOSSIBLE, uniforms
from keras_transformer.hub import hugging_face_checkpoint
from keras_transformer.hub.generation_config import search_of
from keras_transformer.language.added_text import continuations
from keras_transformer.language.prompts import before_stop, left_padded, room
from keras_transformer.language.streaming import streamed_text, streamed_tokens
from keras_transformer.models import DecoderOnly
from keras_transformer.running.batches import MULTIPLE, search_batches, until_end
from keras_transformer.running.inputs import require_pieces
from keras_transformer.running.runner import Runner
from keras_transformer.running.search_functions import generation_loop
from keras_transformer.saved import folder as folders
from keras_transformer.search import GENERATE, STREAM, Generation, spelled_out
from keras_transformer.system.named_models import located
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer
from keras_transformer.text.tokenizer import checked_texts, round_up
from keras_transformer.text.translation_prompt import TranslationPrompt


class CausalLM:
    """A language model that continues texts: a GPT, LLaMA, Gemma or other model with `prefill`.

    ```python
    writer = CausalLM.load("saved_models/shakespeare")
    writer.generate(["ROMEO:"], max_new_tokens=200, temperature=0.8, top_p=0.95, seed=1)
    for piece in writer.stream("JULIET:"):
        print(piece, end="", flush=True)
    ```

    Texts are sorted by length and processed in batches of a token budget. The result for a prompt
    does not depend on the others in its batch.

    Args:
        model: A `GPT`, a `LLaMA`, or any model with the same `config` fields and `prefill`.
        tokenizer: Tokenizer that the model was trained with.
        template: Chat template that the model was trained with, for `Chat`; None: it has none.
        search: Default search options of this model, by name, see `search.Generation`. None: those
            of `Generation`.
        prompt: Prompt with which `Translator.load` translates; None: the model is no translator.

    Raises:
        ValueError: If the tokenizer has more pieces than the model.
    """

    def __init__(
        self,
        model: DecoderOnly,
        tokenizer: TextTokenizer,
        template: ChatTemplate | None = None,
        search: Mapping[str, Any] | None = None,
        prompt: TranslationPrompt | None = None,
    ):
        require_pieces(tokenizer, model.config)
        self.model = model
        self.tokenizer = tokenizer
        self.template = template
        self.search = dict(search or {})
        self.prompt = prompt
        self._runner = Runner()

    def options(
        self, given: Mapping[str, Any], accepted: Collection[str] = GENERATE, **others: Any
    ) -> Generation:
        """Return complete search options: those given, else the model's defaults.

        Args:
            given: Options by name.
            accepted: Names of the options that may be given.
            others: See `Generation.of`.
        """
        return Generation.of(given, accepted, self.search, **others)

    @spelled_out(Generation, GENERATE)
    def generate(
        self,
        prompts: Sequence[str],
        *,
        stop: Sequence[str] = (),
        seed: int | None = None,
        parse_special: bool = False,
        tokens_per_batch: int = 8192,
        **options: Any,
    ) -> list[str]:
        """Return the continuation of each prompt, without the prompt.

        If the first new token begins a word, the continuation begins with a space.

        Args:
            prompts: Texts to continue; for an empty text, generation starts from BOS.
            stop: Texts that end the result; they are not part of it.
            seed: Seed of sampling; None: a new one for each call.
            parse_special: Whether text that spells a special token, such as "<|im_end|>", becomes
                this token. Leave it off for prompts of users you do not trust.
            tokens_per_batch: Maximum tokens in a batch, new tokens included.
            options: Options of `search.Generation`: `max_new_tokens=100`, `temperature=None`,
                `top_k=0`, `top_p=1.0`, `repetition_penalty=1.0`, `beam_size=1` and others.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If an argument is out of range, or a prompt fills the model's `max_length`.
        """
        search = self.options(options)
        stop = checked_texts(stop, "stop")
        prompt_ids = self._encode(prompts, parse_special)
        ids = self.generate_ids(prompt_ids, search, seed, tokens_per_batch)
        texts = continuations(self.tokenizer, prompt_ids, ids)
        return [before_stop(text, stop) for text in texts]

    def generate_ids(
        self,
        prompts: Sequence[Sequence[int]],
        search: Generation | None = None,
        seed: int | None = None,
        tokens_per_batch: int = 8192,
        ends: Sequence[int] | None = None,
    ) -> list[list[int]]:
        """Return the new token ids after each prompt, without EOS.

        Args:
            prompts: Token ids of each prompt; if empty, generation starts from BOS.
            search: Options of the search; None: the model's defaults.
            seed, tokens_per_batch: See `generate`.
            ends: Ids of the tokens that end a text; None: the model's EOS ids.

        Raises:
            ValueError: If a prompt fills the model's `max_length`.
        """
        search = search or self.options({})
        limit, ends = self.model.config.max_length, tuple(ends or self.model.config.eos_ids)
        limit = min(search.max_length or limit, limit)
        prompts = [list(prompt) or [self.model.config.bos_id] for prompt in prompts]
        for i, prompt in enumerate(prompts):
            if len(prompt) >= limit:
                raise ValueError(
                    f"prompts must have fewer than {limit} tokens each, the max_length, "
                    f"got {len(prompt)} in prompt {i}"
                )
        if seed is None:
            seed = int(np.random.default_rng().integers(1 << 31))
        results: list[list[int]] = [[] for _ in prompts]
        lengths = [len(prompt) + search.max_new_tokens for prompt in prompts]
        batches = search_batches(lengths, tokens_per_batch, 1 << 30, SEARCHES_BY_SHAPE)
        for chosen, rows, _ in batches:
            batch = [prompts[i] for i in chosen]
            padded = left_padded(batch, rows, self.model.config.pad_id, SEARCHES_BY_SHAPE)
            arguments = list(padded)
            limits = [room(search, prompt, limit) for prompt in batch]
            most = round_up(max(limits), MULTIPLE if SEARCHES_BY_SHAPE else 1)
            batch_search = replace(search, max_new_tokens=min(search.max_new_tokens, most))
            arguments.insert(1, np.array(limits + [1] * (rows - len(batch)), "int32"))
            if search.temperature is not None:
                seeds = [[seed, i] for i in chosen] + [[seed]] * (rows - len(chosen))
                arguments.append(uniforms(seeds, search.max_new_tokens))
            begin = generation_loop(batch_search, self.model, ends)
            ids_BKL, scores_BK = self._runner.search(
                self.model, (batch_search, ends), begin, arguments
            )
            if not (scores_BK[: len(chosen), 0] > IMPOSSIBLE / 2).all():
                raise ValueError("model must give finite logits, got none: are weights NaN?")
            for i, row in zip(chosen, ids_BKL[:, 0].tolist(), strict=False):
                results[i] = until_end(row, (*ends, -1))
        return results

    @spelled_out(Generation, STREAM)
    def stream(
        self,
        prompt: str,
        *,
        stop: Sequence[str] = (),
        seed: int | None = None,
        parse_special: bool = False,
        **options: Any,
    ) -> Iterator[str]:
        """Yield the continuation of one prompt, piece by piece as it is generated.

        A piece is held back while it may be the beginning of a `stop` text or of a character.

        Args:
            prompt: Text to continue; if empty, generation starts from BOS.
            stop: Texts that end the result; they are not part of it.
            seed: Seed of sampling; None: a new one for each call.
            parse_special: See `generate`.
            options: Options of `search.Generation`, such as `max_new_tokens=100` and
                `temperature=None`, except those of beam search.

        Raises:
            TypeError, ValueError: See `generate`.
        """
        search = self.options(options, STREAM)
        stop = checked_texts(stop, "stop")
        (ids,) = self._encode([prompt], parse_special)
        return streamed_text(self.stream_ids(ids, search, seed), self.tokenizer, ids, stop)

    def stream_ids(
        self,
        prompt: Sequence[int],
        search: Generation | None = None,
        seed: int | None = None,
        ends: Sequence[int] | None = None,
    ) -> Iterator[int]:
        """Yield the new token ids after one prompt, one by one, without EOS.

        Args:
            prompt: Ids of the prompt; if empty, generation starts from BOS.
            search: Options of the search, with `beam_size=1`; None: the model's defaults.
            seed: Seed of sampling; None: a new one for each call.
            ends: Ids of the tokens that end the text; None: the model's EOS ids.

        Raises:
            ValueError: If the prompt fills the model's `max_length`, or `beam_size` is not 1.
        """
        config, search = self.model.config, search or self.options({})
        require(search.beam_size == 1, "beam_size", search.beam_size, "1 for a stream")
        prompt, ends = list(prompt) or [config.bos_id], ends or config.eos_ids
        limit = min(search.max_length or config.max_length, config.max_length)
        if len(prompt) >= limit:
            raise ValueError(f"prompt must have fewer than {limit} tokens, got {len(prompt)}")
        return streamed_tokens(self.model, self._runner, prompt, search, seed, ends)

    def score(self, texts: Sequence[str], *, tokens_per_batch: int = 8192) -> list[float]:
        """Return the log-probability of each text: the sum over its tokens except the first.

        Args:
            texts: Texts of at most `max_length` tokens each, see the model's config.
            tokens_per_batch: Maximum tokens in a batch, padding included.

        Raises:
            ValueError: If a text is too long.
        """
        ids, limit = self._encode(texts), self.model.config.max_length
        for text, row in zip(texts, ids, strict=True):
            if len(row) > limit:
                raise ValueError(
                    f"texts must have at most {limit} tokens each, got {len(row)} in {text!r:.60}"
                )
        scores = np.zeros(len(ids))
        lengths = [max(len(row), 1) for row in ids]
        for chosen, rows, length in search_batches(
            lengths, tokens_per_batch, limit, COMPILES_EACH_SHAPE
        ):
            token_ids = np.zeros((rows, length), "int32")
            is_label = np.zeros((rows, length - 1), "float32")
            for row, i in enumerate(chosen):
                token_ids[row, : len(ids[i])] = ids[i]
                is_label[row, : max(len(ids[i]) - 1, 0)] = 1.0
            if length == 1:
                continue
            (result,) = self._runner.arrays(
                self.model, "score", lambda: self._score, [token_ids, is_label]
            )
            scores[chosen] = result[: len(chosen)]
        return scores.tolist()

    def _score(self, token_ids, is_label):
        """Return the summed log-probability of the tokens that are labels: (B,)."""
        inputs = {"token_ids": token_ids}
        # If rotary rates depend on the length, padding must not count as length.
        if self.model.decoder.length_limit is not None:
            is_token = ops.pad(is_label, ((0, 0), (1, 0)), constant_values=1.0)
            inputs["segments"] = ops.cast(is_token, "int32")
        logits = self.model(inputs)[:, :-1]
        loss_BT = smoothed_cross_entropy(logits, token_ids[:, 1:], 0.0)
        return -ops.sum(loss_BT * ops.cast(is_label, loss_BT.dtype), axis=1)

    def _encode(self, texts, parse_special=False):
        special = self.tokenizer.special_names if parse_special else ()
        return self.tokenizer.encode(checked_texts(texts), special=special)

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `tokenizer.json`, `config.json` and the chat template, if any.

        Any backend can load the folder.

        Args:
            folder: Folder to write to; created if missing.
            base: Folder of the model that LoRA training started from: write only the adapter to
                it, `adapter.safetensors`, instead of `model.keras`. None: the whole model.
        """
        facts: dict[str, Any] = {"task": "causal_lm"}
        facts |= {"search": self.search} if self.search else {}
        facts |= {} if self.prompt is None else {"prompt": self.prompt.to_dict()}
        folders.save_folder(folder, self.model, self.tokenizer, facts, [self.template], base)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> CausalLM:
        """Load a saved language model, on any backend.

        Args:
            folder: Folder that `save` wrote, or a name, see `system.named_models`.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not a saved language model, or a file in it is broken.
        """
        folder = located(folder)
        config = folders.read_config(folder, "language model", FILE, precision)
        search = Generation.saved(config, Path(folder, folders.CONFIG))
        parts = folders.load_with_tokenizer(folder, "language model", DecoderOnly, precision)
        values = config.get("prompt")
        prompt = None if values is None else TranslationPrompt.of(values, folder)
        return cls(*parts, ChatTemplate.read(folder), search, prompt)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike, dtype: str | None = None) -> CausalLM:
        """Load a language model, such as a GPT-2, a LLaMA or a Gemma, from Hugging Face's layout.

        Args:
            folder: Folder with `config.json`, weights and tokenizer files.
            dtype: Keras dtype policy of the model; None: "float32". If it would be slower than
                float32 on this machine, float32 is used, with a warning.

        Raises:
            FileNotFoundError, ValueError: See `hub.hugging_face_checkpoint.read_model`; ValueError
                also if the model is no language model.
        """
        model = hugging_face_checkpoint.read_model(folder, usable_precision(dtype or "float32"))
        if not isinstance(model, DecoderOnly):
            raise ValueError(f"{folder} is not a language model but a {type(model).__name__}")
        search = search_of(folder, Generation, hugging_face_checkpoint.read_config(folder)[0])
        return cls(model, TextTokenizer.read(folder), ChatTemplate.read(folder), search)
