"""The command that serves models."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, say, searching
from keras_transformer.search import TRANSLATE, Search


@searching(Search, TRANSLATE)
def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help="Folders of translators or SavedModels, or en-de=FOLDER."
        ),
    ],
    host: Annotated[str, typer.Option(help="Address; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 5000,
    precision: Precision = None,
    tokens_per_batch: Annotated[
        int, typer.Option(min=1, help="Most source tokens in a batch; 1: no batching.")
    ] = 4096,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds that a text waits for company, at most.")
    ] = 0.01,
    most_waiting: Annotated[
        int, typer.Option(min=1, help="Tokens that may wait: more get 429, a request of more 413.")
    ] = 100_000,
    timeout: Annotated[float, typer.Option(help="Seconds of a request; then 504.")] = 60.0,
    most_characters: Annotated[
        int, typer.Option(min=1, help="Of a request's texts; more get 413.")
    ] = 10_000,
    most_bytes: Annotated[int, typer.Option(min=1, help="Of a file; more get 413.")] = 10_000_000,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="KERAS_TRANSFORMER_API_KEY", help="What requests must give."),
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Of one address; more get 429.")
    ] = None,
    root_path: Annotated[str, typer.Option(help="Prefix that a proxy before it takes off.")] = "",
    **search: Any,
) -> None:
    """Serves translators over HTTP, with a page at /.

    It speaks the API of LibreTranslate (/translate, /detect, /languages, /translate_file) and
    TensorFlow Serving's (/v1/models/NAME:predict); /docs describes all. Texts that arrive together
    are translated together. Where no model has a pair of languages, two are used one after the
    other. SIGHUP reads the models again; SIGTERM finishes what was accepted.

    \b
    Examples:
        keras-transformer serve saved_models/grammar
        keras-transformer serve saved_models/en-de saved_models/de-fr --port 8080
        keras-transformer serve en-de=serving/grammar --host 0.0.0.0 --api-key secret
    """
    from keras_transformer import serving

    settings = serving.Settings(
        tokens_per_batch=tokens_per_batch,
        delay=delay,
        most_waiting=most_waiting,
        timeout=timeout,
        most_characters=most_characters,
        most_bytes=most_bytes,
        api_key=api_key,
        requests_per_minute=requests_per_minute,
    )
    say("reading models")
    catalogue = serving.Catalogue.load(models, precision=precision, **search)

    def load():
        nonlocal catalogue
        first, catalogue = catalogue, None
        return first or serving.Catalogue.load(models, precision=precision, **search)

    serving.run(serving.create_app(load, settings), host, port, timeout + 5, root_path)
