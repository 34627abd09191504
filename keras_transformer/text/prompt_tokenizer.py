"""`PromptTokenizer`: a language model's tokenizer that writes the prompt around each source."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.context import SEPARATOR
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.special_tokens import pattern_of, replaced
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import Frame, Tokenizer
from keras_transformer.text.translation_prompt import TranslationPrompt, filled

# Stand-ins for the fields that differ from text to text: a chat template is rendered once with
# them, and they are replaced by the values of each text.
_MARKS = {x: f"\ue000{x}\ue000" for x in ("text", "terms", "style", "context")}
_NO_ID = -1
EXPORTS = "hugging-face, gguf or litert"


class PromptTokenizer(Tokenizer):
    """The tokenizer of a translator that is a language model.

    The ids of a source are those of its whole prompt; if `prompt.chat` is true, the model's chat
    template renders it. Text that spells a special token is encoded as plain text.

    Args:
        texts: The model's tokenizer.
        prompt: The prompt.
        template: The model's chat template; None: it has none.
        vocab_size: V, the vocabulary size of the model.
        eos_ids: Ids that end a text of the model.

    Attributes:
        ends: Ids that end a translation: those of `prompt.ends`, the token that ends a turn in the
            chat template, and `eos_ids`.

    Raises:
        ValueError: If the prompt needs a chat template and there is none, or the tokenizer lacks a
            token that ends a translation.
    """

    shared = True
    # Sources are padded with -1, which is no token: prompts may contain the model's padding token,
    # which may be its EOS.
    pad_id = bos_id = _NO_ID
    unk_id = None

    def __init__(
        self,
        texts: TextTokenizer,
        prompt: TranslationPrompt,
        template: ChatTemplate | None,
        vocab_size: int,
        eos_ids: Sequence[int],
    ):
        accepted = "false for a model without chat_template.jinja"
        require(template is not None or not prompt.chat, "chat", True, accepted)
        self._texts, self.prompt = texts, prompt
        self._template = template if prompt.chat else None
        source = self._template.source if self._template else prompt.template
        self._encoder = texts.with_control_tokens(source)
        known = [texts.id_of(x) for x in prompt.ends]
        ends = [x for x in known if x is not None]
        require(len(ends) == len(known), "ends", prompt.ends, "tokens of the vocabulary")
        if self._template:
            text = self._template.after_reply(self._encoder.special_names)
            (after,) = self._encoder.encode([text], framed=False)
            ends += [x for x in after if x in texts.added_ids][:1]
        self.ends = tuple(dict.fromkeys([*ends, *eos_ids]))
        self.eos_id = self.ends[0]
        self.source_vocab_size = self.target_vocab_size = vocab_size
        self.source_languages = self.target_languages = prompt.codes
        self._source, self._target = "source", "target"
        self._chosen: tuple[str | None, str | None] = None, None
        self._glossary: Glossary | None = None
        self._style: str | None = None

    def _between(self, source_language: str | None, target_language: str | None) -> PromptTokenizer:
        chosen = copy.copy(self)
        chosen._chosen = source_language, target_language
        for name in ("source_frame", "_lead"):
            chosen.__dict__.pop(name, None)
        return chosen

    @property
    def has_terms(self) -> bool:
        """Whether the prompt has a template for a text with terms."""
        return self.prompt.variant(*self._chosen).with_terms is not None

    @property
    def has_style(self) -> bool:
        """Whether the prompt has a template for a text with a style."""
        return self.prompt.variant(*self._chosen).with_style is not None

    @property
    def has_context(self) -> bool:
        """Whether the prompt has a template for a text with earlier sentences."""
        return self.prompt.variant(*self._chosen).with_context is not None

    @property
    def instruction(self) -> str:
        """The longest line of the prompt before the text; "" if it begins with the text."""
        prompt = self.prompt.variant(*self._chosen)
        before = filled(prompt.template.split("{text}")[0], prompt.fields_of(*self._chosen))
        return max(map(str.strip, before.splitlines()), key=len, default="")

    @functools.cached_property
    def source_frame(self) -> Frame:  # type: ignore[override]
        """The ids that all prompts begin and end with."""
        one, other = (self._encoded([self._form("template", text=x)])[0] for x in ("x", "7"))
        begin = _num_common(one, other)
        end = _num_common(one[begin:][::-1], other[begin:][::-1])
        return Frame(tuple(one[:begin]), tuple(one[len(one) - end :]))

    def asking_for(self, glossary: Glossary | None, style: str | None) -> PromptTokenizer:
        """Return a tokenizer whose prompts ask for terms and a style.

        Args:
            glossary: Glossary with the terms; a prompt has those that its text contains.
            style: The style.

        Raises:
            ValueError: If there is a style, and the prompt has no place for it.
        """
        accepted = "None: the prompt has no place for a style"
        require(style is None or self.has_style, "style", style, accepted)
        asking = copy.copy(self)
        asking._glossary, asking._style = glossary, style
        return asking

    def _encode(
        self, side: str, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        require(not sampling, "sampling", sampling, "0 for a language model")
        if side == "source":
            return self._prompts(texts)
        lead, *ids = self._encoder.encode(
            [self._lead, *(self._lead + x.strip() for x in texts)], framed=False
        )
        begin = len(lead)
        return [[*row[begin:], self.eos_id] for row in ids]

    def _decode(self, side: str, ids: list[list[int]]) -> list[str]:
        return [x.strip() for x in self._texts.decode(ids)]

    def _prompts(self, texts):
        """Return the ids of the prompt for each text; for an empty one, those of `source_frame`."""
        full = [i for i, text in enumerate(texts) if text.strip()]
        rows = [self.source_frame.around([]) for _ in texts]
        encoded = self._encoded([self._filled(texts[i]) for i in full])
        for i, ids in zip(full, encoded, strict=True):
            rows[i] = ids
        return rows

    def _filled(self, text):
        """Return the prompt of a text, with its style, terms or context if a template has them."""
        prompt = self.prompt.variant(*self._chosen)
        terms = self._glossary.pairs_in(text) if self._glossary is not None else []
        context, _, text = text.rpartition(SEPARATOR)
        values = dict(text=text.strip(), terms=prompt.lines(terms), style=self._style or "")
        values["context"] = "\n".join(x.strip() for x in context.split(SEPARATOR))
        name = "template"
        if self._style is not None:
            name = "with_style"
        elif terms and prompt.with_terms is not None:
            name = "with_terms"
        elif context and prompt.with_context is not None:
            name = "with_context"
        return self._form(name, **values)

    def _form(self, name, **values):
        """Return the prompt with these values, in which special tokens have secret names."""
        form = self._forms(name)
        marks = {_MARKS[x]: value for x, value in values.items()}
        return pattern_of(marks).sub(lambda match: marks[match[0]], form)

    def _forms(self, name):
        key = (name, *self._chosen)
        if key not in self._made:
            self._made[key] = self._rendered(name)
        return self._made[key]

    @functools.cached_property
    def _made(self) -> dict[Any, str]:
        return {}

    def _rendered(self, name):
        """Return a template with the names of the languages, and `_MARKS` for the other fields."""
        prompt = self.prompt.variant(*self._chosen)
        content = filled(getattr(prompt, name), prompt.fields_of(*self._chosen) | _MARKS)
        names = self._encoder.special_names
        if self._template is None:
            return replaced(content, names)
        messages = [{"role": "user", "content": content}]
        return self._template.render(messages, special_names=names)

    @functools.cached_property
    def _lead(self):
        """The text from the last special token or field to the end, which is equal in all prompts.

        A reply is encoded after it, because the ids of a text depend on the character before it.
        """
        form, fields = self._forms("template"), _MARKS.values()
        marks = pattern_of([*self._encoder.special_names.values(), *fields])
        *_, last = marks.finditer(form)  # each template has at least the field of the text
        return form[last.end() if last[0] in fields else last.start() :]

    def _encoded(self, prompts):
        return self._encoder.encode(prompts, framed=not self.prompt.chat)

    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of the model's `tokenizer.json`."""
        return self._texts.fingerprint()

    @property
    def source_model(self) -> bytes:
        """Raise ValueError: there is no SentencePiece model, which some exports need."""
        raise ValueError(f"a language model is exported to {EXPORTS}")

    def pieces_of(self, language: str) -> list[str]:
        """Raise ValueError: exports that need the pieces are for encoder-decoders."""
        raise ValueError(f"a language model is exported to {EXPORTS}")

    def _files(self) -> dict[str, bytes]:
        raise ValueError("a translator that is a language model is saved by CausalLM.save")

    def _config(self) -> dict[str, Any]:
        return {}


def _num_common(one, other):
    """Return the length of the common beginning of two lists."""
    return next(
        (i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
