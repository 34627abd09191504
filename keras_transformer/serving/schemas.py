"""Schemas of requests and answers, for validation and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi import HTTPException, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError


def _writable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be Unicode text, got half of a surrogate pair") from None
    return text


Text = Annotated[str, AfterValidator(_writable)]
Language = Annotated[str, Field(min_length=1, max_length=32, examples=["en"])]
ApiKey = Annotated[str | None, Field(description="If the server asks for one.")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore")


class TranslateRequest(_Model):
    """One text or several, to be translated."""

    q: Text | list[Text] = Field(
        description="Text or texts.", examples=["The old man loves the dog."]
    )
    source: Language = Field(description='Their language, or "auto".')
    target: Language = Field(description="The language to translate into.")
    format: Literal["text", "html"] | None = Field(None, description="None: text.")
    alternatives: int = Field(0, ge=0, description="How many more translations of each, at most.")
    api_key: ApiKey = None


class Detection(_Model):
    """A language and how sure it is."""

    confidence: float = Field(ge=0, le=100)
    language: str


class TranslateResponse(_Model):
    """A list where there was a list of texts."""

    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class DetectRequest(_Model):
    """A text whose language is asked for."""

    q: Text = Field(min_length=1, examples=["Guten Tag"])
    api_key: ApiKey = None


class LanguageEntry(_Model):
    """A language, and those that it is translated into."""

    code: str
    name: str
    targets: list[str]


class FileResponse(_Model):
    """Where the translated file is."""

    translatedFileUrl: str


class AttentionRequest(_Model):
    """A sentence, and its translation if another than the best is to be looked at."""

    q: Text = Field(min_length=1)
    source: Language
    target: Language
    translation: Text | None = None
    api_key: ApiKey = None


class AttentionResponse(_Model):
    """Weights of each layer and head, rows sum to 1.

    Row t of `cross` and `decoder` is the query that predicts target token t; column t of `decoder`
    is the key that reads input token t.
    """

    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    input_tokens: list[str]
    encoder: list[list[list[list[float]]]]
    decoder: list[list[list[list[float]]]]
    cross: list[list[list[list[float]]]]


class PredictRequest(_Model):
    """TensorFlow Serving's two forms: rows (`instances`) or a column (`inputs`)."""

    signature_name: Literal["", "serving_default", "translate"] = "serving_default"
    instances: list[Text | dict[Literal["texts"], Text]] | None = None
    inputs: Text | list[Text] | dict[Literal["texts"], Text | list[Text]] | None = None


class PredictResponse(_Model):
    """Translations, as `predictions` for `instances` and as `outputs` for `inputs`."""

    predictions: list[str] | None = None
    outputs: list[str] | None = None


class ErrorResponse(_Model):
    """An error."""

    error: str


T = TypeVar("T", bound=BaseModel)
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def body_of(model: type[BaseModel], forms: bool = True) -> dict[str, Any]:
    """The request body of a route that takes JSON, or a form too, for the OpenAPI document."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    kinds = ("application/json", FORMS[0]) if forms else ("application/json",)
    return {
        "requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}
    }


async def read(request: Request, model: type[T], forms: bool = True) -> T:
    """A request's JSON object or form.

    Args:
        request: it.
        model: what it should hold.
        forms: whether it may be a form; else it is JSON, whatever kind it says it is.

    Raises:
        HTTPException: 400 if it is neither, or not what the model says.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    try:
        if forms and kind in FORMS:
            form = await request.form()
            several = {name: form.getlist(name) for name in form}
            values: Any = {x: y[0] if len(y) == 1 else list(y) for x, y in several.items()}
        else:
            values = await request.json()
    except HTTPException:
        raise
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body must be JSON or a form: {error}") from error
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise HTTPException(400, said(error.errors())) from error


def said(errors: Any) -> str:
    """The first of pydantic's errors in a line: field, problem, value."""
    first = errors[0]
    place = str((first["loc"] or ("body",))[0])
    return f"{place}: {first['msg']}, got {_short(first.get('input'))}"


def _short(value):
    return ascii(value) if len(ascii(value)) <= 80 else ascii(value)[:77] + "..."
