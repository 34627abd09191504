"""Routes of tasks: `/v1/rerank`, `/v1/see`, and one for each kind of model with a `use`."""

from __future__ import annotations

import asyncio
import io
import operator
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, HTTPException, Request, UploadFile

from keras_transformer.saved.kinds import KINDS, Kind
from keras_transformer.serving.libretranslate import ERRORS
from keras_transformer.serving.row_answers import rows_response
from keras_transformer.serving.schemas import body_of, read
from keras_transformer.serving.task_models import TaskModel
from keras_transformer.serving.task_schemas import ITEMS, Found, RerankRequest, request_of, usage_of

router = APIRouter(prefix="/v1", tags=["tasks"], responses=ERRORS | {404: ERRORS[400]})


@router.post("/rerank", openapi_extra=body_of(RerankRequest, forms=False))
async def rerank(request: Request) -> dict[str, Any]:
    """Rank documents by how well they fit a query: `results`, best first.

    The form is that of Jina, Cohere and vLLM.
    """
    service = _admitted(request)
    asked = await read(request, RerankRequest, forms=False)
    texts = [x if isinstance(x, str) else x.text for x in asked.documents]
    pairs = [(asked.query, text) for text in texts]
    check_size(service, [part for pair in pairs for part in pair])
    model = model_for(service, "rank", asked.model)
    scores, tokens = await searched(service, model, "rank", pairs)
    best = sorted(range(len(texts)), key=lambda i: -scores[i])[: asked.top_n]
    results = [
        {"index": i, "relevance_score": scores[i]}
        | ({"document": {"text": texts[i]}} if asked.return_documents else {})
        for i in best
    ]
    usage = usage_of(tokens)
    return {"id": f"rerank-{uuid.uuid4().hex}", "model": model.name, "usage": usage} | {
        "results": results
    }


def _add_route(kind: Kind) -> None:
    """Add the route of a kind of model, as its `use` describes it."""
    use: Any = kind.use
    schema, command = request_of(kind), str(kind.command)
    name, _ = ITEMS[use.items]

    async def answer(request: Request) -> Any:
        service = _admitted(request)
        asked: Any = await read(request, schema, forms=False)
        items = [
            (x.question, x.passage) if use.items == "questions" else x for x in asked_of(asked)
        ]
        check_size(service, [part for x in items for part in ([x] if isinstance(x, str) else x)])
        options = asked.model_dump(exclude={"model", name})
        if use.items == "texts or pairs":  # texts and pairs get different handlers: no common batch
            options["pairs"] = not isinstance(items[0], str)
        return await _found(service, command, use.found, asked.model, items, **options)

    asked_of = operator.attrgetter(name)
    router.add_api_route(
        f"/{command}",
        answer,
        methods=["POST"],
        name=command,
        description=f"{use.help.splitlines()[0].replace('each line of text', 'each text')} "
        f"`{use.found}` has what is found in each of `{name}`.",
        openapi_extra=body_of(schema, forms=False),
        response_model=Found,
    )


for _kind in KINDS:
    if _kind.use:
        _add_route(_kind)


@router.post("/see", response_model=Found)
async def see(
    request: Request,
    file: Annotated[list[UploadFile], File()],
    model: Annotated[str | None, Form()] = None,
    threshold: Annotated[float | None, Form(ge=0, le=1)] = None,
) -> Any:
    """Find the classes of image files: `labels` of each, best first, as in `/v1/classify`."""
    service = _admitted(request)
    chosen = model_for(service, "see", model)
    images = [io.BytesIO(await upload.read()) for upload in file]
    tool = chosen.tools["see"]
    config, form = tool.model.config, tool.image_format
    # Refuse a broken image here with its file name, before it can make a batch fail.
    arrays = []
    for upload, image in zip(file, images, strict=True):
        try:
            arrays.append(await service.file_workers.run(form.pixels, image, config.image_size))
        except ValueError as error:
            raise HTTPException(400, f"file {upload.filename!r:.80}: {error}") from error
    return await _found(service, "see", "labels", chosen, arrays, threshold=threshold)


def model_for(service: Any, task: str, name: str | None) -> TaskModel:
    """Return the model for a task: the named one, or the only one.

    Raises:
        HTTPException: 404 if no model of this name does the task; 400 if no name is given, and
            none or several models do it.
    """
    fitting = {x.name: x for x in service.catalogue.tools.values() if task in x.tools}
    known = ", ".join(fitting) or "none"
    if name is None and len(fitting) == 1:
        return next(iter(fitting.values()))
    if name not in fitting:
        message = f"model must be one of those for {task}: {known}; got {name!r:.80}"
        raise HTTPException(404 if name else 400, message)
    return fitting[name]


async def searched(
    service: Any, model: TaskModel, task: str, items: Sequence[Any], **options: Any
) -> tuple[Any, int]:
    """Return the result of each item, and the number of tokens of all items.

    The items are computed in batches with those of other requests.
    """
    handler = model.handler(task, **options)
    items, costs = await service.workers.run(handler.read, items)
    return await asyncio.wrap_future(service.batcher.submit(handler, items, 1, costs)), sum(costs)


def check_size(service: Any, texts: Sequence[str]) -> None:
    """Raise HTTPException if texts have too many characters; an empty text counts as one."""
    most = service.settings.most_characters
    if sum(max(len(text), 1) for text in texts) > most:
        raise HTTPException(413, f"a request must have at most {most} characters in all")


def _admitted(request):
    request.app.state.guard.check(request)
    return request.app.state.service


async def _found(service, task, field, name, items, **options):
    """Run a task on items; return the answer, with the results as `field`.

    `name` is the model, its name, or None for the only model of this task.
    """
    model = name if isinstance(name, TaskModel) else model_for(service, task, name)
    results, _ = await searched(service, model, task, items, **options)
    return await rows_response(field, results, {"model": model.name})
