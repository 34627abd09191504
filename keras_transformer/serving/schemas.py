"""Schemas of requests and answers, for validation and OpenAPI."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from fastapi import HTTPException, Request
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from keras_transformer.serving.errors import Refusal, place_of, said
from keras_transformer.text.glossary import Glossary


def writable(text: str) -> str:
    """Return a text if it is valid Unicode, else raise ValueError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be Unicode text, got half of a surrogate pair") from None
    return text


def _given(texts: str | list[str]) -> str | list[str]:
    if not texts:
        raise ValueError("must not be empty")
    return texts


def _parsed(value):
    """Return the JSON value of a text, as forms send it; other values as they are."""
    return json.loads(value) if isinstance(value, str) else value


def with_forms(terms: dict[str, str | list[str]]) -> dict[str, list[str]]:
    """Return terms with the list of their forms; ValueError if one of them is empty."""
    rows = {term: [forms] if isinstance(forms, str) else forms for term, forms in terms.items()}
    Glossary(rows)
    return rows


MOST_ITEMS = 10_000  # maximum texts of a request, and maximum results: texts times results per text
MOST_ERRORS = 100  # maximum errors that an answer describes; 100,000 would take a second

Item = TypeVar("Item")
# `fail_fast`: without it, pydantic describes each wrong item of a list, even a million.
Many = Annotated[list[Item], Field(max_length=MOST_ITEMS, fail_fast=True)]
Text = Annotated[str, AfterValidator(writable)]
Language = Annotated[str, Field(min_length=1, max_length=32, examples=["en"])]
TermsField = Annotated[
    dict[Text, Text | list[Text]] | None,
    AfterValidator(lambda x: with_forms(x) if x else None),
    BeforeValidator(_parsed),
    Field(
        description="Terms of the source, each with the translation that it must get, or a list of "
        "its forms.",
        examples=[{"dog": ["Hund", "Hunde", "Hunden"]}],
    ),
]
ApiKey = Annotated[str | None, Field(description="API key, if the server requires one.")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore")


class TranslateRequest(_Model):
    """One or more texts to translate."""

    q: Annotated[Text | Many[Text], AfterValidator(_given)] = Field(
        description="A text or a list of texts.", examples=["The old man loves the dog."]
    )
    source: Language = Field(description='Language of the texts, or "auto".')
    target: Language = Field(description="Language to translate into.")
    format: Literal["text", "html"] | None = Field(
        None, description="Format of the texts; null: text."
    )
    alternatives: Annotated[int, AfterValidator(lambda x: max(x, 0))] = Field(
        0, description="Maximum number of further translations per text."
    )
    glossary: TermsField = None
    style: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="Style for a language model's prompt that has a place for it.",
        examples=["formal"],
    )  # fmt: skip
    api_key: ApiKey = None


class LiveRequest(_Model):
    """A text that is still being written, and what is written of its translation."""

    q: Text = Field(
        description="The text so far, in whole words; from its last sentence on if there are more.",
        examples=["I know that my brother was"],
    )
    source: Language = Field(description="Language of the text.")
    target: Language = Field(description="Language to translate into.")
    written: Text = Field(
        "", description="What is written of the translation of the first sentence in q."
    )
    policy: Literal["wait-k", "align-att"] = "wait-k"
    k: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Number of the policy; null: 3 for wait-k, 4 for align-att."
    )
    final: bool = Field(False, description="Whether the last sentence ends after q.")
    api_key: ApiKey = None


class Detection(_Model):
    """A language and its confidence in percent."""

    confidence: float = Field(ge=0, le=100)
    language: str


class TranslateResponse(_Model):
    """Translations: lists if the request had a list of texts.

    `quality` is in [0, 1]: an estimate of the chrF of the translation. Only answers for plain texts
    by models with a calibration have it. Null in a list: the text has no words, or cannot be
    scored.
    """

    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    quality: float | list[float | None] | None = None


class DetectRequest(_Model):
    """A text whose language to detect."""

    q: Text = Field(min_length=1, examples=["Guten Tag"])
    api_key: ApiKey = None


class LanguageEntry(_Model):
    """A language, and the languages into which it is translated."""

    code: str
    name: str
    targets: list[str]


class FileResponse(_Model):
    """The URL of a translated file."""

    translatedFileUrl: str


class AttentionRequest(_Model):
    """A sentence, and optionally its translation; without it, the model's best is used."""

    q: Text = Field(min_length=1)
    source: Language
    target: Language
    translation: Text | None = None
    api_key: ApiKey = None


class AttentionResponse(_Model):
    """Attention weights (layers, heads, queries, keys); rows sum to 1.

    Row t of `cross` and `decoder` is the query that predicts target token t; column t of `decoder`
    is the key of input token t. `source_continues` and `target_continues` say for each token
    whether it continues the word of the previous token.
    """

    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    input_tokens: list[str]
    source_continues: list[bool]
    target_continues: list[bool]
    encoder: list[list[list[list[float]]]]
    decoder: list[list[list[list[float]]]]
    cross: list[list[list[list[float]]]]


class PredictRequest(_Model):
    """Texts in one of TensorFlow Serving's two forms: rows (`instances`) or columns (`inputs`)."""

    signature_name: Literal["", "serving_default", "translate", "nbest", "score"] = (
        "serving_default"
    )
    instances: Many[Any] | None = Field(None, examples=[["The old man loves the dog."]])
    inputs: Any = None
    glossary: TermsField = None


class PredictResponse(_Model):
    """Translations or scores, as `predictions` for `instances` and as `outputs` for `inputs`.

    `truncated` has the indices of texts that were cut because they have more tokens than the model
    takes; it is absent if no text was cut.
    """

    predictions: list[Any] | None = None
    outputs: list[Any] | dict[str, list[Any]] | None = None
    truncated: list[int] | None = None


class ErrorResponse(_Model):
    """An error message."""

    error: str


def _with_newlines(value):
    """Replace the CRLF that browsers send in forms with LF."""
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


T = TypeVar("T", bound=BaseModel)
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def body_of(model: type[BaseModel], forms: bool = True) -> dict[str, Any]:
    """Return the OpenAPI description of a request body, in JSON or as a form.

    Args:
        model: Schema of the body.
        forms: Whether forms are accepted besides JSON.
    """
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    kinds = ("application/json", FORMS[0]) if forms else ("application/json",)
    return {
        "requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}
    }


async def read(request: Request, model: type[T], forms: bool = True) -> T:
    """Read and validate the body of a request.

    Args:
        request: The request.
        model: Schema of the body.
        forms: Whether forms are accepted too; their fields may also be in the URL. If False, the
            body is read as JSON, whatever its content type.

    Raises:
        HTTPException: 400 if the body is neither JSON nor a form.
        Refusal: 400 if the body does not match the schema.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    try:
        if forms and (kind in FORMS or (request.query_params and not kind)):
            values: Any = {}
            for form in (request.query_params, await request.form()):
                fields: dict[str, list] = {}
                for name, value in form.multi_items():
                    fields.setdefault(name, []).append(_with_newlines(value))
                values |= {name: x[0] if len(x) == 1 else x for name, x in fields.items()}
        else:
            values = await request.json()
    except HTTPException:
        raise
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body must be JSON or a form: {error}") from error
    try:
        return model.model_validate(values)
    except ValidationError as error:
        if error.error_count() > MOST_ERRORS:
            message = f"more than {MOST_ERRORS} fields of the body are wrong or unknown"
            raise Refusal(400, message) from error
        errors = error.errors()
        message = said(errors)
        if kind in FORMS and any(name.lstrip().startswith("{") for name in values):
            message = f"{message}; JSON needs the header Content-Type: application/json"
        raise Refusal(400, message, param=place_of(errors)) from error


def check_results(texts: int, each: int, names: str) -> None:
    """Raise Refusal if a request asks for too many results.

    Args:
        texts: Number of its texts.
        each: Number of results for each.
        names: Names of the two numbers, such as "texts times top_k".
    """
    if texts * each > MOST_ITEMS:
        raise Refusal(400, f"{names} must be at most {MOST_ITEMS:,}, got {texts} times {each}")
