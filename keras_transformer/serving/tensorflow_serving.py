"""The REST API of TensorFlow Serving: models by name, and `:predict`."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException, Request

from keras_transformer.serving import openai_api
from keras_transformer.serving.answers import submitted
from keras_transformer.serving.libretranslate import ERRORS
from keras_transformer.serving.schemas import PredictRequest, PredictResponse, body_of, read

router = APIRouter(prefix="/v1/models", tags=["predict"], responses=ERRORS | {404: ERRORS[400]})


@router.post(
    "/{name}:predict",
    openapi_extra=body_of(PredictRequest, forms=False),
    response_model_exclude_none=True,
)
@router.post(
    "/{name}/versions/1:predict",
    openapi_extra=body_of(PredictRequest, forms=False),
    response_model_exclude_none=True,
)
async def predict(request: Request, name: str) -> PredictResponse:
    """Translate texts without splitting them into sentences."""
    request.app.state.guard.check(request)
    # Like TensorFlow Serving, ignore the content type: `curl -d` declares its JSON as a form.
    asked = await read(request, PredictRequest, forms=False)
    if (asked.instances is None) == (asked.inputs is None):
        raise HTTPException(400, "exactly one of instances and inputs must be given")
    service = request.app.state.service
    model = _model(service, name)
    if model.default is None:
        raise HTTPException(400, f"{name} is multilingual and has no default pair: use /translate")
    texts = asked.instances if asked.inputs is None else asked.inputs
    texts = texts["texts"] if isinstance(texts, dict) else texts
    texts = [texts] if isinstance(texts, str) else texts
    texts = [x["texts"] if isinstance(x, dict) else x for x in texts]
    if sum(map(len, texts)) + len(texts) > service.settings.most_characters:
        raise HTTPException(413, f"at most {service.settings.most_characters} characters in all")
    engine = model.engine(model.default)
    found = [several[0] for several in await submitted(service.batcher, engine, texts, 1)]
    answer: dict[str, Any] = {"outputs" if asked.instances is None else "predictions": found}
    if engine.max_length:
        costs = await asyncio.to_thread(engine.costs, texts)
        answer["truncated"] = [i for i, x in enumerate(costs) if x > engine.max_length] or None
    return PredictResponse(**answer)


@router.get("/{name}")
async def status(request: Request, name: str) -> dict[str, Any]:
    """Return the status of a translator, or another model in the form of OpenAI's API."""
    catalogue = request.app.state.service.catalogue
    if (catalogue.writers or catalogue.tools) and name not in catalogue.models:
        return openai_api.facts_of(request, name)
    _model(request.app.state.service, name)
    ready = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": ready}]}


@router.get("/{name}/metadata")
async def metadata(request: Request, name: str) -> dict[str, Any]:
    """Return the signatures of a model."""
    model = _model(request.app.state.service, name)

    def text(tensor):
        shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
        return {"dtype": "DT_STRING", "tensor_shape": shape, "name": f"{tensor}:0"}

    signature = {
        "inputs": {"texts": text("texts")},
        "outputs": {"translations": text("translations")},
        "method_name": "tensorflow/serving/predict",
    }
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": "1"},
        "metadata": {"signature_def": {"signature_def": {"serving_default": signature}}},
    }


def _model(service, name):
    model = service.catalogue.models.get(name)
    if model is None:
        raise HTTPException(
            404, f"model must be one of {', '.join(service.catalogue.models)}, got {name[:80]!r}"
        )
    return model
