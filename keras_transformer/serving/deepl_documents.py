"""DeepL's API: documents, for its clients."""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePath
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import StreamingResponse

from keras_transformer.config import require
from keras_transformer.serving.deepl_api import language_code, style_of, terms_of
from keras_transformer.serving.deepl_schemas import DocumentRequest, Formality
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.file_translation import SUFFIXES
from keras_transformer.serving.jobs import Wishes
from keras_transformer.serving.kept_documents import Result
from keras_transformer.serving.libretranslate import (
    ERRORS,
    admitted,
    check_pair,
    check_running,
    download,
    file_translated,
    kept_name,
)
from keras_transformer.serving.schemas import body_of, read

WAIT = 2.0  # seconds that a status waits for the end: the official client asks again after five
FIELDS = {"file", "target_lang", "source_lang", "filename", "output_format", "formality"}
FIELDS |= {"glossary_id"}
router = APIRouter(tags=["DeepL"], responses=ERRORS | {404: ERRORS[400]})


@router.post("/v2/document")
async def upload(
    request: Request,
    file: Annotated[UploadFile, File()],
    target_lang: Annotated[str, Form(min_length=1, max_length=32)],
    source_lang: Annotated[str | None, Form(max_length=32)] = None,
    filename: Annotated[str | None, Form()] = None,
    output_format: Annotated[str | None, Form()] = None,
    formality: Annotated[Formality, Form()] = "default",
    glossary_id: Annotated[str | None, Form()] = None,
) -> dict[str, Any]:
    """Translate a document in the background; return its identifier and its key."""
    service, key = admitted(request)
    check_running(service)
    if unknown := sorted((await request.form()).keys() - FIELDS):
        raise Refusal(400, f"{unknown[0][:80]}: Extra inputs are not permitted", unknown[0])
    name = Path(filename or file.filename or "").name
    suffix = PurePath(name).suffix.lower()
    require(suffix in SUFFIXES, "file", name, f"one of {', '.join(SUFFIXES)}")
    if output_format and f".{output_format.lower()}" != suffix:
        raise Refusal(400, f"output_format must be {suffix[1:]!r}, as of file, got another")
    source = language_code(service, source_lang) if source_lang else None
    target, terms = language_code(service, target_lang), None
    if glossary_id is not None:
        terms = terms_of(service, key, glossary_id, source, target)
    if source is not None:  # otherwise an error is in the state of the document
        check_pair(key, source, target)
        service.catalogue.route(source, target)
        style_of(service, source, target, formality)
    content = await file.read()

    def wishes(language):
        return Wishes(terms, style_of(service, language, target, formality))

    async def translate():
        result, left, characters = await file_translated(
            service, key, name, content, source or "auto", target, wishes
        )
        new_name = kept_name(name, target)
        return Result(service.keep(new_name, result), new_name, left, characters)

    document = service.documents.add(key.name, len(content), translate)
    return {"document_id": document.id, "document_key": document.key}


async def _found(request, id):
    """Return the service, and the document that a request asks for."""
    asked = await read(request, DocumentRequest)
    service, key = admitted(request)
    return service, service.documents.find(key.name, id, asked.document_key)


@router.post("/v2/document/{id}", openapi_extra=body_of(DocumentRequest))
async def status(request: Request, id: str) -> dict[str, Any]:
    """Return the state of a document: "translating", "done" or "error"."""
    service, document = await _found(request, id)
    await asyncio.wait([document.task], timeout=min(WAIT, service.settings.timeout / 2))
    if document.error is not None:
        return {"document_id": id, "status": "error", "error_message": document.error}
    if document.result is None:
        return {"document_id": id, "status": "translating"}
    characters = document.result.characters
    return {"document_id": id, "status": "done", "billed_characters": characters}


@router.post(
    "/v2/document/{id}/result",
    openapi_extra=body_of(DocumentRequest),
    response_class=StreamingResponse,
)
async def result(request: Request, id: str) -> StreamingResponse:
    """Return a translated document; it is kept for an hour, if there is room.

    The header `X-Untranslated` names parts of the document that were not translated.
    """
    service, document = await _found(request, id)
    if document.error is not None:
        raise Refusal(400, f"the document has no translation: {document.error}")
    if document.result is None:
        raise Refusal(503, "the document is not translated yet")
    content = service.kept.find(document.result.token, document.result.name)
    if content is None:
        raise Refusal(404, "the document has expired")
    return download(document.result.name, content, document.result.untranslated)
