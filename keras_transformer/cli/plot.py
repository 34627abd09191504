"""Commands that draw attention, positional encodings, learning rates, training and quality."""

from __future__ import annotations

import enum
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
from keras_transformer.cli.reading import read_sides
from keras_transformer.config import require
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.system.extras import pip_install
from keras_transformer.system.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=f"""Draw attention, learning rates, a training run or translation quality, as PNG or SVG.

\b
Examples:
    keras-transformer plot attention saved_models/grammar "The old man loves the dog." -o a.png
    keras-transformer plot history saved_models/grammar -o history.svg
    keras-transformer plot lengths saved_models/grammar --source test.en --reference test.de
        -o lengths.png

The plots need matplotlib: {pip_install("plots")}.""",
)


class AttentionPart(enum.StrEnum):
    """The kinds of attention that `plot attention` draws, as in `alignment.PARTS`."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


Output = Annotated[Path, typer.Option("--output", "-o", help="The .png or .svg file to write.")]
Source = Annotated[
    Path,
    typer.Option(
        help="Text to translate, one text per line; or a .tsv, .tmx, .jsonl or .parquet file with "
        "both sides."
    ),
]
Reference = Annotated[
    Path | None, typer.Option(help="Reference translations, one per line of the source.")
]


@app.command("attention", cls=Command)
def plot_attention(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="The source text.")],
    output: Output,
    target: Annotated[
        str | None, typer.Option(help="Translation of the text.  [default: the model's]")
    ] = None,
    part: Annotated[
        AttentionPart, typer.Option(help="The attention to draw.")
    ] = AttentionPart.CROSS,
    layer: Annotated[
        list[int] | None,
        typer.Option(
            help="Layer, counted from 0; may be given several times.  [default: all; with --lines, "
            "the last]"
        ),
    ] = None,
    head: Annotated[
        list[int] | None,
        typer.Option(help="Head, counted from 0; may be given several times.  [default: all]"),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Draw lines between words, for one layer.")
    ] = False,
    word: Annotated[
        int | None, typer.Option(help="With --lines: draw one query only, counted from 0.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
) -> None:
    """Draw attention as heat maps, or as lines between words as in the paper's Figures 3 to 5.

    There is one heat map per layer and head. The row of a target token is the query that predicts
    it.

    \b
    Examples:
        keras-transformer plot attention saved_models/grammar "The old man loves the dog." -o a.png
        keras-transformer plot attention saved_models/grammar "The old man loves the dog."
            --part encoder --layer 1 --lines --word 2 -o a.svg
    """
    from keras_transformer.analysis import plots
    from keras_transformer.analysis.alignment import attention
    from keras_transformer.translate.translator import Translator

    require(lines or word is None, "--word", word, "given with --lines")
    require(not lines or len(layer or []) < 2, "--layer", layer, "one, with --lines")
    checked(output)
    translator = Translator.load(folder, None, source_language, target_language)
    if target is None:
        (target,) = translator.translate([text], strict=True)
    weights = attention(translator, text, target)
    if lines:
        chosen_layer = -1 if not layer else layer[0]
        figure = plots.attention_lines(weights, part.value, chosen_layer, head or None, word)
    else:
        figure = plots.attention_maps(weights, part.value, layer or None, head or None)
    write(figure, output)


@app.command("positions", cls=Command)
def plot_positions(
    output: Output,
    d_model: Annotated[int, typer.Option(min=2, help="Number of dimensions, even.")] = 512,
    length: Annotated[int, typer.Option(min=1, help="Number of positions.")] = 100,
) -> None:
    """Draw the paper's positional encoding (section 3.5).

    \b
    Example:
        keras-transformer plot positions --d-model 128 --length 50 -o positions.png
    """
    from keras_transformer.analysis import plots

    checked(output)
    write(plots.positional_encoding(d_model, length), output)


@app.command("schedule", cls=Command)
def plot_schedule(
    output: Output,
    d_model: Annotated[
        int, typer.Option(min=1, help="Width of the model, for the paper's peak.")
    ] = 512,
    warmup_steps: Annotated[int, typer.Option(min=1, help="Updates until the peak.")] = 4000,
    peak: Annotated[
        float | None, typer.Option(help="Highest learning rate.  [default: the paper's]")
    ] = None,
    total_steps: Annotated[
        int | None,
        typer.Option(help="Update at which a linear decay ends.  [default: the paper's decay]"),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=2, help="Updates to show.  [default: --total-steps, or 25 times the warmup]"
        ),
    ] = None,
) -> None:
    """Draw the learning rate of each update, by default of the paper's base model (section 5.3).

    \b
    Examples:
        keras-transformer plot schedule -o rate.svg
        keras-transformer plot schedule --peak 0.004 --warmup-steps 1000 --total-steps 6900 -o r.png
    """
    from keras_transformer.analysis import plots
    from keras_transformer.optimizers import WarmupSchedule

    checked(output)
    peak = (d_model * warmup_steps) ** -0.5 if peak is None else peak
    schedule = WarmupSchedule(peak, warmup_steps, total_steps)
    shown = steps or total_steps or 25 * warmup_steps
    write(plots.learning_rate(schedule, shown), output)


@app.command("history", cls=Command)
def plot_history(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or the file of a CSVLogger.")],
    output: Output,
) -> None:
    """Draw loss, perplexity and other metrics of a training run, per epoch.

    \b
    Example:
        keras-transformer plot history saved_models/grammar -o history.png
    """
    from keras_transformer.analysis import plots

    checked(output)
    write(plots.training_history(run), output)


@app.command("lengths", cls=Command)
@searching(Search, TRANSLATE)
def plot_lengths(
    folder: Folder,
    source: Source,
    output: Output,
    reference: Reference = None,
    bins: Annotated[int, typer.Option(min=1, help="Maximum number of bars.")] = 5,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **search: Any,
) -> None:
    """Draw BLEU by sentence length, from a test set's short sentences to its long ones.

    \b
    Example:
        keras-transformer plot lengths saved_models/wmt --source test.en --reference test.de
            -o lengths.png
    """
    from keras_transformer.analysis import plots
    from keras_transformer.translate.translator import Translator

    checked(output)
    translator = Translator.load(folder, precision, source_language, target_language)
    pairs = zip(*read_sides(translator, source, reference), strict=True)
    sources, references = zip(*(pair for pair in pairs if pair[0].strip()), strict=True)
    hypotheses = translator.translate(sources, **search)
    write(
        plots.bleu_by_length(sources, hypotheses, references, bins, translator.target_language),
        output,
    )


@app.command("reliability", cls=Command)
@searching(Search, TRANSLATE)
def plot_reliability(
    folder: Folder,
    source: Source,
    output: Output,
    reference: Reference = None,
    bins: Annotated[int, typer.Option(min=1, help="Number of bars.")] = 10,
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated",
            help="In place of the confidence, use the quality that `calibrate` estimates from it.",
        ),
    ] = False,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **search: Any,
) -> None:
    """Draw translation quality by the model's confidence.

    Confidence is the geometric mean of the probabilities of a translation's tokens, EOS included;
    quality is the sentence's chrF divided by 100.

    \b
    Example:
        keras-transformer plot reliability saved_models/wmt --source test.en --reference test.de
            -o reliability.png
    """
    import numpy as np

    from keras_transformer.analysis import plots
    from keras_transformer.translate.quality_estimation import (
        QualityEstimator,
        confidences,
        sentence_chrf,
    )
    from keras_transformer.translate.translator import Translator

    checked(output)
    estimator = QualityEstimator.read(folder, **search) if calibrated else None
    accepted = f"left out: {folder} has none of this search, `keras-transformer calibrate` makes it"
    require(estimator is not None or not calibrated, "--calibrated", calibrated, accepted)
    translator = Translator.load(folder, precision, source_language, target_language)
    sources, references = read_sides(translator, source, reference)
    hypotheses = translator.translate(sources, **search)
    if estimator is None:
        estimates = np.exp(confidences(translator, sources, hypotheses))
    else:
        estimates = estimator.estimate(translator, sources, hypotheses)
    known = ~np.isnan(estimates)
    chrf = sentence_chrf(hypotheses, references)
    write(plots.reliability(estimates[known], chrf[known], bins), output)


def checked(output: Path) -> None:
    """Raise ValueError unless the suffix is one of `SUFFIXES`; called before the work starts."""
    require(output.suffix in SUFFIXES, "--output", str(output), f"a {' or '.join(SUFFIXES)} file")


def write(figure: Figure, output: Path) -> None:
    """Write a figure and print the name of its file."""
    with replacing(output) as temporary:
        figure.savefig(temporary)
    typer.echo(output)
