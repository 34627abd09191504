"""DeepL's API: texts, languages and glossaries, for its clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from keras_transformer.serving.deepl_schemas import (
    ChangeRequest,
    DeeplTranslateRequest,
    DictionaryRequest,
    GlossaryRequest,
    MultilingualRequest,
)
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.jobs import Wishes
from keras_transformer.serving.kept_glossaries import KeptGlossary
from keras_transformer.serving.keys import Key
from keras_transformer.serving.libretranslate import (
    ERRORS,
    admitted,
    name_of,
    source_of,
    translated,
)
from keras_transformer.serving.schemas import body_of, read
from keras_transformer.serving.service import Service

NO_LIMIT = 1_000_000_000_000  # characters of a subscription without a limit, as DeepL states it
STYLES = {"more": "formal", "less": "informal"}  # by DeepL's formality
router = APIRouter(tags=["DeepL"], responses=ERRORS | {404: ERRORS[400]})


@router.post("/v2/translate", openapi_extra=body_of(DeeplTranslateRequest))
async def translate(request: Request) -> dict[str, Any]:
    """Translate texts, with a glossary if `glossary_id` names one."""
    asked = await read(request, DeeplTranslateRequest)
    service, key = admitted(request)
    language = language_code(service, asked.source_lang) if asked.source_lang else "auto"
    source, _ = source_of(service, language, asked.text)
    target = language_code(service, asked.target_lang)
    if asked.split_sentences == "nonewlines" and not asked.tag_handling:
        raise Refusal(400, "split_sentences must be '1' without tag_handling, got 'nonewlines'")
    style, terms = style_of(service, source, target, asked.formality), None
    if asked.glossary_id is not None:
        terms = terms_of(service, key, asked.glossary_id, asked.source_lang and source, target)
    translations = await translated(
        service, key, asked.text, source, target, asked.tag_handling, wishes=Wishes(terms, style)
    )
    answers: list[dict[str, Any]] = [
        {"detected_source_language": source.upper(), "text": x.texts[0]} for x in translations
    ]
    if asked.show_billed_characters:
        for answer, text in zip(answers, asked.text, strict=True):
            answer["billed_characters"] = len(text)
    return {"translations": answers}


def language_code(service: Service, language: str) -> str:
    """Return a served language's code, such as "en" for "EN-US"; else the language."""
    code = service.catalogue.code(language)
    base = service.catalogue.code(language.partition("-")[0])
    return base if code not in service.catalogue.languages else code


def style_of(service: Service, source: str, target: str, formality: str) -> str | None:
    """Return the style for a formality; None if there is none, or the model need not have one.

    Raises:
        Refusal: If the formality is "more" or "less", and the model has no styles.
    """
    style = STYLES.get(formality.removeprefix("prefer_"))
    if style is None or (source, target) in _styled_pairs(service.catalogue):
        return style
    accepted = "default, prefer_more or prefer_less: the model has no formality"
    if formality in STYLES:
        raise Refusal(400, f"formality must be {accepted}, got {formality!r}")
    return None


def _styled_pairs(catalogue):
    """Return the pairs of languages whose model takes a style; all its pairs do, or none."""
    models = [x.any for x in catalogue.models.values()]
    styled = [x for x in models if x.handler(next(iter(x.pairs))).takes_style]
    return {pair for model in styled for pair in model.pairs}


def terms_of(
    service: Service, key: Key, id: str, source: str | None, target: str
) -> dict[str, list[str]]:
    """Return the terms of a glossary for a pair of languages, each with its one form.

    Raises:
        Refusal: If the key has no such glossary, no source language is given, or the glossary has
            no dictionary for the pair.
    """
    glossary = service.glossaries.find(key.name, id)
    if source is None:
        raise Refusal(400, "source_lang must be given with glossary_id")
    if (source, target) not in glossary.dictionaries:
        pairs = ", ".join("-".join(x) for x in glossary.dictionaries)
        raise Refusal(400, f"glossary_id must be one for {source}-{target}, got one for {pairs}")
    return {term: [form] for term, form in glossary.dictionaries[source, target].items()}


@router.get("/v2/languages")
@router.post("/v2/languages")
async def languages(request: Request) -> list[dict[str, Any]]:
    """List the source languages; with `type=target`, the target languages."""
    service, _ = admitted(request)
    form = await request.form()  # DeepL's client sends a form with GET
    kind = request.query_params.get("type") or form.get("type") or "source"
    if kind not in ("source", "target"):
        raise Refusal(400, f"type must be source or target, got {str(kind)[:80]!r}")
    catalogue = service.catalogue
    if kind == "source":
        return [{"language": x.upper(), "name": name_of(x)} for x in catalogue.sources]
    codes = {target for source in catalogue.sources for target in catalogue.targets(source)}
    styled = {target for _, target in _styled_pairs(catalogue)}
    return [
        {"language": x.upper(), "name": name_of(x), "supports_formality": x in styled}
        for x in sorted(codes)
    ]


@router.get("/v2/usage")
async def usage(request: Request) -> dict[str, int]:
    """Return that there is no limit of characters; they are not counted."""
    admitted(request)
    return {"character_count": 0, "character_limit": NO_LIMIT}


@router.get("/v2/glossary-language-pairs")
async def glossary_pairs(request: Request) -> dict[str, Any]:
    """List the pairs of languages for which there can be glossaries."""
    service, _ = admitted(request)
    models = (x.any for x in service.catalogue.models.values())
    pairs = sorted({pair for model in models for pair in model.pairs})
    return {"supported_languages": [{"source_lang": x, "target_lang": y} for x, y in pairs]}


@router.post("/v2/glossaries", status_code=201, openapi_extra=body_of(GlossaryRequest))
async def create(request: Request) -> dict[str, Any]:
    """Create a glossary of one pair of languages."""
    asked = await read(request, GlossaryRequest)
    return _facts(_created(request, asked.name, [asked]))


@router.get("/v2/glossaries")
async def all_single(request: Request) -> dict[str, Any]:
    """List the glossaries of one pair of languages."""
    service, key = admitted(request)
    kept = service.glossaries.of(key.name)
    return {"glossaries": [_facts(x) for x in kept if len(x.dictionaries) == 1]}


@router.get("/v2/glossaries/{id}")
async def single(request: Request, id: str) -> dict[str, Any]:
    """Return the facts of a glossary of one pair of languages."""
    return _facts(_single(request, id))


@router.get("/v2/glossaries/{id}/entries", response_class=PlainTextResponse)
async def entries(request: Request, id: str) -> Response:
    """Return the terms of a glossary of one pair of languages, as tab-separated values."""
    (terms,) = _single(request, id).dictionaries.values()
    return Response(_lines(terms), media_type="text/tab-separated-values; charset=utf-8")


@router.post("/v3/glossaries", status_code=201, openapi_extra=body_of(MultilingualRequest, False))
async def create_multilingual(request: Request) -> dict[str, Any]:
    """Create a glossary of any number of pairs of languages."""
    asked = await read(request, MultilingualRequest, forms=False)
    return _all_facts(_created(request, asked.name, asked.dictionaries))


@router.get("/v3/glossaries")
async def all_multilingual(request: Request) -> dict[str, Any]:
    """List the glossaries."""
    service, key = admitted(request)
    return {"glossaries": [_all_facts(x) for x in service.glossaries.of(key.name)]}


@router.get("/v3/glossaries/{id}")
async def multilingual(request: Request, id: str) -> dict[str, Any]:
    """Return the facts of a glossary."""
    service, key = admitted(request)
    return _all_facts(service.glossaries.find(key.name, id))


@router.get("/v3/glossaries/{id}/entries")
async def multilingual_entries(
    request: Request, id: str, source_lang: str, target_lang: str
) -> dict[str, Any]:
    """Return the terms of a dictionary."""
    _, glossary, pair = _dictionary(request, id, source_lang, target_lang)
    fields = {"entries": _lines(glossary.dictionaries[pair]), "entries_format": "tsv"}
    return {"dictionaries": [_pair(pair) | fields]}


@router.patch("/v3/glossaries/{id}", openapi_extra=body_of(ChangeRequest, False))
async def change(request: Request, id: str) -> dict[str, Any]:
    """Rename a glossary, or add terms to its dictionaries; a known term is replaced."""
    asked = await read(request, ChangeRequest, forms=False)
    service, key = admitted(request)
    glossary = service.glossaries.find(key.name, id)
    dictionaries = dict(glossary.dictionaries)
    for dictionary in asked.dictionaries:
        pair = _checked_pair(service, dictionary)
        dictionaries[pair] = dictionaries.get(pair, {}) | dictionary.terms()
    name = asked.name or glossary.name
    changed = replace(glossary, name=name, dictionaries=dictionaries)
    service.glossaries.keep(changed)
    return _all_facts(changed)


@router.put("/v3/glossaries/{id}/dictionaries", openapi_extra=body_of(DictionaryRequest, False))
async def replace_dictionary(request: Request, id: str) -> dict[str, Any]:
    """Replace a dictionary of a glossary, or add it."""
    asked = await read(request, DictionaryRequest, forms=False)
    service, key = admitted(request)
    glossary = service.glossaries.find(key.name, id)
    pair, terms = _checked_pair(service, asked), asked.terms()
    new = replace(glossary, dictionaries=glossary.dictionaries | {pair: terms})
    service.glossaries.keep(new)
    return _pair(pair) | {"entry_count": len(terms)}


@router.delete("/v3/glossaries/{id}/dictionaries", status_code=204)
async def delete_dictionary(request: Request, id: str, source_lang: str, target_lang: str) -> None:
    """Delete a dictionary of a glossary."""
    service, glossary, pair = _dictionary(request, id, source_lang, target_lang)
    others = {x: terms for x, terms in glossary.dictionaries.items() if x != pair}
    service.glossaries.keep(replace(glossary, dictionaries=others))


@router.delete("/v2/glossaries/{id}", status_code=204)
@router.delete("/v3/glossaries/{id}", status_code=204)
async def delete(request: Request, id: str) -> None:
    """Delete a glossary."""
    service, key = admitted(request)
    service.glossaries.drop(key.name, id)


def _created(request, name, dictionaries):
    """Keep a new glossary, and return it."""
    service, key = admitted(request)
    terms = {_checked_pair(service, x): x.terms() for x in dictionaries}
    glossary = KeptGlossary(key.name, name, terms)
    service.glossaries.keep(glossary)
    return glossary


def _checked_pair(service, dictionary):
    """Return the pair of codes of a dictionary, which a single model must translate."""
    pair = (
        language_code(service, dictionary.source_lang),
        language_code(service, dictionary.target_lang),
    )
    if len(service.catalogue.route(*pair)) > 1:
        raise Refusal(400, f"target_lang must be one that is reached in one step, got {pair[1]!r}")
    return pair


def _single(request, id):
    service, key = admitted(request)
    glossary = service.glossaries.find(key.name, id)
    if len(glossary.dictionaries) != 1:
        raise Refusal(404, f"the glossary {id!r} is only in /v3: it has no single dictionary")
    return glossary


def _dictionary(request, id, source, target):
    """Return the service, a glossary, and the codes of one of its dictionaries."""
    service, key = admitted(request)
    glossary = service.glossaries.find(key.name, id)
    pair = language_code(service, source), language_code(service, target)
    if pair not in glossary.dictionaries:
        raise Refusal(404, f"the glossary {id!r} has no dictionary {'-'.join(pair)[:80]}")
    return service, glossary, pair


def _pair(pair):
    return {"source_lang": pair[0], "target_lang": pair[1]}


def _facts(glossary):
    """Return the facts of a glossary of one dictionary, in the form of /v2."""
    ((pair, terms),) = glossary.dictionaries.items()
    facts = {"glossary_id": glossary.id, "name": glossary.name, "creation_time": glossary.created}
    return facts | _pair(pair) | {"ready": True, "entry_count": len(terms)}


def _all_facts(glossary):
    """Return the facts of a glossary in the form of /v3."""
    rows = glossary.dictionaries.items()
    dictionaries = [_pair(pair) | {"entry_count": len(terms)} for pair, terms in rows]
    facts = {"glossary_id": glossary.id, "name": glossary.name, "creation_time": glossary.created}
    return facts | {"dictionaries": dictionaries}


def _lines(terms):
    return "\n".join(f"{term}\t{form}" for term, form in terms.items())
