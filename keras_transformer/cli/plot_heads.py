"""The command that ranks and draws attention heads by what they attend to."""

from __future__ import annotations

from typing import Annotated

import typer

from keras_transformer.cli.common import Folder
from keras_transformer.cli.plot import Output, checked, write


def plot_attention_heads(
    folder: Folder,
    output: Output,
    sentences: Annotated[
        int, typer.Option(min=1, help="Sentences of the grammar for each relation.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the sentences.")] = 0,
) -> None:
    """Rank attention heads by the words they attend to, and draw the accuracy of all heads.

    The words are known exactly in sentences of the built-in grammar: the previous, the same and the
    next word, the verb of a separable prefix, the antecedent of a pronoun. The model must translate
    English to German and know these words. The table shows the best head of each relation, its
    accuracy (how often its highest weight is on the right word), its mean weight there, and two
    baselines: a fixed distance in words, and chance.

    \b
    Example:
        keras-transformer plot heads saved_models/grammar -o heads.svg
    """
    from keras_transformer.analysis import plots
    from keras_transformer.analysis.heads import grammar_rankings
    from keras_transformer.translate.translator import Translator

    checked(output)
    rankings = grammar_rankings(Translator.load(folder), sentences, seed)
    titles = ("relation", "attention", "layer.head", "accuracy", "weight", "distance", "chance")
    rows = [titles]
    for (name, part), ranking in rankings.items():
        best = ranking.heads[0]
        fixed = f"{ranking.distance:+d}: {ranking.distance_accuracy:.1%}"
        numbers = f"{best.accuracy:.1%}", f"{best.weight:.2f}", fixed, f"{ranking.chance:.1%}"
        rows.append((name, part, f"{best.layer}.{best.head}", *numbers))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
    write(plots.head_accuracies(rankings), output)
