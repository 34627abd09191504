"""Translate or score a corpus: plan, resume, run on an executor, report."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_transformer.config import require, require_whole
from keras_transformer.corpora.job_options import NAMES, JobOptions
from keras_transformer.corpora.local_executor import on_processes
from keras_transformer.corpora.manifest import fingerprint, planned
from keras_transformer.corpora.outcome import Outcome, ShardError
from keras_transformer.corpora.ray_executor import on_ray
from keras_transformer.corpora.results import Results
from keras_transformer.corpora.shards import files_of, split
from keras_transformer.data.formats import has_fields
from keras_transformer.search import NBEST, TRANSLATE, Search, spelled_out
from keras_transformer.system.files import locked, read_json

Paths = str | os.PathLike | Sequence[str | os.PathLike]
EXECUTORS = {"local": on_processes, "ray": on_ray}


@dataclass(frozen=True)
class Job:
    """A job as its workers receive it: plain values, sent as JSON.

    Args:
        method: Key of `worker.METHODS`.
        model: Folder of the translator.
        loading: Arguments of `Translator.load` besides the folder.
        options: Arguments of the translator's method.
        output: The output folder.
        suffix: Suffix of the shards in the output folder, such as ".txt".
        run: Random name of this run; each run counts its own attempts.
        gpus: Number of GPUs of each worker; below 1, a share of one GPU.
    """

    method: str
    model: str
    loading: dict[str, Any]
    options: dict[str, Any]
    output: str
    suffix: str
    run: str
    gpus: float = 0


_LOADING = ("precision", "engine", "source_language", "target_language")
# Options that are in the manifest only if they differ from their default: manifests of earlier
# versions do not have them.
_LATER = (
    *("shortlist", "no_repeat_ngram_size", "diversity_rate", "repetition_penalty"),
    *("early_stopping", "max_length", "protect", "force_terms", "style"),
)


def _defaults(folder):
    """Return the search options in a model's `config.json`; an empty dict if there are none."""
    config = Path(folder, "config.json")
    facts = read_json(config) if config.is_file() else {}
    return Search.saved(facts if isinstance(facts, dict) else {}, config)


@spelled_out(JobOptions, NAMES)
@spelled_out(Search, TRANSLATE)
def translate_corpus(
    folder: str | os.PathLike,
    inputs: Paths,
    output: str | os.PathLike,
    *,
    text_field: str = "text",
    num_hypotheses: int | None = None,
    tokens_per_batch: int = 4096,
    strict: bool = False,
    precision: str | None = None,
    engine: str = "keras",
    source_language: str | None = None,
    target_language: str | None = None,
    report: Callable[[Outcome], None] | None = None,
    **options: Any,
) -> Outcome:
    """Translate the lines of files into a folder of shards, with many processes or machines.

    The shard files in the order of their names hold one line for each line of the inputs, in
    order. The same call resumes a job that was stopped.

    Args:
        folder: Folder of a saved translator.
        inputs: Files or folders of text: one text per line, TSV, JSON lines, TMX or Parquet; see
            `lines.open_lines`.
        output: Folder for the shards; new, empty, or of the same job.
        text_field: Field of JSON lines, column of Parquet or TSV, or language of TMX: the text.
        num_hypotheses: Write this many translations per line, as JSON with their scores; None:
            write the best, as text.
        tokens_per_batch: See `Translator.translate`.
        strict: See `Translator.translate`.
        precision: See `Translator.load`.
        engine: See `Translator.load`.
        source_language: See `Translator.load`.
        target_language: See `Translator.load`.
        report: Called with the state of the job at its start and after each shard.
        options: Options of `job_options.JobOptions`, such as `executor="ray"` and `processes=2`,
            and of the search, see `Translator.translate`.

    Returns:
        The state of the job at its end; with `only_plan`, the numbers of its shards and lines.

    Raises:
        ValueError: If an option is out of range, a line cannot be read (names file and line), the
            model cannot be loaded, or the folder belongs to another job (names what differs).
        ImportError: If Ray, or the package that reads an input, is not installed.
        OSError: If an input does not exist, or the disk is full; no shard is half-written.
        RuntimeError: If a worker process ends three times in a row before it is ready.
        ShardError: If shards were given up, because of bad input or after three attempts; all
            others are done.
    """
    corpus = JobOptions.take(options)
    if num_hypotheses is None:
        method, suffix, names = "translate", ".txt", TRANSLATE
    else:
        method, suffix, names = "nbest", ".jsonl", NBEST
        options["num_hypotheses"] = num_hypotheses
    search = dataclasses.asdict(Search.of(options, names, _defaults(folder)))
    asked = {name: value for name, value in search.items() if name in (*TRANSLATE, *options)}
    changed = Search.changed(asked)
    asked = {x: value for x, value in asked.items() if x not in _LATER or x in changed}
    loading = precision, engine, source_language, target_language
    sides = [(files_of(inputs, "inputs"), (text_field,))]
    _check_fields(sides, {"text_field": text_field})
    asked["strict"] = strict
    return _run(
        folder, sides, output, method, suffix, loading, asked, tokens_per_batch, corpus, report
    )


@spelled_out(JobOptions, NAMES)
def score_corpus(
    folder: str | os.PathLike,
    inputs: Paths,
    output: str | os.PathLike,
    *,
    targets: Paths | None = None,
    source_field: str = "source",
    target_field: str = "target",
    tokens_per_batch: int = 4096,
    strict: bool = False,
    precision: str | None = None,
    engine: str = "keras",
    source_language: str | None = None,
    target_language: str | None = None,
    report: Callable[[Outcome], None] | None = None,
    **options: Any,
) -> Outcome:
    """Score the pairs of a parallel corpus into a folder of shards, as `translate_corpus` does.

    Each line of the output is a JSON object: `log_probability` of the target given the source (see
    `Translator.score`), `source_tokens` and `target_tokens`, which count EOS. The log-probability
    of a pair longer than the model's `max_length` is null.

    Args:
        folder: Folder of a saved translator.
        inputs: Files or folders: the source texts, with `targets`; else pairs, as text with a tab
            between the two (`.tsv`), JSON lines, TMX or Parquet.
        output: Folder for the shards; new, empty, or of the same job.
        targets: Files or folders with the target texts, in the order of the sources; None: `inputs`
            are pairs.
        source_field: Field of JSON lines, column of Parquet or language of TMX: the source.
        target_field: The same for the target.
        tokens_per_batch: See `Translator.score`.
        strict: Whether a pair longer than the model's `max_length` is an error.
        precision: See `Translator.load`.
        engine: See `Translator.load`.
        source_language: See `Translator.load`.
        target_language: See `Translator.load`.
        report: See `translate_corpus`.
        options: Options of `job_options.JobOptions`.

    Returns:
        See `translate_corpus`.

    Raises:
        ValueError: See `translate_corpus`; or if parallel files differ in their number of lines.
        ImportError, OSError, RuntimeError, ShardError: See `translate_corpus`.
    """
    corpus = JobOptions.take(options)
    Search.of(options, ())
    sources = files_of(inputs, "inputs")
    sides: list[tuple[list[str], tuple[str, ...]]] = []
    if targets is None:
        sides.append((sources, (source_field, target_field)))
    else:
        sides += [(sources, (source_field,)), (files_of(targets, "targets"), (target_field,))]
    _check_fields(sides, {"source_field": source_field, "target_field": target_field})
    loading = precision, engine, source_language, target_language
    asked = {"strict": strict}
    return _run(
        folder, sides, output, "score", ".jsonl", loading, asked, tokens_per_batch, corpus, report
    )


def _check_fields(sides, fields):
    """Raise ValueError if a field is named although no input has fields."""
    paths = [path for files, _ in sides for path in files]
    if any(has_fields(path) for path in paths):
        return
    for name, field in fields.items():
        accepted = "left out: no input is TSV, JSON lines, TMX or Parquet"
        require(field == name.partition("_")[0], name, field, accepted)


def _run(folder, sides, output, method, suffix, loading, options, tokens_per_batch, corpus, report):
    """Plan a job and run it; return its `Outcome`."""
    require_whole("tokens_per_batch", tokens_per_batch, 1)
    loading = dict(zip(_LOADING, loading, strict=True))
    # Everything that can change a line of the output but by rounding: batch size and backend, which
    # are left out, may change the last digit of a score, or decide between nearly equal scores.
    facts = {"method": method, "model": fingerprint(folder), **loading, **options}
    shards = list(split(planned(output, facts, sides, corpus.shard_lines), corpus.shard_lines))
    part, parts = corpus.part
    shards = shards[part::parts]
    outcome = Outcome(len(shards), sum(shard.lines for shard in shards))
    if corpus.only_plan:
        return outcome
    output = Path(output).absolute()
    job = Job(
        method,
        os.path.abspath(folder),
        loading,
        options | {"tokens_per_batch": tokens_per_batch},
        str(output),
        suffix,
        secrets.token_hex(4),
        corpus.gpus,
    )
    # The lock keeps a second driver out of this part of the job; each part has its own lock.
    lock = output / f".part-{part}-of-{parts}"
    with locked(lock):
        results = Results(job.output, job.suffix, job.run)
        results.clean(shards)
        _finish(job, shards, results, corpus, outcome, report or (lambda outcome: None))
        results.clean(shards)
    # A killed driver may have left this folder. OSError: it is gone, or another driver uses it.
    with contextlib.suppress(OSError):
        lock.rmdir()
    if outcome.failed:
        raise ShardError(outcome)
    return outcome


def _finish(job, shards, results, corpus, outcome, report):
    """Run the executor on the shards that are not done yet; update `outcome` with each answer."""
    left = {shard.number: shard for shard in shards if not results.is_done(shard)}
    outcome.done = outcome.found = len(shards) - len(left)
    outcome.left = sum(shard.lines for shard in left.values())
    report(outcome)
    if not left:
        return
    begin = time.monotonic()
    answers = EXECUTORS[corpus.executor](dataclasses.asdict(job), list(left.values()), corpus)
    try:
        for answer in answers:
            if "stop" in answer:
                number = answer["errno"]
                raise OSError(number, answer["stop"]) if number else ValueError(answer["stop"])
            outcome.add(left[answer["number"]], answer)
            outcome.seconds = time.monotonic() - begin
            report(outcome)
    finally:
        answers.close()
