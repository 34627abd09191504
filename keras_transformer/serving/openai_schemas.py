"""Schemas of OpenAI's requests for chats and completions; errors name unsupported fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)

from keras_transformer import language
from keras_transformer.search import Generation
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.schemas import Many, Text, writable

# Fields of OpenAI's API that are not supported. Each accepts only null and the values listed here,
# which change nothing.
WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": (),
    "functions": (),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "moderation": (),
    "parallel_tool_calls": (),
    "prediction": (),
    "presence_penalty": (0,),
    "prompt_cache_options": (),
    "prompt_cache_retention": ("in_memory",),
    "reasoning_effort": ("none",),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none",),
    "tools": (),
    "verbosity": ("medium",),
    "web_search_options": (),
}
_OF_MESSAGES: dict[str, tuple[Any, ...]] = {
    "annotations": ([],),
    "audio": (),
    "function_call": (),
    "refusal": (),
    "tool_call_id": (),
    "tool_calls": ([],),
}
Stop = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(writable)]
Ids = Annotated[list[StrictInt], Field(max_length=100_000, fail_fast=True)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, values: Any) -> Any:
        """Return the fields that are not null; raise `Refusal` for unknown or unsupported ones."""
        if not isinstance(values, dict):
            return values
        _check_unsupported(values, WITHOUT_EFFECT, "")
        for name in values.keys() - WITHOUT_EFFECT.keys() - cls.model_fields.keys():
            raise Refusal(400, f"Unrecognized request argument supplied: {name:.80}", name[:80])
        # A field that is null counts as absent.
        return {
            name: value
            for name, value in values.items()
            if value is not None and name not in WITHOUT_EFFECT
        }


def _check_unsupported(values, without_effect, place):
    for name, accepted in without_effect.items():
        value = values.get(name)
        if value is not None and not any(value == x for x in accepted):
            shown = " or ".join(map(repr, accepted)) or "null"
            message = f"{name} is not supported by this server, which accepts {shown} only"
            raise Refusal(400, message, f"{place}{name}", "unsupported_parameter")


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    model_config = ConfigDict(extra="forbid")

    include_usage: StrictBool = Field(
        False, description="Whether a last chunk has the number of tokens."
    )
    include_obfuscation: StrictBool = Field(False, description="Accepted, without effect.")


class _Reply(_Request):
    """Fields that requests for chats and for completions share."""

    model: Text = Field(description="Name of the model, as in /v1/models.")
    temperature: StrictFloat | StrictInt = Field(
        1.0, ge=0, le=2, description="0 takes the most probable tokens."
    )
    top_p: StrictFloat | StrictInt = Field(1.0, ge=0, le=1)
    n: StrictInt = Field(1, ge=1, le=128, description="Number of replies.")
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] = Field(
        [], description="Texts that end a reply; up to 4 of up to 256 characters."
    )
    seed: StrictInt | None = Field(
        None, ge=-(2**63), lt=2**63, description="The same seed gives the same reply."
    )
    stream: StrictBool = Field(False, description="Whether to send server-sent events.")
    stream_options: StreamOptions | None = None
    user: Text = Field("", description="Accepted, without effect.")
    metadata: dict[str, str] = Field({}, max_length=16, description="Accepted, without effect.")
    safety_identifier: Text = Field("", description="Accepted, without effect.")
    prompt_cache_key: Text = Field("", description="Accepted, without effect.")

    @model_validator(mode="after")
    def _check_stream_options(self) -> Self:
        if self.stream_options is not None and not self.stream:
            message = "stream_options is allowed only when stream is true"
            raise Refusal(400, message, "stream_options")
        return self

    def stops(self) -> list[str]:
        """Return the texts that end a reply."""
        return [self.stop] if isinstance(self.stop, str) else self.stop

    def search_of(self, max_tokens: int, writer: language.CausalLM) -> Generation:
        """Return the search options of a request.

        Args:
            max_tokens: Maximum number of tokens of a reply.
            writer: The model; if its folder has search options, they replace OpenAI's defaults.
        """
        drawn = dict(temperature=float(self.temperature), top_p=max(float(self.top_p), 1e-9))
        drawn = {x: y for x, y in drawn.items() if x in self.model_fields_set or not writer.search}
        return writer.options({"max_new_tokens": max_tokens, **drawn})


class Part(BaseModel):
    """A part of a message; only text is accepted."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: Text


class Message(BaseModel):
    """A message of a chat."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["developer", "system", "user", "assistant"]
    content: Text | Many[Part]
    name: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, values: Any) -> Any:
        """Return a message without unsupported fields; raise `Refusal` if one has an effect."""
        if not isinstance(values, dict):
            return values
        _check_unsupported(values, _OF_MESSAGES, "messages.")
        return {name: value for name, value in values.items() if name not in _OF_MESSAGES}

    def plain(self) -> dict[str, str]:
        """Return role, content and name (if any) as texts; role "developer" becomes "system"."""
        content = self.content
        if not isinstance(content, str):
            content = "".join(part.text for part in content)
        role = "system" if self.role == "developer" else self.role
        return {"role": role, "content": content} | ({"name": self.name} if self.name else {})


class ChatRequest(_Reply):
    """A chat to continue."""

    messages: Many[Message] = Field(
        min_length=1, examples=[[{"role": "user", "content": "Who wrote Hamlet?"}]]
    )
    logprobs: StrictBool = Field(False, description="Whether to return log-probabilities.")
    top_logprobs: StrictInt | None = Field(
        None, ge=0, le=20, description="Number of most probable tokens at each position."
    )
    max_completion_tokens: StrictInt | None = Field(
        None, ge=1, description="Maximum tokens of the reply; null: up to the model's length."
    )
    max_tokens: StrictInt | None = Field(
        None, ge=1, description="Older name of max_completion_tokens."
    )

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise Refusal(400, "top_logprobs needs logprobs to be true", "top_logprobs")
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            message = "max_tokens and max_completion_tokens cannot both be given"
            raise Refusal(400, message, "max_tokens")
        return self


class CompletionRequest(_Reply):
    """One or more texts to continue."""

    prompt: Text | Many[Text] | Ids | Many[Ids] = Field(
        description="A text, a list of texts, a list of token ids, or a list of such lists.",
        examples=["To be, or not to be"],
    )
    logprobs: StrictInt | None = Field(
        None, ge=0, le=5, description="Number of most probable tokens at each position."
    )
    max_tokens: StrictInt = Field(16, ge=1, description="Maximum tokens of the reply.")

    def prompts(self) -> list[str | list[int]]:
        """Return the prompts, each a text or token ids."""
        prompt: Any = self.prompt
        is_one = isinstance(prompt, str) or (prompt and all(isinstance(x, int) for x in prompt))
        return [prompt] if is_one else list(prompt)
