"""Commands that go on with texts, and write down what is said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, one_line, read_lines, searching
from keras_transformer.search import GENERATE, STREAM, TRANSCRIBE, Generation, Transcription

Writer = Annotated[Path, typer.Argument(help="A saved language model.", metavar="FOLDER")]


@searching(Generation, GENERATE)
def generate(
    folder: Writer,
    prompt: Annotated[
        str | None, typer.Argument(help="A text to go on with.  [default: stdin, one a line]")
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="A text to end before; several may be given.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the draws.  [default: another each time]")
    ] = None,
    precision: Precision = None,
    **search: Any,
) -> None:
    """Goes on with a text, which is shown as it comes, or with lines of text.

    Lines are prompts of stdin: one line in, one line out, the prompt and what follows it, whose
    line ends become spaces.

    \b
    Examples:
        keras-transformer generate saved_models/shakespeare "ROMEO:" --temperature 0.8 --top-p 0.95
        keras-transformer generate saved_models/gpt2 --max-new-tokens 20 < prompts.txt
    """
    from keras_transformer.inference.causal_lm import CausalLM

    writer = CausalLM.load(folder, precision)
    options = dict(stop=stop or (), seed=seed)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    if prompt is None:
        prompts = list(read_lines(None))
        found = writer.generate(prompts, **options, **search)
        for before, text in zip(prompts, found, strict=True):
            print(one_line(before + text))
        return
    plain = Generation()
    later = [x for x in search if x not in STREAM and search[x] != getattr(plain, x)]
    if later:  # known at the end alone
        pieces = writer.generate([prompt], **options, **search)
    else:
        pieces = writer.stream(prompt, **options, **{x: search[x] for x in STREAM})
    for i, piece in enumerate(pieces):
        print(piece if i else prompt + piece, end="", flush=True)
    print()


@searching(Transcription, TRANSCRIBE)
def transcribe(
    folder: Annotated[Path, typer.Argument(help="A saved transcriber.", metavar="FOLDER")],
    sounds: Annotated[
        list[Path], typer.Argument(help="WAV files of 16 bits, at any rate.", metavar="SOUND")
    ],
    language: Annotated[str | None, typer.Option(help="Such as en.  [default: found]")] = None,
    task: Annotated[str, typer.Option(help="Or translate, into English.")] = "transcribe",
    precision: Precision = None,
    **search: Any,
) -> None:
    """Writes down what is said, a line a file.

    \b
    Example:
        keras-transformer transcribe saved_models/whisper-tiny interview.wav --language en
    """
    from keras_transformer.inference.transcriber import Transcriber

    transcriber = Transcriber.load(folder, precision)
    options = dict(language=language, task=task, **search)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for sound in sounds:
        print(one_line(transcriber.transcribe([sound], **options)[0]), flush=True)
