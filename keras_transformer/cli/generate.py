"""The command that continues texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, searching, write_utf8
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import read_lines
from keras_transformer.data.lines import one_line
from keras_transformer.search import GENERATE, STREAM, Generation

Writer = Annotated[Path, saved_argument("A saved language model")]


@searching(Generation, GENERATE)
def generate(
    folder: Writer,
    prompt: Annotated[
        str | None, typer.Argument(help="Text to continue.  [default: stdin, one text per line]")
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="End before this text; may be given several times."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed for sampling.  [default: a new one each time]")
    ] = None,
    parse_special: Annotated[
        bool,
        typer.Option(
            "--parse-special",
            help='Text that spells a special token, such as "<|im_end|>", becomes this token.',
        ),
    ] = False,
    precision: Precision = None,
    **search: Any,
) -> None:
    """Continue a text, or each line of stdin.

    Given a text, print it and its continuation while that is generated (with beams, at the end).
    Without one, read prompts from stdin, one per line, and write one line for each: the prompt and
    its continuation, with line breaks replaced by spaces.

    \b
    Examples:
        keras-transformer generate saved_models/shakespeare "ROMEO:" --temperature 0.8 --top-p 0.95
        keras-transformer generate saved_models/gpt2 --max-new-tokens 20 < prompts.txt
    """
    from keras_transformer.language.causal_lm import CausalLM

    writer = CausalLM.load(folder, precision)
    options = dict(stop=stop or (), seed=seed, parse_special=parse_special)
    write_utf8()
    if prompt is None:
        prompts = list(read_lines(None))
        continuations = writer.generate(prompts, **options, **search)
        for before, text in zip(prompts, continuations, strict=True):
            print(one_line(before + text))
        return
    if writer.options(search).beam_size > 1:  # a beam's text is known only at the end
        pieces = writer.generate([prompt], **options, **search)
    else:
        stream_options = {name: value for name, value in search.items() if name in STREAM}
        pieces = writer.stream(prompt, **options, **stream_options)
    before = prompt
    for piece in pieces:
        print(before + piece, end="", flush=True)
        before = ""
    print(before)
