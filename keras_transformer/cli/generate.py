"""Commands that go on with texts, and write down what is said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.common import Precision, one_line, read_lines

Writer = Annotated[Path, typer.Argument(help="A saved language model.", metavar="FOLDER")]


def generate(
    folder: Writer,
    prompt: Annotated[
        str | None, typer.Argument(help="A text to go on with.  [default: stdin, one a line]")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Most tokens that are added.")] = 100,
    min_new_tokens: Annotated[int, typer.Option(min=0, help="Fewest, before an end.")] = 0,
    beam_size: Annotated[int, typer.Option(min=1, help="Hypotheses kept.")] = 1,
    length_penalty: Annotated[float, typer.Option(min=0, help="Alpha of a beam's score.")] = 0.0,
    temperature: Annotated[
        float | None, typer.Option(help="Draw tokens; below 1 the likely become likelier.")
    ] = None,
    top_k: Annotated[int, typer.Option(min=0, help="Draw from so many; 0: no limit.")] = 0,
    top_p: Annotated[float, typer.Option(help="Draw from the most probable of this sum.")] = 1.0,
    min_p: Annotated[float, typer.Option(help="Draw from those of this share of the best.")] = 0.0,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1: what was there before is less likely.")
    ] = 1.0,
    stop: Annotated[
        list[str] | None, typer.Option(help="A text to end before; several may be given.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the draws.  [default: another each time]")
    ] = None,
    precision: Precision = None,
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
    options = dict(
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop=stop or (),
        seed=seed,
    )
    searched = dict(
        beam_size=beam_size, length_penalty=length_penalty, min_new_tokens=min_new_tokens
    )
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    if prompt is None:
        prompts = list(read_lines(None))
        found = writer.generate(prompts, **options, **searched)
        for before, text in zip(prompts, found, strict=True):
            print(one_line(before + text))
        return
    if beam_size > 1 or min_new_tokens:  # known at the end alone
        pieces = writer.generate([prompt], **options, **searched)
    else:
        pieces = writer.stream(prompt, **options)
    for i, piece in enumerate(pieces):
        print(piece if i else prompt + piece, end="", flush=True)
    print()


def transcribe(
    folder: Annotated[Path, typer.Argument(help="A saved transcriber.", metavar="FOLDER")],
    sounds: Annotated[
        list[Path], typer.Argument(help="WAV files of 16 bits, at any rate.", metavar="SOUND")
    ],
    language: Annotated[str | None, typer.Option(help="Such as en.  [default: found]")] = None,
    task: Annotated[str, typer.Option(help="Or translate, into English.")] = "transcribe",
    beam_size: Annotated[int, typer.Option(min=1, help="Hypotheses kept.")] = 1,
    precision: Precision = None,
) -> None:
    """Writes down what is said, a line a file.

    \b
    Example:
        keras-transformer transcribe saved_models/whisper-tiny interview.wav --language en
    """
    from keras_transformer.inference.transcriber import Transcriber

    transcriber = Transcriber.load(folder, precision)
    options = dict(language=language, task=task, beam_size=beam_size)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for sound in sounds:
        print(one_line(transcriber.transcribe([sound], **options)[0]), flush=True)
