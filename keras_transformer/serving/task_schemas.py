"""Schemas of requests and answers of tasks other than translation and language models."""

from __future__ import annotations

import dataclasses
import functools
import operator
import typing
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    create_model,
    model_validator,
)

from keras_transformer.saved.kinds import Kind
from keras_transformer.serving.schemas import Many, Text, check_results

ModelName = Annotated[
    Text | None,
    Field(description="Name of the model; may be absent if one served model does this."),
]
Texts = Annotated[Many[Text], Field(min_length=1, description="One or more texts.")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: ModelName = None


class Document(BaseModel):
    """A text to rank, as an object."""

    model_config = ConfigDict(extra="forbid")

    text: Text


class RerankRequest(_Form):
    """A query and the texts to rank for it, as in the APIs of Jina, Cohere and vLLM."""

    query: Text = Field(min_length=1)
    documents: Annotated[
        list[Text | Document], Field(min_length=1, max_length=2048, fail_fast=True)
    ]
    top_n: StrictInt | None = Field(None, ge=1, description="Number of texts. Absent: all.")
    return_documents: StrictBool = Field(True, description="Whether results have the texts.")


class Question(BaseModel):
    """A question and the passage that may answer it."""

    model_config = ConfigDict(extra="forbid")

    question: Text = Field(min_length=1)
    passage: Text


Pairs = Annotated[Many[Text] | Many[tuple[Text, Text]], Field(min_length=1)]
# Field and type of the items of a request, by `Use.items`.
ITEMS: dict[str, tuple[str, Any]] = {
    "texts": ("texts", Texts),
    "texts or pairs": ("texts", Pairs),
    "questions": ("questions", Annotated[Many[Question], Field(min_length=1)]),
}


def request_of(kind: Kind) -> type[BaseModel]:
    """Return the schema of the requests for models of a kind, from its `use`."""
    use: Any = kind.use
    name, items = ITEMS[use.items]
    hints = typing.get_type_hints(use.options)
    fields = {x.name: x for x in dataclasses.fields(use.options) if x.metadata.get("served", True)}
    contents: dict[str, Any] = {x: _field(hints[x], field) for x, field in fields.items()}
    many = {"top_k"} & {*contents}

    def check(self: Any) -> Any:
        for option in many:
            check_results(len(getattr(self, name)), getattr(self, option), f"{name} times {option}")
        return self

    validators: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    return create_model(
        f"{str(kind.command).capitalize()}Request",
        __base__=_Form,
        __validators__=validators,
        **{name: (items, ...)} | contents,
    )


def _field(hint, field):
    """Return type and default of an option for a schema; text is not accepted for numbers."""

    def checked(value):
        if value is not None:
            field.metadata["check"](field.name, value)
        return value

    strict = {int: StrictInt, float: StrictFloat | StrictInt}
    parts = [strict.get(x, x) for x in typing.get_args(hint) or (hint,)]
    kind = functools.reduce(operator.or_, parts)
    text = field.metadata["help"].replace("[default:", "[absent:")
    limits = Field(description=text, le=field.metadata.get("most"))
    return Annotated[kind, AfterValidator(checked), limits], field.default


class Found(BaseModel):
    """Results of each item of a request; the route names their field: `labels`, `entities` ..."""

    model_config = ConfigDict(extra="allow")

    model: str


class EmbeddingsRequest(BaseModel):
    """A request of OpenAI's API of embeddings."""

    model_config = ConfigDict(extra="forbid")

    model: Text = Field(description="Name of the model, as in /v1/models.")
    input: (
        Annotated[Text, Field(min_length=1)]
        | Annotated[
            list[Annotated[Text, Field(min_length=1)]],
            Field(min_length=1, max_length=2048, fail_fast=True),
        ]
    ) = Field(description="A text, or up to 2,048 texts. Lists of token ids are refused.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: StrictInt | None = Field(None, description="Only the model's own is accepted.")
    prompt_name: Text | None = Field(
        None,
        description='Name of one of the model\'s prompts, such as "query"; absent: its default.',
    )
    user: Text | None = Field(None, description="Accepted, without effect.")


class TranscriptionForm(BaseModel):
    """The fields of OpenAI's API of transcriptions, besides the file."""

    model_config = ConfigDict(extra="forbid")

    model: Text
    language: Text | None = None
    prompt: Literal[""] = ""
    response_format: Literal["json", "text", "verbose_json"] = "json"
    temperature: float = Field(0.0, ge=0, le=0)
    stream: StrictBool = False


def usage_of(tokens: int) -> dict[str, Any]:
    """Return the `usage` of an answer in OpenAI's form, from the request's number of tokens."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}
