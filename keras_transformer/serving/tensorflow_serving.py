"""The REST API of TensorFlow Serving: models by name, and `:predict`."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException, Request

from keras_transformer.serving import openai_api
from keras_transformer.serving.answers import Lister, Scorer, submitted
from keras_transformer.serving.libretranslate import ERRORS
from keras_transformer.serving.predict_forms import NAMES, answer_of, columns_of
from keras_transformer.serving.schemas import PredictRequest, PredictResponse, body_of, read

router = APIRouter(prefix="/v1/models", tags=["predict"], responses=ERRORS | {404: ERRORS[400]})


VERSION = "1"  # of each model
TEXT, FLOAT = "DT_STRING", "DT_FLOAT"
BODY: Any = dict(
    openapi_extra=body_of(PredictRequest, forms=False), response_model_exclude_none=True
)


@router.post("/{name}:predict", **BODY)
@router.post("/{name}/versions/{version}:predict", **BODY)
async def predict(request: Request, name: str, version: str = VERSION) -> PredictResponse:
    """Translate texts, or score translations, without splitting texts into sentences."""
    key = request.app.state.guard.check(request)
    # Like TensorFlow Serving, ignore the content type: `curl -d` declares its JSON as a form.
    asked = await read(request, PredictRequest, forms=False)
    service = request.app.state.service
    model = _model(service, name, version)
    if model.default is None:
        raise HTTPException(400, f"{name} is multilingual and has no default pair: use /translate")
    if not key.allows(*model.default):
        raise HTTPException(403, f"api_key allows {', '.join(key.languages)} only")
    columns, most = columns_of(asked), service.settings.most_characters
    if sum(len(text) + 1 for column in columns for text in column) > most:
        raise HTTPException(413, f"at most {most} characters in all")
    engine = model.engine(model.default)
    answer = answer_of(asked, await _outputs(service.batcher, engine, asked, columns))
    if engine.max_length and asked.signature_name != "score":
        costs = await asyncio.to_thread(engine.costs, columns[0])
        answer["truncated"] = [i for i, x in enumerate(costs) if x > engine.max_length] or None
    return PredictResponse(**answer)


async def _outputs(batcher, engine, asked, columns):
    """Return the outputs of the signature by name."""
    if asked.signature_name == "score":
        pairs = [*zip(*columns, strict=True)]
        costs = await asyncio.to_thread(Scorer(engine).costs, pairs)
        return {
            "scores": await asyncio.wrap_future(batcher.submit(Scorer(engine), pairs, 1, costs))
        }
    (texts,) = columns
    if asked.signature_name == "nbest":
        found = await submitted(batcher, Lister(engine), texts, 1)
        named = {"translations": 0, "scores": 1}
        return {name: [[x[i] for x in row] for row in found] for name, i in named.items()}
    return {"translations": [x[0] for x in await submitted(batcher, engine, texts, 1)]}


@router.get("/{name}")
@router.get("/{name}/versions/{version}")
async def status(request: Request, name: str, version: str = VERSION) -> dict[str, Any]:
    """Return the status of a translator, or another model in the form of OpenAI's API."""
    catalogue = request.app.state.service.catalogue
    if (catalogue.writers or catalogue.tools) and name not in catalogue.models:
        return openai_api.facts_of(request, name)
    _model(request.app.state.service, name, version)
    ready = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": VERSION, "state": "AVAILABLE", "status": ready}]}


@router.get("/{name}/metadata")
@router.get("/{name}/versions/{version}/metadata")
async def metadata(request: Request, name: str, version: str = VERSION) -> dict[str, Any]:
    """Return the signatures of a model."""
    model = _model(request.app.state.service, name, version)
    texts, translations = {"texts": _tensor("texts")}, {"translations": _tensor("translations")}
    scores = {"scores": _tensor("scores", FLOAT)}
    pairs = {name: _tensor(name) for name in NAMES["score"]}
    signatures = {
        "serving_default": _signature(texts, translations),
        "translate": _signature(texts, translations),
        "nbest": _signature(
            texts, {x: _tensor(x, y, 2) for x, y in (("translations", TEXT), ("scores", FLOAT))}
        ),
        "score": _signature(pairs, scores),
    }
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": VERSION},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _tensor(name, kind=TEXT, rank=1):
    shape = {"dim": [{"size": "-1", "name": ""}] * rank, "unknown_rank": False}
    return {"dtype": kind, "tensor_shape": shape, "name": f"{name}:0"}


def _signature(inputs, outputs):
    return {"inputs": inputs, "outputs": outputs, "method_name": "tensorflow/serving/predict"}


def _model(service, name, version):
    model = service.catalogue.models.get(name)
    if model is None:
        raise HTTPException(
            404, f"model must be one of {', '.join(service.catalogue.models)}, got {name[:80]!r}"
        )
    if version != VERSION:
        raise HTTPException(404, f"version must be {VERSION} of {name}, got {version[:80]!r}")
    return model
