"""Command that cleans parallel text."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer

from keras_transformer.cli.common import CHUNK, Metric, counted, directed, learned_metric, say
from keras_transformer.cli.folders import saved
from keras_transformer.cli.vector_filters import Row, vector_filter
from keras_transformer.data.formats import check_sides
from keras_transformer.system.files import removed, replacing

SKIPPABLE = (
    *("identical", "too_long", "length_ratio", "duplicate"),
    *("encoding", "letters", "numbers", "question", "script", "language"),
)


def clean(
    inputs: Annotated[
        list[Path],
        typer.Option(
            "--input",
            "-i",
            help="Parallel text: two files, source and target; or one .tsv, .tmx, .jsonl or "
            ".parquet. May be .gz or .zst.",
        ),
    ],
    outputs: Annotated[
        list[Path],
        typer.Option(
            "--output",
            "-o",
            help="Files to write: two, source and target; or one .tsv. May be .gz.",
        ),
    ],
    source_language: Annotated[
        str | None,
        typer.Option(
            help="Code such as en. With both codes, pairs in other languages or scripts are "
            "dropped; they also select the sides of .tmx and .jsonl."
        ),
    ] = None,
    target_language: Annotated[str | None, typer.Option(help="Code such as de.")] = None,
    max_words: Annotated[int, typer.Option(min=1, help="Maximum words of a side.")] = 250,
    max_length_ratio: Annotated[
        float, typer.Option(min=1, help="Maximum words of a side per word of the other.")
    ] = 4.0,
    near_duplicates: Annotated[
        float | None,
        typer.Option(
            help="Drop pairs that are more similar than this to an earlier one, between 0 and 1, "
            "such as 0.8: Jaccard similarity of character 4-grams, by MinHash."
        ),
    ] = None,
    embedder: Annotated[
        Path | None,
        typer.Option(
            **saved(
                "Text encoder of both languages: drop pairs with a low --min-similarity or "
                "--min-margin"
            )
        ),
    ] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            min=-1,
            max=1,
            help="Drop pairs whose vectors have a lower cosine; `train --task embed` records that "
            "of the worst 1 % of good pairs in metrics.json.",
        ),
    ] = None,
    min_margin: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Drop pairs with a lower margin: the cosine, divided by the mean cosine of both "
            "sides with their 4 nearest neighbours among 16,384 pairs; such as 0.7.",
        ),
    ] = None,
    forward: Annotated[
        Path | None,
        typer.Option(
            **saved(
                "Translator from source to target: with --reverse, score the remaining pairs by "
                "dual conditional cross-entropy"
            ),
        ),
    ] = None,
    reverse: Annotated[Path | None, typer.Option(**saved("The reverse translator"))] = None,
    keep: Annotated[
        float | None,
        typer.Option(help="Share of the scored pairs to keep, the best ones.  [default: 0.9]"),
    ] = None,
    metric: Metric = None,
    metric_limit: Annotated[
        float | None,
        typer.Option(help="Drop pairs with a worse score than this by --metric."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REASON",
            help=f"Reason not to drop pairs for; may be repeated. One of {', '.join(SKIPPABLE)}.",
        ),
    ] = None,
    dropped: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for dropped pairs: reason, source, target, with tabs between.",
        ),
    ] = None,
) -> None:
    """Drop pairs of parallel text that harm training.

    Print on stderr how many are kept, and how many are dropped for which reason. The first reason
    that applies counts. Runs of white space become one space.

    \b
    Example:
        keras-transformer clean -i raw.en -i raw.de -o train.en -o train.de \\
            --source-language en --target-language de --dropped dropped.tsv
    """
    written = [*outputs, *([dropped] if dropped else [])]
    _check_files(inputs, outputs, written)
    from keras_transformer.data.cleaning import screened
    from keras_transformer.data.text_files import iterate_pairs

    languages = dict(source_language=source_language, target_language=target_language)
    lengths = dict(max_words=max_words, max_length_ratio=max_length_ratio)
    filters = _filters(languages, lengths, near_duplicates, skip or [])
    compared = vector_filter(embedder, min_similarity, min_margin)
    score = _scoring(forward, reverse, keep, [*languages.values()])
    judged = _judging(metric, metric_limit)
    known_codes = {name: code for name, code in languages.items() if code}
    counts: Counter[str | None] = Counter()
    with _replacing(written, len(outputs)) as files:
        rows = judged(compared(screened(iterate_pairs(*inputs, **known_codes), filters)))
        if score is not None:
            spool = files.enter_context(_open(files.room / ".passed", "w+"))
            rows = _best(rows, score, keep or 0.9, spool)
        for source, target, reason in counted(rows, "pairs", sys.stderr.isatty()):
            counts[reason] += 1
            if reason is None:
                files.keep(source, target)
            else:
                files.drop(reason, source, target)
        if not counts:
            raise ValueError(f"{inputs[0]} must have at least one pair, got none")
        if not counts[None]:
            raise ValueError(f"no pair is left, so nothing is written: {_summary(counts)}")
    say(_summary(counts))


def _check_files(inputs: list[Path], outputs: list[Path], written: list[Path]) -> None:
    """Raise an error for missing, equal or wrong files, before the work starts."""
    check_sides("--input", inputs)
    if len(outputs) > 2:
        raise ValueError(f"--output takes one file or two, got {len(outputs)}")
    for path in inputs:
        if not path.is_file():
            raise FileNotFoundError(f"--input {path} does not exist, or is not a file")
    if len(outputs) == 1 and not outputs[0].name.lower().removesuffix(".gz").endswith(".tsv"):
        raise ValueError(
            f"--output must be two files, or one that ends in .tsv or .tsv.gz; got {outputs[0]}"
        )
    seen = [*inputs]
    for path in written:
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} must be a file to write, got a folder or a device")
        if any(_is_same(path, x) for x in seen):
            raise ValueError(f"{path} is given twice: files to write must differ, also from inputs")
        seen.append(path)


def _is_same(path: Path, other: Path) -> bool:
    exist = path.exists() and other.exists()
    return path.samefile(other) if exist else path.resolve() == other.resolve()


def _filters(
    languages: dict[str, str | None],
    lengths: dict[str, Any],
    near_duplicates: float | None,
    skip: list[str],
) -> list[Callable[[str, str], str | None]]:
    """Return the filters without those in `skip`, the quick ones first."""
    from keras_transformer.data.character_filters import CHARACTER_FILTERS, unwritable
    from keras_transformer.data.cleaning import DuplicateFilter, LengthFilter
    from keras_transformer.data.near_duplicates import NearDuplicateFilter
    from keras_transformer.text.identification import LanguageFilter
    from keras_transformer.text.scripts import ScriptFilter

    for reason in skip:
        if reason not in SKIPPABLE:
            raise ValueError(f"--skip must be one of {', '.join(SKIPPABLE)}; got {reason!r}")
    if None in languages.values() and any(languages.values()):
        raise ValueError(f"--source-language and --target-language go together, got {languages}")
    limits = {"max_words": "too_long", "max_length_ratio": "length_ratio"}
    lengths |= {name: None for name, reason in limits.items() if reason in skip}
    filters: dict[str, Callable[[], Callable]] = {
        "length": lambda: LengthFilter(**lengths, drop_identical="identical" not in skip),
        "duplicate": DuplicateFilter,
    }

    def ready(check: Callable) -> Callable[[], Callable]:
        return lambda: check

    filters["unicode"] = ready(unwritable)  # applies also with --skip encoding
    filters |= {reason: ready(check) for reason, check in CHARACTER_FILTERS.items()}
    source, target = languages.values()
    if source and target:
        filters["script"] = partial(ScriptFilter, source, target)
        filters["language"] = partial(LanguageFilter, source, target)
    if near_duplicates is not None:
        filters["near_duplicate"] = lambda: NearDuplicateFilter(near_duplicates)
    return [make() for reason, make in filters.items() if reason not in skip]


def _scoring(
    forward: Path | None, reverse: Path | None, keep: float | None, codes: list[str | None]
) -> Callable | None:
    """Return the function that scores pairs with both translators; None if neither is given."""
    if keep is not None and not 0 < keep <= 1:
        raise ValueError(f"--keep must be above 0 and at most 1, got {keep}")
    if forward is None or reverse is None:
        if (forward, reverse, keep) != (None, None, None):
            raise ValueError("--forward and --reverse go together, and --keep needs both")
        return None
    from keras_transformer.translate.dual_cross_entropy import dual_scores

    translators = directed(forward, *codes), directed(reverse, *codes[::-1])
    dual_scores(*translators, [], [])  # refuses translators of the same direction at once

    def score(pairs):
        return dual_scores(*translators, *zip(*pairs, strict=True))

    return score


def _judging(folder: Path | None, limit: float | None) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Return the function that gives rows with a worse score than the limit the reason "metric"."""
    if (folder is None) != (limit is None):
        raise ValueError("--metric and --metric-limit go together")
    if folder is None or limit is None:
        return lambda rows: rows
    metric = learned_metric(folder)
    metric.score([], [])  # refuses a metric that needs references at once

    def judged(rows: Iterator[Row]) -> Iterator[Row]:
        while chunk := list(itertools.islice(rows, CHUNK)):
            pairs = [row[:2] for row in chunk if row[2] is None]
            sources, targets = map(list, zip(*pairs, strict=True)) if pairs else ([], [])
            worse = iter(metric.sign * (metric.score(sources, targets) - limit) < 0)
            for source, target, reason in chunk:
                is_worse = reason is None and next(worse)
                yield source, target, "metric" if is_worse else reason

    return judged


def _best(rows: Iterable[Row], score: Callable, keep: float, spool: TextIO) -> Iterator[Row]:
    """Yield all rows; pairs that no filter dropped get the reason "score", except the best.

    Rows that a filter dropped are yielded first. The scored ones follow, in their order.

    Args:
        rows: The rows, with the reasons of the filters.
        score: Function from pairs to scores.
        keep: Share of the scored pairs that are kept, above 0 and at most 1.
        spool: Empty file, for the pairs while they are scored.
    """
    import numpy as np

    scores = array("d")

    def passed():
        for source, target, reason in rows:
            if reason is None:
                yield source, target
            else:
                dropped.append((source, target, reason))

    dropped: list[Row] = []
    pairs = passed()
    while chunk := list(itertools.islice(pairs, CHUNK)):
        scores.extend(score(chunk))
        spool.writelines(f"{source}\t{target}\n" for source, target in chunk)
        yield from dropped
        dropped.clear()
    yield from dropped
    is_best = np.zeros(len(scores), bool)
    is_best[np.argsort(-np.array(scores), kind="stable")[: math.ceil(keep * len(scores))]] = True
    spool.seek(0)
    for line, chosen in zip(spool, is_best, strict=True):
        source, target = line.removesuffix("\n").split("\t")
        yield source, target, None if chosen else "score"


class _Files(contextlib.ExitStack):
    """The files to write, under temporary names.

    Args:
        paths: Temporary paths of the files for kept pairs, then of that for dropped pairs, if any.
        num_outputs: Number of files for kept pairs, 1 or 2.
    """

    def __init__(self, paths: list[Path], num_outputs: int):
        super().__init__()
        self.room = paths[0].parent
        files = [self.enter_context(_open(path)) for path in paths]
        self._kept, self._dropped = files[:num_outputs], files[num_outputs:]

    def keep(self, *pair: str) -> None:
        """Write a pair: a line in each of two files, or one of both texts."""
        lines = pair if len(self._kept) == 2 else ("\t".join(pair),)
        for file, line in zip(self._kept, lines, strict=True):
            file.write(f"{line}\n")

    def drop(self, *row: str) -> None:
        """Write reason, source and target of a dropped pair, if there is a file for these."""
        for file in self._dropped:
            file.write("\t".join(row) + "\n")


def _open(path: Path, mode: Literal["w", "w+"] = "w") -> TextIO:
    errors = "backslashreplace"  # dropped pairs may be invalid Unicode
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "wt", encoding="utf-8", errors=errors, newline="\n")
    return path.open(mode, encoding="utf-8", errors=errors, newline="\n")


@contextlib.contextmanager
def _replacing(paths: list[Path], num_outputs: int) -> Iterator[_Files]:
    """Yield the files. At the end they replace `paths`; after an error, `paths` are unchanged."""
    with contextlib.ExitStack() as moves:
        temporary = [moves.enter_context(replacing(path)) for path in paths]
        with _Files(temporary, num_outputs) as files:
            yield files
        removed(*paths[:-1])  # a kill must not leave one old file and one new file


def _summary(counts: Counter[str | None]) -> str:
    reasons = [f"{count:,} {reason}" for reason, count in counts.most_common() if reason]
    kept, total = counts[None], counts.total()
    return f"kept {kept:,} of {total:,} pairs; dropped {', '.join(reasons) or 'none'}"
