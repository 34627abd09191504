"""OpenAI's API of embeddings and transcriptions."""

from __future__ import annotations

import base64
import io
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from keras_transformer import speech
from keras_transformer.serving.errors import Refusal, place_of, said
from keras_transformer.serving.openai_api import admitted
from keras_transformer.serving.row_answers import rows_response
from keras_transformer.serving.schemas import body_of, read
from keras_transformer.serving.task_api import check_size, searched
from keras_transformer.serving.task_models import TaskModel
from keras_transformer.serving.task_schemas import EmbeddingsRequest, TranscriptionForm, usage_of

router = APIRouter(prefix="/v1", tags=["tasks"])


@router.post("/embeddings", openapi_extra=body_of(EmbeddingsRequest, forms=False))
async def embeddings(request: Request) -> Any:
    """Return the vectors of texts, scaled to norm 1 if the model compares them by cosine."""
    service = admitted(request)
    asked = await read(request, EmbeddingsRequest, forms=False)
    model = _model(service, asked.model, "embed")
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    check_size(service, texts)
    tool = model.tools["embed"]
    width, prompts = tool.dimension, tool.embedding.prompts
    if asked.dimensions not in (None, width):
        message = f"dimensions must be {width}, those of {model.name}, got {asked.dimensions}"
        raise Refusal(400, message, "dimensions")
    if asked.prompt_name is not None and asked.prompt_name not in prompts:
        known = ", ".join(prompts) or "none: the model has no prompts"
        raise Refusal(400, f"prompt_name must be one of {known}", "prompt_name")
    options = dict(prompt_name=asked.prompt_name)
    vectors, tokens = await searched(service, model, "embed", texts, **options)

    def shown(vector):
        if asked.encoding_format == "base64":  # little-endian, as OpenAI's clients read it
            return base64.b64encode(vector.astype("<f4").tobytes()).decode()
        return vector.tolist()

    data = (
        {"object": "embedding", "index": i, "embedding": shown(x)} for i, x in enumerate(vectors)
    )
    fields = {"object": "list", "model": model.name, "usage": usage_of(tokens)}
    return await rows_response("data", data, fields)


@router.post("/audio/transcriptions", openapi_extra=body_of(TranscriptionForm))
async def transcriptions(request: Request) -> Any:
    """Return the text spoken in a WAV file, which is the field `file` of the form."""
    service = admitted(request)
    form = await request.form()
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Refusal(400, "file must be a WAV file, in a multipart form", "file")
    try:
        asked = TranscriptionForm.model_validate({x: y for x, y in form.items() if x != "file"})
    except ValidationError as error:
        raise Refusal(400, said(error.errors()), place_of(error.errors())) from error
    model = _model(service, asked.model, "transcribe")
    tool = model.tools["transcribe"]
    if asked.language is not None and asked.language not in tool.languages:
        known = ", ".join(sorted(tool.languages)) or "none: the model has one language"
        message = f"language must be one of {known}, got {asked.language!r:.40}"
        raise Refusal(400, message, "language")
    rate = tool.hearing.sample_rate
    try:
        content = io.BytesIO(await file.read())
        samples = await service.file_workers.run(speech.samples_of, content, None, rate)
    except ValueError as error:
        raise Refusal(400, " ".join(str(error).split()), "file") from error
    options = dict(language=asked.language)
    (text,), _ = await searched(service, model, "transcribe", [samples], **options)
    if asked.response_format == "text":
        return PlainTextResponse(text + "\n")
    if asked.response_format == "json":
        return {"text": text}
    facts = {"language": asked.language or "", "duration": len(samples) / rate}
    return {"task": "transcribe", **facts, "text": text, "segments": []}


def _model(service: Any, name: str, task: str) -> TaskModel:
    model = service.catalogue.tools.get(name)
    if model is None or task not in model.tools:
        known = ", ".join(x.name for x in service.catalogue.tools.values() if task in x.tools)
        message = f"The model {name[:80]!r} cannot {task}; those that can are: {known or 'none'}"
        raise Refusal(404, message, "model", "model_not_found")
    return model
