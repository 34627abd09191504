"""The route of live translation: server-sent events with the text that is final."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import StreamingResponse

from keras_transformer.serving.libretranslate import ERRORS, admitted, check_pair, check_size
from keras_transformer.serving.schemas import LiveRequest, body_of, read
from keras_transformer.text.arriving_text import sentence_parts
from keras_transformer.text.word_spans import join_words

router = APIRouter(tags=["translate"], responses=ERRORS)
_EVENTS: Any = {200: {"content": {"text/event-stream": {}}}}


@router.post("/live", openapi_extra=body_of(LiveRequest), responses=_EVENTS)
async def live(request: Request) -> StreamingResponse:
    """Continue the translation of a text that is still being written.

    Each event is an object with `text`, to append to the translation of a sentence, and
    `ends_sentence`, whether this completes it; the last event is `[DONE]`.
    """
    asked = await read(request, LiveRequest)
    service, key = admitted(request, asked.api_key)
    check_size(service, [asked.q, asked.written])
    source, target = map(service.catalogue.code, (asked.source, asked.target))
    check_pair(key, source, target)
    handlers = service.catalogue.route(source, target)
    if len(handlers) > 1:
        raise HTTPException(400, f"live translation from {source} to {target} needs one translator")
    events = _events(service, handlers[0], asked)
    first = await anext(events)  # an error of the first one still has a status
    headers = {"X-Accel-Buffering": "no"}  # nginx would hold back the events
    return StreamingResponse(_after(first, events), headers=headers, media_type="text/event-stream")


async def _events(service: Any, handler: Any, asked: LiveRequest) -> AsyncIterator[str]:
    """Yield an event for each sentence that has new text or ends."""
    written = asked.written
    for words, ends in list(sentence_parts(asked.q)):
        if words:
            text, is_whole = join_words(words), ends or asked.final
            _, (cost,) = await service.workers.run(handler.read, [text])
            step = partial(handler.live, text, written, asked.policy, asked.k, is_whole)
            new = await asyncio.wrap_future(service.batcher.call(step, cost))
            if new or is_whole:
                yield f"data: {json.dumps({'text': new, 'ends_sentence': is_whole})}\n\n"
            written = ""
    yield "data: [DONE]\n\n"


async def _after(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for event in events:
        yield event
