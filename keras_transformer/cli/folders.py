"""Commands that make one saved folder of another, or show what one is."""

from __future__ import annotations

import enum
import platform
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer import __version__
from keras_transformer.cli.common import (
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    searching,
)
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.system.files import check_free, read_json


def import_(
    source: Annotated[
        str, typer.Argument(help="A folder in Hugging Face's layout, or a model's name there.")
    ],
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write.")],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    precision: Precision = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a saved model that is in FOLDER.")
    ] = False,
) -> None:
    """Makes a pretrained model one of our own, on any backend.

    Marian (OPUS-MT), M2M-100, NLLB-200, mBART-50, T5, T5 v1.1, mT5 and MADLAD-400 become
    translators, to use, to train further, to export; GPT-2, LLaMA and Mistral what `generate`
    takes, Whisper what `transcribe` takes; BERT, RoBERTa, ALBERT, ESM-2 and ViT what is to be
    fine-tuned.

    \b
    Examples:
        keras-transformer import Helsinki-NLP/opus-mt-en-de saved_models/opus-mt-en-de
        keras-transformer import facebook/nllb-200-distilled-600M saved_models/nllb
            --source-language eng_Latn --target-language deu_Latn --precision int8
        keras-transformer import gpt2 saved_models/gpt2
    """
    from keras_transformer.inference.folder import CONFIG, MODEL
    from keras_transformer.inference.pretrained import load_pretrained

    for name in (CONFIG, MODEL):
        check_free(out / name, overwrite)
    load_pretrained(source, source_language, target_language, precision).save(out)
    typer.echo(out)


class Format(enum.StrEnum):
    """The formats that `export` writes."""

    SAVED_MODEL = "saved-model"
    HUGGING_FACE = "hugging-face"
    CTRANSLATE2 = "ctranslate2"
    ONNX = "onnx"


# The options of `export` that only one format has.
OPTIONS = {
    Format.SAVED_MODEL: (
        "version", "source_language", "target_language", "jit_compile", *TRANSLATE
    ),
    Format.HUGGING_FACE: (),
    Format.CTRANSLATE2: ("quantization",),
    Format.ONNX: ("source_language", "target_language"),
}  # fmt: skip


@searching(Search, TRANSLATE)
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
    **search: Any,
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
    from keras_transformer.export import ctranslate2, hugging_face, onnx, saved_model

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
    exporters = {
        Format.SAVED_MODEL: saved_model,
        Format.HUGGING_FACE: hugging_face,
        Format.CTRANSLATE2: ctranslate2,
        Format.ONNX: onnx,
    }
    typer.echo(exporters[format_](folder, out, overwrite=overwrite, **given))


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
    from keras_transformer.checkpoints import assign_weights, average_weights, save_weights
    from keras_transformer.inference.translator import Translator
    from keras_transformer.models.lora import enable_lora, lora_rank, merged

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


def info(
    folder: Annotated[Path, typer.Argument(help="A saved model.", metavar="FOLDER")],
) -> None:
    """Shows what a saved model is: a translator, language model, classifier, transcriber ...

    Its task, languages or labels, sizes, tokenizer and measured quality, and the versions that
    read it. Of a checkpoint, an exported model and others, a sentence.

    \b
    Example:
        keras-transformer info saved_models/grammar
    """
    import keras

    from keras_transformer.evaluation.assess import read_metrics
    from keras_transformer.evaluation.scores import table
    from keras_transformer.inference.folder import (
        CONFIG,
        MODEL,
        count_parameters,
        other_kind,
        read_config,
    )
    from keras_transformer.inference.translator import METRICS
    from keras_transformer.text.single import TextTokenizer
    from keras_transformer.text.tokenizer import MANIFEST

    saved = (folder / CONFIG).is_file() and (folder / MODEL).is_file()
    if not saved and (kind := other_kind(folder)):
        typer.echo(f"{folder} is {kind}.")
        return
    config, backend = read_config(folder, "model"), keras.backend.backend()
    values = {"task": config.get("task") or "translation"}
    languages = config.get("source_language"), config.get("target_language")
    if any(languages):
        values["languages"] = " -> ".join(x or "?" for x in languages)
    values |= {"parameters": f"{count_parameters(folder):,}", **config["model"]}
    if isinstance(hearing := config.get("hearing"), dict):
        values |= {name: x for name, x in hearing.items() if not isinstance(x, list)}
    if config.get("tokenizer") is not None:
        manifest = read_json(folder / MANIFEST)
        kind = manifest.get("class") if isinstance(manifest, dict) else None
        values |= {"tokenizer": kind or TextTokenizer.__name__}
        values |= {"fingerprint": config["tokenizer"][:16]}
    values |= {
        "backend": f"{backend} {sys.modules[backend].__version__}",
        "keras": keras.__version__,
        "keras_transformer": __version__,
        "python": platform.python_version(),
    }
    typer.echo(table(values))
    metrics = read_metrics(folder)
    # Those of some scripts are of no test set's name.
    plain = {name: x for name, x in metrics.items() if not isinstance(x, dict)}
    named = {name: x for name, x in metrics.items() if name not in plain}
    for name, own in (({METRICS: plain} if plain else {}) | named).items():
        typer.echo(f"\n{name}\n{table(own)}")
