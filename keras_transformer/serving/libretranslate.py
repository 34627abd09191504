"""The API of LibreTranslate, for its clients, and an API of attention weights for the page."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import babel
from fastapi import APIRouter, File, Form, HTTPException, Request, Response, UploadFile
from fastapi.responses import RedirectResponse, StreamingResponse

from keras_transformer.serving import answers
from keras_transformer.serving.file_translation import SUFFIXES, translate_file
from keras_transformer.serving.jobs import NO_WISHES, Wishes
from keras_transformer.serving.keys import Key
from keras_transformer.serving.schemas import (
    AttentionRequest,
    AttentionResponse,
    Detection,
    DetectRequest,
    ErrorResponse,
    FileResponse,
    LanguageEntry,
    TermsField,
    TranslateRequest,
    TranslateResponse,
    body_of,
    check_results,
    read,
)
from keras_transformer.serving.service import Service

PART = 65_536  # bytes of a file that are sent at once; the time limit is for each part
_SOON = {"Retry-After": "5"}
ERRORS: Any = {code: {"model": ErrorResponse} for code in (400, 403, 413, 429, 504)}
router = APIRouter(tags=["translate"], responses=ERRORS)


@router.post(
    "/translate", openapi_extra=body_of(TranslateRequest), response_model_exclude_none=True
)
async def translate(request: Request) -> TranslateResponse:
    """Translate a text or a list of texts, plain or HTML."""
    asked = await read(request, TranslateRequest)
    service, key = admitted(request, asked.api_key)
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    source, detected = source_of(service, asked.source, texts)
    translations = await translated(
        service,
        key,
        texts,
        source,
        asked.target,
        asked.format,
        asked.alternatives,
        wishes=Wishes(asked.glossary, asked.style),
    )
    answer: dict[str, Any] = {"translatedText": [x.texts[0] for x in translations]}
    if detected:
        answer["detectedLanguage"] = [detected] * len(texts)
    if asked.alternatives:
        answer["alternatives"] = [x.texts[1:] for x in translations]
    if any(x.quality is not None for x in translations):
        answer["quality"] = [x.quality for x in translations]
    if isinstance(asked.q, str):
        answer = {name: values[0] for name, values in answer.items()}
    return TranslateResponse(**answer)


@router.post("/detect", openapi_extra=body_of(DetectRequest))
async def detect(request: Request) -> list[Detection]:
    """Detect the language of a text; the candidates are ordered by confidence."""
    asked = await read(request, DetectRequest)
    service, _ = admitted(request, asked.api_key)
    check_size(service, [asked.q])
    return [Detection(**x) for x in await service.workers.run(service.detector.detect, asked.q)]


@router.get("/languages")
async def languages(request: Request) -> list[LanguageEntry]:
    """List the languages, each with its target languages; one that is only a target has none."""
    catalogue = request.app.state.service.catalogue
    targets = {code: catalogue.targets(code) for code in catalogue.sources}
    every = sorted({code for codes in targets.values() for code in codes} | set(targets))
    return [
        LanguageEntry(code=code, name=name_of(code), targets=targets.get(code, []))
        for code in every
    ]


@router.post("/translate_file")
async def translate_a_file(
    request: Request,
    response: Response,
    file: Annotated[UploadFile, File()],
    source: Annotated[str, Form()],
    target: Annotated[str, Form()],
    glossary: Annotated[TermsField, Form()] = None,
    style: Annotated[str | None, Form(min_length=1, max_length=100)] = None,
    api_key: Annotated[str, Form()] = "",
) -> FileResponse:
    """Translate a text, HTML, subtitle or office file, and return the URL of the result.

    The header `X-Untranslated` names parts of the file that were not translated, such as
    "properties".
    """
    service, key = admitted(request, api_key or None)
    name, wishes = Path(file.filename or "").name, Wishes(glossary, style)
    result, left, _ = await file_translated(
        service, key, name, await file.read(), source, target, lambda language: wishes
    )
    check_running(service)
    kept = kept_name(name, target)
    token = service.keep(kept, result)
    if left:
        response.headers["X-Untranslated"] = ", ".join(left)
    base = service.settings.public_url or str(request.base_url)
    url = f"{base.rstrip('/')}/download_file/{token}/{quote(kept)}"
    return FileResponse(translatedFileUrl=url)


@router.get("/download_file/{token}/{name}", response_class=StreamingResponse)
async def download_file(request: Request, token: str, name: str) -> StreamingResponse:
    """Return a translated file; it is kept for an hour, if there is room."""
    content = request.app.state.service.kept.find(token, name)
    if content is None:
        raise HTTPException(404, "the file does not exist, or has expired")
    return download(name, content)


@router.post("/attention", openapi_extra=body_of(AttentionRequest))
async def attention(request: Request) -> AttentionResponse:
    """Return the attention of every layer and head for a sentence and its translation."""
    asked = await read(request, AttentionRequest)
    service, key = admitted(request, asked.api_key)
    check_size(service, [asked.q, asked.translation or ""])
    source, _ = source_of(service, asked.source, [asked.q])
    target = service.catalogue.code(asked.target)
    check_pair(key, source, target)
    handlers = service.catalogue.route(source, target)
    if len(handlers) > 1 or not handlers[0].can_attend:
        raise HTTPException(
            400, f"attention from {source} to {target} needs a single saved translator"
        )
    fields = await answers.attend(
        service.batcher, service.workers, handlers[0], asked.q, asked.translation
    )
    return AttentionResponse(**fields)


@router.post("/suggest", include_in_schema=False)
async def suggest() -> None:
    """Refuse a suggested translation: unlike LibreTranslate, this server stores no texts."""
    raise HTTPException(403, "Suggestions are disabled on this server.")


@router.get("/spec", include_in_schema=False)
async def spec() -> RedirectResponse:
    """Redirect to the OpenAPI description."""
    return RedirectResponse("openapi.json")


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> dict[str, Any]:
    """Return the settings of the page."""
    service = request.app.state.service
    languages = None
    if service.catalogue.sources:
        source = service.catalogue.sources[0]
        target = next(iter(service.catalogue.targets(source)), source)
        languages = {
            "source": {"code": source, "name": name_of(source)},
            "target": {"code": target, "name": name_of(target)},
        }
    return {
        "alternatives": service.settings.most_alternatives,
        "apiKeys": request.app.state.guard.needs_key,
        "charLimit": service.settings.most_characters,
        "frontendTimeout": 500,
        "keyRequired": request.app.state.guard.needs_key,
        "language": languages,
        "suggestions": False,
        "filesTranslation": languages is not None,
        "supportedFilesFormat": list(SUFFIXES),
        "languageModels": [
            {"id": name, "chat": writer.chat is not None}
            for name, writer in service.catalogue.writers.items()
        ],
    }


def admitted(request: Request, key: str | None = None) -> tuple[Service, Key]:
    """Check the key of a request, and return the service and the key."""
    return request.app.state.service, request.app.state.guard.check(request, key)


def check_pair(key: Key, source: str, target: str) -> None:
    """Raise HTTPException if a key does not allow a pair of languages."""
    if not key.allows(source, target):
        raise HTTPException(403, f"api_key allows {', '.join(key.languages)} only")


def check_size(service: Service, texts: Sequence[str]) -> None:
    """Raise HTTPException if a text is too long."""
    longest, most = max(map(len, texts), default=0), service.settings.most_characters
    if longest > most:
        raise HTTPException(400, f"q must have at most {most} characters per text, got {longest}")


def source_of(service: Service, source: str, texts: Sequence[str]) -> tuple[str, Detection | None]:
    """Return the language of the texts, and its detection if `source` is "auto", else None."""
    if source.lower() != "auto":
        return service.catalogue.code(source), None
    best, *_ = service.detector.detect(" ".join(texts)[:2000])
    return best["language"], Detection(**best)


async def translated(
    service: Service,
    key: Key,
    texts: Sequence[str],
    source: str,
    target: str,
    kind: str | None = None,
    alternatives: int = 0,
    is_file: bool = False,
    wishes: Wishes = NO_WISHES,
) -> list[answers.Translated]:
    """Return the translations of each text; one between equal languages is the text itself.

    Args:
        service: The server's state.
        key: The key of the request, see `admitted`.
        texts: The texts.
        source: Code of their language, see `source_of`.
        target: Code of the language to translate into, in any case.
        kind: "html", "text" or None (text).
        alternatives: Maximum number of further translations per text.
        is_file: Whether the texts are those of a file.
        wishes: What the request wants of its translations.

    Raises:
        HTTPException: If a limit is exceeded, or the key does not allow the languages.
        ValueError: If a language is unknown, or the wishes cannot be fulfilled.
    """
    if not is_file:
        check_size(service, texts)
    target, most = service.catalogue.code(target), service.settings.most_alternatives
    if alternatives > most:
        raise HTTPException(400, f"alternatives must be at most {most}, got {alternatives}")
    if not is_file:
        check_results(len(texts), 1 + alternatives, "texts times translations of each")
    check_pair(key, source, target)
    if source == target and source in service.catalogue.sources:
        return [answers.Translated([text]) for text in texts]
    handlers = service.catalogue.route(source, target)
    workers = service.file_workers if is_file else service.workers
    if kind == "html":
        translations = await answers.translate_html(
            service.batcher, workers, handlers, source, texts, wishes
        )
        return [answers.Translated([text]) for text in translations]
    return await answers.translate_texts(
        service.batcher, workers, handlers, source, texts, alternatives, not is_file, wishes
    )


async def file_translated(
    service: Service,
    key: Key,
    name: str,
    content: bytes,
    source: str,
    target: str,
    wishes: Callable[[str], Wishes],
) -> tuple[bytes, list[str], int]:
    """Translate a file.

    Args:
        service, key, source, target: See `translated`; `source` may be "auto".
        name, content: See `translate_file`.
        wishes: Function from the language of the file to what the request wants.

    Returns:
        Its new content, the names of parts that were not translated, and the number of characters
        of its texts.

    Raises:
        HTTPException, ValueError: See `translated`.
        ImportError, TooLargeError: See `translate_file`.
    """
    characters = 0

    async def texts_translated(texts, kind):
        nonlocal characters
        characters += sum(map(len, texts))
        language, _ = source_of(service, source, texts)
        results = await translated(
            service, key, texts, language, target, kind, 0, True, wishes(language)
        )
        return [x.texts[0] for x in results]

    result, left = await translate_file(
        name, content, texts_translated, service.readers, service.file_workers
    )
    return result, left, characters


def check_running(service: Service) -> None:
    """Raise HTTPException if the server is stopping: files are lost when the process ends."""
    if service.is_stopping:
        raise HTTPException(503, "the server is stopping: send the file again", _SOON)


def kept_name(name: str, target: str) -> str:
    """Return the name of a translated file, which any disk can take."""
    stem = "".join(filter(str.isprintable, Path(name).stem))[:50]
    return f"{stem}.{target}{Path(name).suffix}"


def download(name: str, content: bytes, left: Sequence[str] = ()) -> StreamingResponse:
    """Return a file as an answer, in parts.

    Args:
        name, content: Name and content of the file.
        left: Names of the parts that were not translated.
    """

    async def parts():
        for start in range(0, len(content), PART):
            yield content[start : start + PART]

    headers = {
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(name)}",
        "Content-Length": str(len(content)),
    }
    headers |= {"X-Untranslated": ", ".join(left)} if left else {}
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StreamingResponse(parts(), media_type=kind, headers=headers)


def name_of(code: str) -> str:
    """Return the English name of a language; its code if it has none."""
    return babel.Locale("en").languages.get(code.replace("-", "_"), code)
