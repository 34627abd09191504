"""Schemas of the requests and answers of the tasks besides translation and language models."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)

from keras_transformer.serving.schemas import Many, Text, check_results

ModelName = Annotated[
    Text | None,
    Field(description="Name of the model; may be absent if one served model does this."),
]
Threshold = Annotated[
    StrictFloat | StrictInt | None,
    Field(
        ge=0,
        le=1,
        description="Labels with a lower probability are left out. Absent: 0.5 if a text may have "
        "any number of labels, else 0.",
    ),
]
Texts = Annotated[Many[Text], Field(min_length=1, description="One or more texts.")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: ModelName = None


class TextsRequest(_Form):
    """Texts."""

    texts: Texts


class ClassifyRequest(_Form):
    """Texts, or pairs of texts for a model of pairs."""

    texts: Annotated[Many[Text] | Many[tuple[Text, Text]], Field(min_length=1)]
    threshold: Threshold = None


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


class FillRequest(_Form):
    """Texts with one mask token each."""

    texts: Texts
    top_k: StrictInt = Field(5, ge=1, le=100, description="Number of candidates for each.")

    @model_validator(mode="after")
    def _check_results(self) -> Self:
        check_results(len(self.texts), self.top_k, "texts times top_k")
        return self


class Question(BaseModel):
    """A question and the passage that may answer it."""

    model_config = ConfigDict(extra="forbid")

    question: Text = Field(min_length=1)
    passage: Text


class AnswerRequest(_Form):
    """Questions with their passages."""

    questions: Annotated[Many[Question], Field(min_length=1)]
    top_k: StrictInt = Field(1, ge=1, le=100, description="Number of answers for each.")
    min_score: StrictFloat | StrictInt | None = Field(
        None, description="Answers with a lower score are left out; see the command answer."
    )

    @model_validator(mode="after")
    def _check_results(self) -> Self:
        check_results(len(self.questions), self.top_k, "questions times top_k")
        return self


class Found(BaseModel):
    """What was found in each text or file: `labels`, `entities`, `candidates`, ... by the route."""

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
    """Return the usage of a request for embeddings in OpenAI's form."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}
