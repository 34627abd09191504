"""Routes of TensorFlow Serving's REST API: `:predict`, status and metadata of models."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException, Request

from keras_transformer.serving import openai_api
from keras_transformer.serving.answers import read_all, submitted, with_wishes
from keras_transformer.serving.errors import not_allowed
from keras_transformer.serving.jobs import Lister, Scorer, Wishes
from keras_transformer.serving.libretranslate import ERRORS
from keras_transformer.serving.predict_forms import NAMES, answer_of, columns_of
from keras_transformer.serving.schemas import PredictRequest, PredictResponse, body_of, read

router = APIRouter(prefix="/v1/models", tags=["predict"], responses=ERRORS | {404: ERRORS[400]})


TEXT, FLOAT = "DT_STRING", "DT_FLOAT"
BODY: Any = dict(
    openapi_extra=body_of(PredictRequest, forms=False), response_model_exclude_none=True
)


@router.post("/{name}:predict", **BODY)
@router.post("/{name}/versions/{version}:predict", **BODY)
@router.post("/{name}/labels/{label}:predict", **BODY)
async def predict(
    request: Request, name: str, version: str | None = None, label: str | None = None
) -> PredictResponse:
    """Translate texts, or score translations, without splitting texts into sentences.

    Without a version or a label, a version is drawn at random, weighted by the shares.
    """
    key = request.app.state.guard.check(request)
    # Like TensorFlow Serving, ignore the content type: `curl -d` declares its JSON as a form.
    asked = await read(request, PredictRequest, forms=False)
    service = request.app.state.service
    (model,) = _models(service, name, version, label) or [service.catalogue.models[name].chosen()]
    if model.default is None:
        raise HTTPException(400, f"{name} is multilingual and has no default pair: use /translate")
    if not key.allows(*model.default):
        raise HTTPException(403, f"api_key allows {', '.join(key.languages)} only")
    columns, most = columns_of(asked), service.settings.most_characters
    if sum(len(text) + 1 for column in columns for text in column) > most:
        raise HTTPException(413, f"at most {most} characters in all")
    handler = model.handler(model.default)
    outputs, costs = await _outputs(service, handler, asked, columns)
    answer = answer_of(asked, outputs)
    if handler.max_length and asked.signature_name != "score":
        answer["truncated"] = [i for i, x in enumerate(costs) if x > handler.max_length] or None
    return PredictResponse(**answer)


async def _outputs(service, handler, asked, columns):
    """Return the outputs of the signature by name, and the number of tokens of each source."""
    batcher, workers = service.batcher, service.workers
    if asked.glossary and asked.signature_name in ("nbest", "score"):
        raise HTTPException(400, f"glossary must be left out for {asked.signature_name}")
    if asked.signature_name == "score":
        pairs, costs = await workers.run(Scorer(handler).read, [*zip(*columns, strict=True)])
        scores = await asyncio.wrap_future(batcher.submit(Scorer(handler), pairs, 1, costs))
        return {"scores": scores}, costs
    (texts,) = columns
    items, costs = await workers.run(read_all, texts, handler, batcher)
    if asked.signature_name == "nbest":
        nbest_lists = await submitted(batcher, workers, Lister(handler), items, 1, costs)
        named = {"translations": 0, "scores": 1}
        return {
            name: [[x[i] for x in row] for row in nbest_lists] for name, i in named.items()
        }, costs
    (searcher,) = await workers.run(with_wishes, [handler], Wishes(asked.glossary), texts)
    hypotheses = await submitted(batcher, workers, searcher, items, 1, costs)
    return {"translations": [x[0] for x in hypotheses]}, costs


@router.get("/{name}")
@router.get("/{name}/versions/{version}")
@router.get("/{name}/labels/{label}")
async def status(
    request: Request, name: str, version: str | None = None, label: str | None = None
) -> dict[str, Any]:
    """Return a translator's version status, or the OpenAI model object of another model."""
    if (version or label or name).endswith(":predict"):
        raise not_allowed(request.method, ["POST"])
    catalogue = request.app.state.service.catalogue
    if (catalogue.writers or catalogue.tools) and name not in catalogue.models:
        return openai_api.facts_of(request, name)
    request.app.state.guard.check(request)
    named_models = _models(request.app.state.service, name, version, label)
    numbers = [
        model.version.number for model in named_models or catalogue.models[name].by_number.values()
    ]
    ready = {"error_code": "OK", "error_message": ""}
    states = [{"version": number, "state": "AVAILABLE", "status": ready} for number in numbers]
    return {"model_version_status": states}


@router.get("/{name}/metadata")
@router.get("/{name}/versions/{version}/metadata")
@router.get("/{name}/labels/{label}/metadata")
async def metadata(
    request: Request, name: str, version: str | None = None, label: str | None = None
) -> dict[str, Any]:
    """Return the signatures of a version of a model; if none is named, of the highest one.

    The signature `score` is left out if the model cannot score. The answer also has the search
    options that are stored in the model's folder.
    """
    request.app.state.guard.check(request)
    service = request.app.state.service
    named_models = _models(service, name, version, label)
    *_, model = named_models or service.catalogue.models[name].by_number.values()
    texts, translations = {"texts": _tensor("texts")}, {"translations": _tensor("translations")}
    signatures = {
        "serving_default": _signature(texts, translations),
        "translate": _signature(texts, translations),
        "nbest": _signature(
            texts, {x: _tensor(x, y, 2) for x, y in (("translations", TEXT), ("scores", FLOAT))}
        ),
    }
    if model.handler(model.default or next(iter(model.pairs))).can_score:
        pairs = {name: _tensor(name) for name in NAMES["score"]}
        signatures["score"] = _signature(pairs, {"scores": _tensor("scores", FLOAT)})
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": model.version.number},
        "metadata": {"signature_def": {"signature_def": signatures}, "search": model.search},
    }


def _tensor(name, kind=TEXT, rank=1):
    shape = {"dim": [{"size": "-1", "name": ""}] * rank, "unknown_rank": False}
    return {"dtype": kind, "tensor_shape": shape, "name": f"{name}:0"}


def _signature(inputs, outputs):
    return {"inputs": inputs, "outputs": outputs, "method_name": "tensorflow/serving/predict"}


def _models(service, name, version, label):
    """Return [the version or label that a request names], or [] if it names neither."""
    models = service.catalogue.models
    if name not in models:
        raise HTTPException(404, f"model must be one of {', '.join(models)}, got {name[:80]!r}")
    for kind, value, known in (
        ("version", version, models[name].by_number),
        ("label", label, models[name].labels),
    ):
        if value is not None and value not in known:
            accepted = f"one of {', '.join(known)}" if known else "left out: there are none"
            raise HTTPException(404, f"{kind} of {name} must be {accepted}, got {value[:80]!r}")
        if value is not None:
            return [known[value]]
    return []
