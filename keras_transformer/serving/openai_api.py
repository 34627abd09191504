"""Routes of OpenAI's API for language models: chat completions, completions, models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from keras_transformer.serving.errors import Refusal, error_body
from keras_transformer.serving.openai_answer import OpenAIAnswer
from keras_transformer.serving.openai_forms import ChatForm, CompletionForm
from keras_transformer.serving.openai_schemas import ChatRequest, CompletionRequest
from keras_transformer.serving.replies import ReplyJob
from keras_transformer.serving.row_answers import rows_response
from keras_transformer.serving.schemas import body_of, read
from keras_transformer.serving.waiting import QueueFullError
from keras_transformer.serving.watch import LEFT
from keras_transformer.serving.writers import LanguageModel

MOST_REPLIES = 1024  # maximum replies to a request
router = APIRouter(prefix="/v1", tags=["language models"])
_EVENTS: Any = {200: {"content": {"text/event-stream": {}, "application/json": {}}}}


@router.post(
    "/chat/completions", openapi_extra=body_of(ChatRequest, forms=False), responses=_EVENTS
)
async def chat_completions(request: Request) -> Any:
    """Reply to a chat."""
    service = admitted(request)
    asked = await read(request, ChatRequest, forms=False)
    model = _model(service, asked.model)
    if model.chat is None:
        message = f"{model.name} has no chat template: use /v1/completions"
        raise Refusal(400, message, "model")
    messages = [message.plain() for message in asked.messages]
    _check_size(service, [message["content"] for message in messages])
    try:
        prompt = await asyncio.to_thread(model.chat.encode, messages)
    except ValueError as error:
        raise Refusal(400, " ".join(str(error).split()), "messages") from error
    top = (asked.top_logprobs or 0) if asked.logprobs else None
    most = asked.max_completion_tokens or asked.max_tokens
    form = ChatForm(asked.model, top)
    return await _answered(request, model, asked, form, [prompt], most, model.chat.ends)


@router.post(
    "/completions", openapi_extra=body_of(CompletionRequest, forms=False), responses=_EVENTS
)
async def completions(request: Request) -> Any:
    """Continue one or more texts."""
    service = admitted(request)
    asked = await read(request, CompletionRequest, forms=False)
    model = _model(service, asked.model)
    prompts = asked.prompts()
    if not prompts:
        raise Refusal(400, "prompt must have one or more texts", "prompt")
    texts = [prompt for prompt in prompts if isinstance(prompt, str)]
    _check_size(service, prompts)
    if asked.n * len(prompts) > MOST_REPLIES:
        message = f"n times the prompts must be at most {MOST_REPLIES:,} replies"
        raise Refusal(400, f"{message}, got {asked.n} times {len(prompts)}", "n")
    if texts:
        encoded = iter(await asyncio.to_thread(model.writer.tokenizer.encode, texts))
        prompts = [next(encoded) if isinstance(prompt, str) else prompt for prompt in prompts]
    form = CompletionForm(asked.model, asked.logprobs)
    return await _answered(request, model, asked, form, prompts, asked.max_tokens, None)


@router.get("/models")
async def models(request: Request) -> dict[str, Any]:
    """List all models except translators."""
    catalogue = admitted(request).catalogue
    every = [*catalogue.writers.values(), *catalogue.tools.values()]
    return {"object": "list", "data": [_facts(model) for model in every]}


def facts_of(request: Request, name: str) -> dict[str, Any]:
    """Return OpenAI's model object of a model that is not a translator.

    Raises:
        Refusal: If there is no such model.
    """
    service = admitted(request)
    return _facts(service.catalogue.tools.get(name) or _model(service, name))


def _facts(model):
    made = {"created": model.loaded, "owned_by": "keras_transformer"}
    tools = [model.writer] if isinstance(model, LanguageModel) else model.tools.values()
    options = [x.search for x in tools if isinstance(getattr(x, "search", None), dict) and x.search]
    search = {"search": options[0]} if options else {}
    return {"id": model.name, "object": "model", **made, **search}


def admitted(request: Request) -> Any:
    """Check the key and the rate of a request, and return the service.

    Raises:
        Refusal: 401 if the key is missing or wrong.
        HTTPException: 429 if there were too many requests.
    """
    try:
        request.app.state.guard.check(request)
    except HTTPException as error:
        if error.status_code != 403:
            raise
        message = "Incorrect API key provided: send it as Authorization: Bearer"
        raise Refusal(401, message, code="invalid_api_key") from error
    return request.app.state.service


def _model(service, name):
    model = service.catalogue.writers.get(name)
    if model is None:
        if name in service.catalogue.models:
            message = f"{name[:80]} is a translator: use /translate"
            raise Refusal(400, message, "model")
        known = ", ".join(service.catalogue.writers) or "none"
        message = f"The model {name[:80]!r} does not exist; the language models are: {known}"
        raise Refusal(404, message, "model", "model_not_found")
    return model


def _check_size(service, prompts):
    most = service.settings.most_characters
    if sum(max(len(prompt), 1) for prompt in prompts) > most:
        raise Refusal(413, f"a request must have at most {most} characters in all")


async def _answered(request, model, asked, form, prompts, most, ends):
    """Return the answer to a request, whole or as a stream of events."""
    replies = request.app.state.service.replies.get(model.name)
    if replies is None or replies.model is not model.writer.model:
        raise QueueFullError("the models are being replaced")
    limit = replies.length
    for prompt in prompts:
        if len(prompt) >= limit:
            message = (
                f"This model's maximum context length is {limit} tokens; your prompt has "
                f"{len(prompt)}"
            )
            param = "messages" if isinstance(asked, ChatRequest) else "prompt"
            raise Refusal(400, message, param, "context_length_exceeded")
        if not all(0 <= token < model.writer.model.config.vocab_size for token in prompt):
            raise Refusal(400, "prompt must hold ids of the model's vocabulary", "prompt")
    replies.check_size(asked.n * sum(max(len(prompt), 1) for prompt in prompts))
    seed = int(np.random.default_rng().integers(1 << 31)) if asked.seed is None else asked.seed
    search = asked.search_of(most or limit, model.writer)
    every = [prompt for prompt in prompts for _ in range(asked.n)]
    jobs = [
        ReplyJob(prompt, search, _seeds(seed, i), ends, form.top or 0)
        for i, prompt in enumerate(every)
    ]
    answer = OpenAIAnswer(replies, model.names, jobs, asked.n, asked.stops(), form)
    answer.begin(request.client.host if request.client else "")
    if asked.stream:
        with_usage = bool(asked.stream_options and asked.stream_options.include_usage)
        return EventStream(request.scope, answer, with_usage)
    try:
        body = await _unless_gone(request, answer.whole())
        return await rows_response("choices", body.pop("choices"), body)
    finally:
        answer.close()


def _seeds(seed, i):
    """Return the seeds of reply i: integers of at least 0, as NumPy demands."""
    return [seed, i] if seed >= 0 else [-seed, i, 1]


async def _unless_gone(request, work):
    """Return the result of a coroutine, which is cancelled if the client disconnects."""

    async def gone():
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(gone())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise HTTPException(LEFT, "the client has gone")
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class EventStream(StreamingResponse):
    """An answer as server-sent events; if the client disconnects, its replies end.

    Args:
        scope: The request's scope.
        answer: The answer; its jobs are queued already.
        with_usage: Whether an additional last chunk has the numbers of tokens.
    """

    def __init__(self, scope: Scope, answer: OpenAIAnswer, with_usage: bool):
        self._scope, self._answer = scope, answer
        events = self._events(answer.chunks(with_usage))
        headers = {"X-Accel-Buffering": "no"}  # nginx would hold back the events
        super().__init__(events, media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._answer.close()

    async def _events(self, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
        try:
            async for chunk in chunks:
                yield _event(chunk)
        except Exception:  # the status has been sent: the error is an event
            yield _event(error_body(self._scope, 500, "the server failed: see its log"))
            raise
        yield "data: [DONE]\n\n"


def _event(value):
    # ASCII only: some clients take U+2028 and similar characters for the end of a line.
    return f"data: {json.dumps(value)}\n\n"
