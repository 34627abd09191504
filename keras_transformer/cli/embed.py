"""Command that computes vectors of lines of text, or finds similar lines."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import CHUNK, Precision, answer_lines
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import TextField, read_lines
from keras_transformer.cli.tasks import Input, Json, Strict, TokensPerBatch
from keras_transformer.system.files import replacing


def embed(
    folder: Annotated[Path, saved_argument("A saved text encoder, with any head")],
    input_file: Input = None,
    text_field: TextField = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; x.npy: an array (lines, D).  [default: stdout]"
        ),
    ] = None,
    as_json: Json = False,
    similar_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the most similar lines of FILE, not vectors."),
    ] = None,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="Number of similar lines.")
    ] = 5,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="mean of all tokens, cls: the first token, max, lasttoken ...  [default: as "
            "saved, else mean]"
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of leading elements of a vector to write, of a model trained for it "
            "(Matryoshka).  [default: as saved]",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(help="Text to put in front of each line.  [default: the model's, if any]"),
    ] = None,
    prompt_name: Annotated[
        str | None, typer.Option(help="Name of one of the model's prompts, such as query.")
    ] = None,
    tokens_per_batch: TokensPerBatch = 8192,
    strict: Strict = False,
    precision: Precision = None,
) -> None:
    """Compute a vector for each line of text, scaled to norm 1.

    Vectors of a model that compares them by dot product or distance are not scaled. Write one line
    for each line read: the numbers of its vector, with spaces between them. With --json, write the
    text and its vector; with --output x.npy, one float32 array of all vectors.

    With --similar-to, write for each line read the lines of FILE that are most similar, best first,
    with tabs between them; with --json also their scores. If the model has prompts for queries and
    documents, they are used.

    \b
    Examples:
        keras-transformer embed saved_models/all-MiniLM-L6-v2 -o x.npy < sentences.txt
        echo "How do I pay?" | keras-transformer embed saved_models/all-MiniLM-L6-v2
            --similar-to questions.txt --top-k 3
    """
    import numpy as np

    from keras_transformer.tasks.text_embedder import CANDIDATES, TextEmbedder

    is_array = output_file is not None and output_file.suffix == ".npy"
    if is_array and (as_json or similar_to):
        raise ValueError(f"{output_file} holds vectors only: --json and --similar-to write lines")
    embedder = TextEmbedder.load(folder, precision, pooling, size)
    if similar_to and (prompt is not None or prompt_name is not None):
        raise ValueError("--similar-to uses the model's own prompts: --prompt is no option of it")
    prompts: dict[str, Any] = dict(prompt=prompt, prompt_name=prompt_name)
    options: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch, strict=strict)

    def array(lines, **prompts):
        lines, parts = iter(lines), [embedder.embed([])]
        while chunk := list(itertools.islice(lines, CHUNK)):
            parts.append(embedder.embed(chunk, **prompts, **options))
        return np.concatenate(parts)

    def vectors(chunk):
        for line, row in zip(chunk, embedder.embed(chunk, **prompts, **options), strict=True):
            numbers = [str(x) for x in row]  # the shortest text that is read as the same float32
            record = {"text": line, "embedding": [float(x) for x in numbers]}
            yield json.dumps(record, ensure_ascii=False) if as_json else " ".join(numbers)

    def similar(chunk):
        for line, matches in zip(
            chunk, embedder.similar(chunk, candidates, top_k, **options), strict=True
        ):
            records = [{"text": texts[x.index], "score": x.score} for x in matches]
            record = json.dumps({"text": line, "similar": records}, ensure_ascii=False)
            yield record if as_json else "\t".join(texts[x.index] for x in matches)

    if output_file is not None and is_array:
        matrix = array(read_lines(input_file, text_field), **prompts)
        with replacing(output_file) as temporary:
            np.save(temporary, matrix)
        return
    if similar_to is not None:
        texts = list(read_lines(similar_to))
        if not texts:
            raise ValueError(f"{similar_to} must have at least one line, got none")
        candidates = array(texts, prompt_name=embedder.embedding.prompt_name(*CANDIDATES))
    lines = read_lines(input_file, text_field)
    answer_lines(input_file, output_file, vectors if similar_to is None else similar, lines)
