"""Commands that draw: attention, positions, rates, a run's history, where translations are good."""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_transformer.cli.common import (
    Command,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    searching,
)
from keras_transformer.config import require
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.system.extras import pip_install
from keras_transformer.system.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_transformer.inference.translator import Translator

SUFFIXES = (".png", ".svg")
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=f"""Draws what a model does, as PNG or SVG: `--output x.svg`.

\b
Examples:
    keras-transformer plot attention saved_models/grammar "The old man loves the dog." -o a.png
    keras-transformer plot history saved_models/grammar -o history.svg
    keras-transformer plot lengths saved_models/grammar --source test.en --reference test.de
        -o lengths.png

It needs matplotlib: {pip_install("plots")}.""",
)


class Part(enum.StrEnum):
    """Whose attention `plot attention` draws, as `alignment.PARTS` names them."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


Output = Annotated[Path, typer.Option("--output", "-o", help="The .png or .svg file to write.")]
Source = Annotated[
    Path, typer.Option(help="Text to translate, one a line; or both sides: .tsv, .tmx, .jsonl.")
]
Reference = Annotated[Path | None, typer.Option(help="What it ought to become.")]


@app.command("attention", cls=Command)
def draw_attention(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="The source.")],
    output: Output,
    target: Annotated[
        str | None, typer.Option(help="Its translation.  [default: the model's]")
    ] = None,
    part: Annotated[Part, typer.Option(help="Whose attention.")] = Part.CROSS,
    layer: Annotated[
        list[int] | None, typer.Option(help="From 0; several may be given.  [default: all]")
    ] = None,
    head: Annotated[
        list[int] | None, typer.Option(help="From 0; several may be given.  [default: all]")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Lines between words, of one layer: the last.")
    ] = False,
    word: Annotated[
        int | None, typer.Option(help="With --lines: those of one query alone, from 0.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
) -> None:
    """Heat maps of layers and heads, or lines between words as in the paper's Figures 3 to 5.

    The row of a target token is the query that predicts it.

    \b
    Examples:
        keras-transformer plot attention saved_models/grammar "The old man loves the dog." -o a.png
        keras-transformer plot attention saved_models/grammar "The old man loves the dog."
            --part encoder --layer 1 --lines --word 2 -o a.svg
    """
    from keras_transformer.analysis import plots
    from keras_transformer.analysis.alignment import attention
    from keras_transformer.inference.translator import Translator

    require(lines or word is None, "--word", word, "given with --lines")
    require(not lines or len(layer or []) < 2, "--layer", layer, "one, with --lines")
    _checked(output)
    translator = Translator.load(folder, None, source_language, target_language)
    if target is None:
        (target,) = translator.translate([text], strict=True)
    found = attention(translator, text, target)
    if lines:
        one = -1 if not layer else layer[0]
        figure = plots.attention_lines(found, part.value, one, head or None, word)
    else:
        figure = plots.attention_maps(found, part.value, layer or None, head or None)
    _write(figure, output)


@app.command("positions", cls=Command)
def draw_positions(
    output: Output,
    d_model: Annotated[int, typer.Option(min=2, help="Dimensions, even.")] = 512,
    length: Annotated[int, typer.Option(min=1, help="Positions.")] = 100,
) -> None:
    """The paper's positional encoding (section 3.5).

    \b
    Example:
        keras-transformer plot positions --d-model 128 --length 50 -o positions.png
    """
    from keras_transformer.analysis import plots

    _checked(output)
    _write(plots.positional_encoding(d_model, length), output)


@app.command("schedule", cls=Command)
def draw_schedule(
    output: Output,
    d_model: Annotated[int, typer.Option(min=1, help="Which the paper's peak follows from.")] = 512,
    warmup_steps: Annotated[int, typer.Option(min=1, help="Updates until the peak.")] = 4000,
    peak: Annotated[float | None, typer.Option(help="In place of the paper's.")] = None,
    total_steps: Annotated[
        int | None, typer.Option(help="Where a linear decay ends.  [default: the paper's decay]")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=2, help="Updates shown.  [default: all, or 25 times warmup]")
    ] = None,
) -> None:
    """The learning rate of each update; without options that of the paper's base model (5.3).

    \b
    Examples:
        keras-transformer plot schedule -o rate.svg
        keras-transformer plot schedule --peak 0.004 --warmup-steps 1000 --total-steps 6900 -o r.png
    """
    from keras_transformer.analysis import plots
    from keras_transformer.optimizers import WarmupSchedule

    _checked(output)
    peak = (d_model * warmup_steps) ** -0.5 if peak is None else peak
    schedule = WarmupSchedule(peak, warmup_steps, total_steps)
    shown = steps or total_steps or 25 * warmup_steps
    _write(plots.learning_rate(schedule, shown), output)


@app.command("history", cls=Command)
def draw_history(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a CSVLogger's file.")],
    output: Output,
) -> None:
    """Loss, perplexity and what else a training run measured in each epoch.

    \b
    Example:
        keras-transformer plot history saved_models/grammar -o history.png
    """
    from keras_transformer.analysis import plots

    _checked(output)
    _write(plots.training_history(run), output)


@app.command("lengths", cls=Command)
@searching(Search, TRANSLATE)
def draw_lengths(
    folder: Folder,
    source: Source,
    output: Output,
    reference: Reference = None,
    bins: Annotated[int, typer.Option(min=1, help="Most bars.")] = 5,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **search: Any,
) -> None:
    """BLEU of a test set's short sentences to its long ones.

    \b
    Example:
        keras-transformer plot lengths saved_models/wmt --source test.en --reference test.de
            -o lengths.png
    """
    from keras_transformer.analysis import plots
    from keras_transformer.inference.translator import Translator

    _checked(output)
    translator = Translator.load(folder, precision, source_language, target_language)
    sources, references = _pairs(translator, source, reference)
    hypotheses = translator.translate(sources, **search)
    _write(plots.bleu_by_length(sources, hypotheses, references, bins), output)


@app.command("reliability", cls=Command)
@searching(Search, TRANSLATE)
def draw_reliability(
    folder: Folder,
    source: Source,
    output: Output,
    reference: Reference = None,
    bins: Annotated[int, typer.Option(min=1, help="Bars.")] = 10,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **search: Any,
) -> None:
    """Whether the model's confidence tells how good a translation is.

    Confidence is the geometric mean of the probabilities of a translation's tokens, its end
    included; quality is the sentence's chrF over 100.

    \b
    Example:
        keras-transformer plot reliability saved_models/wmt --source test.en --reference test.de
            -o reliability.png
    """
    import sacrebleu

    from keras_transformer.analysis import plots
    from keras_transformer.inference.translator import Translator

    _checked(output)
    translator = Translator.load(folder, precision, source_language, target_language)
    sources, references = _pairs(translator, source, reference)
    hypotheses = translator.translate(sources, **search)
    counts = map(len, translator.tokenizer.encode_target(hypotheses))
    given = len(translator.tokenizer.target_frame.before)  # a language, which is not found
    scores = translator.score(sources, hypotheses)
    confidences = [
        math.exp(score / (count - given)) for score, count in zip(scores, counts, strict=True)
    ]
    chrf = sacrebleu.CHRF()
    qualities = [
        chrf.sentence_score(hypothesis, [one]).score / 100
        for hypothesis, one in zip(hypotheses, references, strict=True)
    ]
    _write(plots.reliability(confidences, qualities, bins), output)


def _pairs(translator: Translator, source: Path, reference: Path | None):
    """Sources and references; an empty source has no translation."""
    from keras_transformer.data.text_files import read_pairs
    from keras_transformer.text.languages import short_code

    languages = dict(
        source_language=short_code(translator.source_language or "en"),
        target_language=short_code(translator.target_language or "de"),
    )
    pairs = [pair for pair in read_pairs(source, reference, **languages) if pair[0].strip()]
    require(bool(pairs), "--source", str(source), "a file of some text")
    return [list(side) for side in zip(*pairs, strict=True)]


def _checked(output: Path) -> None:
    """Before the work, not after it."""
    require(output.suffix in SUFFIXES, "--output", str(output), f"a {' or '.join(SUFFIXES)} file")


def _write(figure: Figure, output: Path) -> None:
    with replacing(output) as temporary:
        figure.savefig(temporary)
    typer.echo(output)
