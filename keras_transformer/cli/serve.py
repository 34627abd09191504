"""The command that serves models."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keras_transformer.cli.common import Engine, Precision, say, searching
from keras_transformer.cli.folders import loadable
from keras_transformer.config import require
from keras_transformer.search import TRANSLATE, Search

API_KEY = "KERAS_TRANSFORMER_API_KEY"
DEFAULT = "tatoeba"  # the translator that comes with the project


@searching(Search, TRANSLATE)
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Folder or name of a saved model; or folder of an exported translator, which "
            "needs its languages: en-de=FOLDER; or a GGUF file, a folder in Hugging Face's layout "
            f"or a name on its hub, imported once into a cache.  [default: {DEFAULT}]",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")
    ] = 5000,
    precision: Precision = None,
    engine: Engine = "keras",
    replicas: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of processes that hold the models and share the work; 1: the server's "
            "own process.",
        ),
    ] = 1,
    devices: Annotated[
        str | None,
        typer.Option(
            help="GPUs of the replicas, one for each: numbers or UUIDs, separated by commas.  "
            "[default: each sees all GPUs]"
        ),
    ] = None,
    tokens_per_batch: Annotated[
        int, typer.Option(min=1, help="Maximum number of source tokens per batch; 1: no batching.")
    ] = 4096,
    delay: Annotated[
        float, typer.Option(min=0, help="Maximum seconds that a text waits to share a batch.")
    ] = 0.01,
    most_waiting: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum number of tokens in the queue. A client may fill half of it, and so may "
            "the files of all clients. If there is no room, the answer is 429; for a single "
            "request of more than half (for language models: of more than all), 413.",
        ),
    ] = 200_000,
    slots: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of replies that a language model writes at once."),
    ] = 8,
    timeout: Annotated[
        float,
        typer.Option(
            help="Maximum seconds per request, or between the parts of an answer that is streamed; "
            "then the answer is 504."
        ),
    ] = 60.0,
    most_characters: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum characters of a text, else 400; in APIs other than LibreTranslate's, "
            "of all texts of a request, else 413.",
        ),
    ] = 10_000,
    most_bytes: Annotated[
        int, typer.Option(min=1, help="Maximum bytes of the files of a request; for more, 413.")
    ] = 10_000_000,
    most_kept_bytes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum bytes of all translated files that are kept, in memory, for an hour; the "
            "oldest make room for new ones.",
        ),
    ] = 200_000_000,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar=API_KEY,
            help="API key that requests must send.  [default: none]",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of further API keys: a table [[keys]] with name, key, and maybe "
            "requests_per_minute and languages for each; SIGHUP reads it again."
        ),
    ] = None,
    glossaries: Annotated[
        Path | None,
        typer.Option(
            help="Folder in which glossaries of DeepL's clients are kept.  [default: in memory, "
            "until the server ends]"
        ),
    ] = None,
    drain: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Maximum seconds from SIGTERM until accepted requests are finished.  "
            "[default: 5 more than --timeout]",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file of the certificates, to serve HTTPS.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="PEM file of the certificate's private key.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Origin of web pages of other hosts that may use the server, such as "
            "https://example.org, or * for all; may be repeated.  [default: all if there is an API "
            "key, else none]"
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            help="Address at which clients reach the server, for URLs of translated files; "
            "requests from this machine may name its host.  [default: as each request names it]"
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum POST requests per minute from one address; for more, 429.  "
            "[default: no limit]",
        ),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(help="Form of the log; json: an object per line."),
    ] = "text",
    access_log: Annotated[bool, typer.Option("--access-log", help="Log each request.")] = False,
    log_texts: Annotated[
        bool,
        typer.Option(
            "--log-texts",
            help="Log messages in full, which may quote texts that users sent.",
        ),
    ] = False,
    hide_clients: Annotated[
        bool, typer.Option("--hide-clients", help="Log no addresses of clients.")
    ] = False,
    traces: Annotated[
        bool,
        typer.Option(
            "--traces",
            help="Send OpenTelemetry traces to the collector OTEL_EXPORTER_OTLP_ENDPOINT, by "
            "default http://localhost:4318.",
        ),
    ] = False,
    root_path: Annotated[
        str, typer.Option(help="Path prefix that a proxy in front of the server strips.")
    ] = "",
    **search: Any,
) -> None:
    """Serve models over HTTP, with a web page at /.

    The server has the API of LibreTranslate (/translate, /detect, /languages, /translate_file),
    that of TensorFlow Serving (/v1/models/NAME:predict), and for language models, embeddings and
    transcription that of OpenAI (/v1/chat/completions, /v1/completions, /v1/embeddings,
    /v1/audio/transcriptions, /v1/models). Other models have /v1/classify, /v1/tag, /v1/regress,
    /v1/fill, /v1/answer, /v1/parse, /v1/rerank and /v1/see; /docs describes all. Texts of
    concurrent requests share batches. If no model translates between two languages, two models are
    chained through a third language. SIGHUP reloads the models; SIGTERM finishes accepted requests
    and stops the server. With --replicas, several processes compute batches; one that ends is
    started again, and its batch is computed again.

    \b
    Examples:
        keras-transformer serve
        keras-transformer serve saved_models/en-de saved_models/de-fr --port 8080
        keras-transformer serve saved_models/en-de --replicas 2 --devices 0,1
        keras-transformer serve saved_models/en-de --engine ctranslate2 --precision int8
        keras-transformer serve saved_models/shakespeare --slots 32
        keras-transformer serve en-de=serving/grammar --host 0.0.0.0 --api-key secret
    """
    from keras_transformer import serving

    # Typer treats an empty variable as absent, and the server would need no key.
    require(os.environ.get(API_KEY) != "", API_KEY, "nothing", "a key, or absent")
    settings = serving.Settings(
        tokens_per_batch=tokens_per_batch,
        delay=delay,
        most_waiting=most_waiting,
        slots=slots,
        timeout=timeout,
        most_characters=most_characters,
        most_bytes=most_bytes,
        most_kept_bytes=most_kept_bytes,
        api_key=api_key,
        keys_file=keys,
        glossaries=glossaries,
        allowed_origins=None if allow_origin is None else tuple(allow_origin),
        public_url=public_url,
        requests_per_minute=requests_per_minute,
    )
    serving.configure(log_format, access_log, log_texts, not hide_clients)
    tracer = serving.Tracer() if traces else None
    tls = serving.tls_files(tls_certificate, tls_key)
    at = serving.listen(host, port)  # before the models are loaded, which takes longer
    folders = [_loadable(model) for model in models or [DEFAULT]]
    loading = dict(precision=precision, engine=engine, **search)
    pool = None
    read: Callable[[], Any] = partial(serving.Catalogue.load, folders, **loading)
    if replicas > 1 or devices is not None:
        names = None if devices is None else devices.split(",")
        pool = serving.Replicas(folders, replicas, names, **loading)
        read = pool.load
    say("loading models")
    # The server warms the models up later, while it already accepts requests.
    catalogue = read() if pool else serving.Catalogue.load(folders, warm_up=False, **loading)

    def load():
        nonlocal catalogue
        first, catalogue = catalogue, None
        return first or read()

    patience = timeout + 5 if drain is None else drain
    serving.run(serving.create_app(load, settings, pool, tracer), at, patience, root_path, tls)


def _loadable(model):
    """Return a MODEL argument; the name or folder of a checkpoint is replaced by its import."""
    from keras_transformer.serving.catalogue import parse

    folder, pair = parse(model)
    languages = "-".join(pair) + "=" if pair else ""
    return f"{languages}{loadable(folder)}"
