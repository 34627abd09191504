"""The command line, as Unix tools are: train, translate, evaluate, import, export and more."""

from __future__ import annotations

import contextlib
import enum
import itertools
import platform
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TextIO

import keras
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperGroup

from keras_transformer import __version__
from keras_transformer.assessment import assess, read_metrics, save_metrics
from keras_transformer.checkpoints import assign_weights, average_weights, save_weights
from keras_transformer.data.corpora import iterate_lines, load_corpus, read_pairs
from keras_transformer.evaluation import table
from keras_transformer.export import ctranslate2, hugging_face, onnx, saved_model
from keras_transformer.files import replacing
from keras_transformer.models.adapting import enable_lora, lora_rank, merged
from keras_transformer.ops import keep_compilations
from keras_transformer.parallel import TranslatorPool
from keras_transformer.pretrained import load_pretrained
from keras_transformer.text.languages import short_code
from keras_transformer.translator import Translator
from training.translation import train

BAD_INPUT = (ValueError, OSError, ImportError)


class Commands(TyperGroup):
    """Commands that say in one line what the user can mend; with `--debug`, where it arose."""

    def invoke(self, context):
        """Runs a command; exit status 2 if what it was given is wrong."""
        try:
            return super().invoke(context)
        except BrokenPipeError:  # the reader has had enough: no error of ours
            raise
        except BAD_INPUT as error:
            if context.params["debug"]:
                raise
            _say(" ".join(str(error).split()))
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""The Transformer for Keras 3: trains, measures, exports and uses translators.

\b
    keras-transformer train --recipe grammar
    keras-transformer translate saved_models/grammar < english.txt > german.txt
    keras-transformer export saved_models/grammar serving/grammar

KERAS_BACKEND chooses the backend: tensorflow, jax or torch. A trained translator is a folder, which
every backend reads.""",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"keras-transformer {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="KERAS_TRANSFORMER_DEBUG", help="Show an error's origin."),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    warnings.showwarning = lambda message, *rest, **options: _say(f"warning: {message}")
    keep_compilations()


app.command()(train)

Folder = Annotated[Path, typer.Argument(help="A saved translator.", metavar="FOLDER")]
BeamSize = Annotated[
    int, typer.Option(min=1, help="Hypotheses kept a sentence; 1 is greedy search.")
]
LengthPenalty = Annotated[
    float, typer.Option(min=0, help="Alpha of Wu et al. 2016; more favours longer translations.")
]
MaxExtraLength = Annotated[
    int, typer.Option(min=1, help="Most tokens of a translation beyond those of its source.")
]
SourceLanguage = Annotated[
    str | None,
    typer.Option(help="Of a model of many languages, as its files name it.  [default: as saved]"),
]
TargetLanguage = Annotated[
    str | None, typer.Option(help="The same, of the translation.  [default: as saved]")
]
Precision = Annotated[
    str | None,
    typer.Option(help="float32, bfloat16, float16 or int8.  [default: as the model was saved]"),
]
TokensPerBatch = Annotated[int, typer.Option(min=1, help="Most source tokens in a batch.")]


@app.command()
def translate(
    folder: Folder,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Text, one a line; may be a .gz.  [default: stdin]"),
    ] = None,
    output_file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write.  [default: stdout]")
    ] = None,
    beam_size: BeamSize = 4,
    length_penalty: LengthPenalty = 0.6,
    max_extra_length: MaxExtraLength = 50,
    num_hypotheses: Annotated[
        int | None,
        typer.Option(
            "--num-hypotheses", "-n", min=1, help="Write so many, as: index ||| text ||| score"
        ),
    ] = None,
    tokens_per_batch: TokensPerBatch = 4096,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Lines read, then sorted and translated together.  [default: 2048; 1 if you type]",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a line longer than the model takes; else cut.")
    ] = False,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    processes: Annotated[
        int,
        typer.Option(min=1, help="Processes that share the cores and the text."),
    ] = 1,
) -> None:
    """Translates lines of text.

    One line in, one line out, in order; an empty line stays empty. With --num-hypotheses there
    are several lines for each line read, best first, as Moses writes them; the index counts the
    lines from 0, the score is the log-probability over the length penalty.

    \b
    Examples:
        echo "The old man sees the dog." | keras-transformer translate saved_models/grammar
        keras-transformer translate saved_models/grammar -i news.en.gz -o news.de --beam-size 5
        keras-transformer translate saved_models/grammar -n 4 < news.en > news.nbest
        keras-transformer translate saved_models/nllb --target-language fra_Latn < news.en
    """
    loading = (precision, source_language, target_language)
    if processes == 1:
        translator = Translator.load(folder, *loading)
    else:
        translator = TranslatorPool(folder, processes, *loading)
    is_typed = input_file is None and sys.stdin.isatty()
    chunk_size = chunk_size or (1 if is_typed else 2048)
    options = dict(
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_extra_length=max_extra_length,
        tokens_per_batch=tokens_per_batch,
        strict=strict,
    )
    lines = _lines(input_file)
    if num_hypotheses is None:
        found = map(_line, translator.translate_stream(lines, chunk_size=chunk_size, **options))
    else:
        options["num_hypotheses"] = num_hypotheses
        found = _nbest_lines(translator, lines, chunk_size, options)
    with _output(output_file) as out:
        shown = sys.stderr.isatty() and not is_typed and not out.isatty()
        for number, line in enumerate(_counted(found, "lines", shown), 1):
            out.write(line + "\n")
            if number % chunk_size == 0:
                out.flush()


def _nbest_lines(translator, lines, chunk_size, options):
    index = itertools.count()
    while chunk := list(itertools.islice(lines, chunk_size)):
        for hypotheses in translator.nbest(chunk, **options):
            i = next(index)
            yield "\n".join(f"{i} ||| {_line(h.text)} ||| {h.score:.4f}" for h in hypotheses)


@app.command()
def evaluate(
    folder: Folder,
    source: Annotated[
        Path | None,
        typer.Option(help="Text to translate, one a line; or both sides: .tsv, .tmx, .jsonl."),
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="What it ought to become.")] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A known corpus in place of files: grammar or multi30k.")
    ] = None,
    data_folder: Annotated[
        Path | None, typer.Option(help="Where the corpus's files are; else they are fetched.")
    ] = None,
    test_set: Annotated[
        str | None,
        typer.Option(help="Which test set of the corpus, or the name to enter a file's under."),
    ] = None,
    beam_size: BeamSize = 4,
    length_penalty: LengthPenalty = 0.6,
    max_extra_length: MaxExtraLength = 50,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="BLEU, chrF and exact match ignore case.")
    ] = False,
    moses: Annotated[
        bool,
        typer.Option(
            "--moses", help="Also BLEU as papers on Multi30k do: lower-cased, Moses-tokenised."
        ),
    ] = False,
) -> None:
    """Measures quality and speed on a test set.

    Prints a table of BLEU, chrF, TER, exact match, perplexity, time and tokens per second, and
    enters it under the test set's name into the folder's metrics.json.

    \b
    Examples:
        keras-transformer evaluate saved_models/wmt --source test.en --reference test.de
        keras-transformer evaluate saved_models/multi30k --corpus multi30k --moses
    """
    if (source is None) == (corpus is None):
        raise ValueError("give either --source (and --reference) or --corpus")
    if source is None and reference is not None:
        raise ValueError("--reference belongs to --source, not to --corpus")
    if corpus is None and data_folder is not None:
        raise ValueError("--data-folder belongs to --corpus, not to --source")
    translator = Translator.load(folder, precision, source_language, target_language)
    languages = dict(
        source_language=short_code(translator.source_language or "en"),
        target_language=short_code(translator.target_language or "de"),
    )
    if source is not None:
        pairs = read_pairs(source, reference, **languages)
        name = test_set or source.name.split(".")[0]
    else:
        tests = load_corpus(corpus, data_folder, train_size=1, **languages).tests
        name = test_set or next(iter(tests))
        if name not in tests:
            raise ValueError(f"--test-set of {corpus} must be one of {list(tests)}, got {name!r}")
        pairs = tests[name]
    metrics = assess(
        translator,
        pairs,
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_extra_length=max_extra_length,
        tokens_per_batch=tokens_per_batch,
        lowercase=lowercase,
        published_language=languages["target_language"] if moses else None,
    )
    save_metrics(folder, name, metrics)
    typer.echo(table({"test_set": name, **metrics}))


@app.command("import")
def import_(
    source: Annotated[
        str, typer.Argument(help="A folder in Hugging Face's layout, or a model's name there.")
    ],
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The translator to write.")],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    precision: Precision = None,
) -> None:
    """Makes a translator of a pretrained model.

    Marian (OPUS-MT), M2M-100, NLLB-200, mBART-50, T5, T5 v1.1, mT5 or MADLAD-400. It is then one of
    our own, on any backend, to translate, to train further, to export.

    \b
    Examples:
        keras-transformer import Helsinki-NLP/opus-mt-en-de saved_models/opus-mt-en-de
        keras-transformer import facebook/nllb-200-distilled-600M saved_models/nllb
            --source-language eng_Latn --target-language deu_Latn --precision int8
    """
    load_pretrained(source, source_language, target_language, precision).save(out)
    typer.echo(out)


class Format(enum.StrEnum):
    """What `export` writes."""

    SAVED_MODEL = "saved-model"
    HUGGING_FACE = "hugging-face"
    CTRANSLATE2 = "ctranslate2"
    ONNX = "onnx"


# The options of `export` that only one format has.
OPTIONS = {
    Format.SAVED_MODEL: (
        "version", "beam_size", "length_penalty", "max_extra_length", "source_language",
        "target_language", "jit_compile",
    ),
    Format.HUGGING_FACE: (),
    Format.CTRANSLATE2: ("quantization",),
    Format.ONNX: ("source_language", "target_language"),
}  # fmt: skip
EXPORTERS = {
    Format.SAVED_MODEL: saved_model,
    Format.HUGGING_FACE: hugging_face,
    Format.CTRANSLATE2: ctranslate2,
    Format.ONNX: onnx,
}


@app.command()
def export(
    context: typer.Context,
    folder: Folder,
    out: Annotated[Path, typer.Argument(help="The folder to write, named as the model.")],
    format_: Annotated[
        Format,
        typer.Option("--format", help="For TensorFlow Serving, transformers, CTranslate2, ONNX."),
    ] = Format.SAVED_MODEL,
    version: Annotated[
        int, typer.Option(min=1, help="Of a SavedModel: its subfolder; servers take the highest.")
    ] = 1,
    beam_size: BeamSize = 4,
    length_penalty: LengthPenalty = 0.6,
    max_extra_length: MaxExtraLength = 50,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    jit_compile: Annotated[
        bool, typer.Option("--jit-compile", help="Compile a SavedModel's search by XLA, for GPUs.")
    ] = False,
    quantization: Annotated[
        str | None, typer.Option(help="Of CTranslate2's weights: int8, float16 ...")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what exists there.")
    ] = False,
) -> None:
    """Writes a translator as others run it.

    As a TensorFlow SavedModel, strings go in, strings come out. It is written to OUT/VERSION, where
    TensorFlow Serving looks for it; a process with tensorflow and tensorflow-text loads it without
    keras-transformer. Exporting needs these two, whatever backend the model was trained on. The
    search's options are the SavedModel's; who runs the other formats chooses them anew.

    \b
    Examples:
        keras-transformer export saved_models/grammar serving/grammar
        keras-transformer export saved_models/grammar served/hf --format hugging-face
        keras-transformer export saved_models/grammar served/ct2 --format ctranslate2
            --quantization int8
    """
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name).name == "COMMANDLINE"
    }
    given = {x: y for x, y in given.items() if x not in ("folder", "out", "format_", "overwrite")}
    if strange := [name for name in given if name not in OPTIONS[format_]]:
        raise ValueError(
            f"--{strange[0].replace('_', '-')} is no option of --format {format_.value}"
        )
    typer.echo(EXPORTERS[format_](folder, out, overwrite=overwrite, **given))


@app.command()
def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(metavar="CHECKPOINT", help="Checkpoint folders or .safetensors files."),
    ],
    out: Annotated[Path, typer.Option(help="The .safetensors file, or folder, to write.")],
    translator: Annotated[
        Path | None,
        typer.Option(help="A saved translator: OUT becomes a copy of it with these weights."),
    ] = None,
) -> None:
    """Averages the weights of checkpoints.

    The mean of the last ones mostly translates better than the last one alone. With --translator,
    one checkpoint of a run with LoRA becomes a translator too, the products added to its weights.

    \b
    Examples:
        keras-transformer average run/checkpoints/epoch-* --out average.safetensors
        keras-transformer average run/checkpoints/epoch-* --translator run --out averaged
    """
    if translator is None:
        save_weights(out, average_weights(checkpoints))
        return
    loaded, weights = Translator.load(translator), average_weights(checkpoints)
    if rank := lora_rank(weights):
        if len(checkpoints) > 1:
            raise ValueError("give one checkpoint of LoRA: the mean of products is another thing")
        enable_lora(loaded.model, rank)
    assign_weights(weights, loaded.model)
    if rank:
        loaded.model = merged(loaded.model)
    loaded.save(out)


@app.command()
def info(folder: Folder) -> None:
    """Shows what a saved translator is.

    Its languages, sizes, tokenizer and measured quality, and the versions that read it.

    \b
    Example:
        keras-transformer info saved_models/grammar
    """
    translator = Translator.load(folder)
    tokenizer, backend = translator.tokenizer, keras.backend.backend()
    values = {
        "languages": f"{translator.source_language} -> {translator.target_language}",
        "parameters": f"{translator.model.count_params():,}",
        **translator.model.config.to_dict(),
        "tokenizer": type(tokenizer).__name__,
        "fingerprint": tokenizer.fingerprint()[:16],
        "backend": f"{backend} {sys.modules[backend].__version__}",
        "keras": keras.__version__,
        "keras_transformer": __version__,
        "python": platform.python_version(),
    }
    typer.echo(table(values))
    for name, metrics in read_metrics(folder).items():
        typer.echo(f"\n{name}\n{table(metrics)}")


def main() -> None:
    """Runs the command line."""
    app()


def _lines(path: Path | None) -> Iterator[str]:
    if path is not None:
        yield from iterate_lines(path)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"stdin, line {number}: invalid UTF-8 ({error})") from error
        yield text.rstrip("\r\n")


def _line(text: str) -> str:
    """The text without the line ends that byte pieces can spell."""
    return text.replace("\r", " ").replace("\n", " ")


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    """Opens stdout or a file, which is replaced when all is written."""
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        sys.stdout.flush()
    elif path.exists() and not path.is_file():  # a device or a named pipe must stay one
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    else:
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file


def _counted(values: Iterable[str], unit: str, shown: bool) -> Iterator[str]:
    """Passes the values on and counts them on stderr."""
    columns = SpinnerColumn(), TextColumn(f"{{task.completed:,.0f}} {unit}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("")
        for value in values:
            yield value
            progress.advance(task)


def _say(message: str) -> None:
    typer.echo(f"keras-transformer: {message}", err=True)


if __name__ == "__main__":
    main()
