"""Command that makes a translator's shortlist."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.common import Folder


def shortlist(
    folder: Folder,
    source: Annotated[
        Path,
        typer.Option(
            help="Text that the translator was trained on; or a .tsv, .tmx, .jsonl or .parquet "
            "file with both sides."
        ),
    ],
    target: Annotated[
        Path | None, typer.Option(help="Its translation, one text per line of the source.")
    ] = None,
    most_pairs: Annotated[
        int, typer.Option(min=1, help="Maximum number of pairs to read; memory grows with it.")
    ] = 100_000,
    per_piece: Annotated[
        int, typer.Option(min=1, help="Maximum candidates of a source piece.")
    ] = 20,
    frequent: Annotated[
        int, typer.Option(min=0, help="Number of target pieces that every source may use.")
    ] = 100,
) -> None:
    """Learn a shortlist: the likely target pieces of each source piece, for a faster search.

    Write the file shortlist.safetensors into FOLDER. With the option --shortlist, the commands that
    translate then look for the next token only among the candidates of a text, not in the whole
    vocabulary.

    \b
    Example:
        keras-transformer shortlist saved_models/wmt --source train.en --target train.de
        keras-transformer translate saved_models/wmt --shortlist < test.en
    """
    import itertools

    from keras_transformer.data.text_files import read_pairs
    from keras_transformer.saved.contents import read_with_sides
    from keras_transformer.text.languages import short_code
    from keras_transformer.text.lexical_shortlist import FILE, Shortlist

    tokenizer, saved = read_with_sides(folder, "translator")
    tokenizer = tokenizer.between(saved.get("source_language"), saved.get("target_language"))
    languages = dict(
        source_language=short_code(saved.get("source_language") or "en"),
        target_language=short_code(saved.get("target_language") or "de"),
    )
    pairs = list(itertools.islice(read_pairs(source, target, **languages), most_pairs))
    sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
    made = Shortlist.train(tokenizer, sources, targets, per_piece=per_piece, frequent=frequent)
    made.save(folder)
    typer.echo(folder / FILE)
