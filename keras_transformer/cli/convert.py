"""Commands that import, export, average, merge and describe models."""

from __future__ import annotations

import enum
import platform
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer import __version__
from keras_transformer.cli.common import (
    Precision,
    SourceLanguage,
    TargetLanguage,
    searching,
)
from keras_transformer.cli.folders import saved_argument
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.system.files import check_free


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder in Hugging Face's layout or of CTranslate2, a zip file of one, "
            "a GGUF file, Marian's model.npz, or a model name on Hugging Face's hub."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write.")],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    precision: Precision = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            help="Prompt of a language model that translates: the name of a built-in one "
            "(eurollm, hunyuan-mt, hy-mt, hy-mt2, plain, salamandra-ta, seed-x, tower, "
            "tower-plus, translate-gemma), or a TOML file.  [default: by the checkpoint's name]"
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the saved model in FOLDER, if any.")
    ] = False,
) -> None:
    """Import a pretrained model of Hugging Face, CTranslate2, Marian or llama.cpp.

    Marian (OPUS-MT), M2M-100, NLLB-200, mBART, BART, T5, T5 v1.1, mT5, UMT5, MADLAD-400 and
    T5Gemma become translators, to run, train further or export. GPT-2, LLaMA and its relatives
    (Mistral, Mixtral, Qwen, Phi, OLMo 2, ...) and Gemma load in `generate`, Whisper in
    `transcribe`, ViT, DeiT and DINOv2 in `see`. BERT and its variants (RoBERTa, MPNet, ...),
    DeBERTa and ESM-2 are starting points for fine-tuning; `info` names the command that runs a
    fine-tuned one.
    A folder of sentence-transformers keeps its pooling, prompts and other settings for `embed`; a
    cross-encoder with one label is for `rank`. A folder of CTranslate2 (`model.bin`), of any
    quantization, becomes a transcriber or a translator. A GGUF file of a language model, also a
    quantized one, loads in `generate` and `chat`. A model of Marian (`model.npz`, with its
    `decoder.yml` and vocabularies beside it) becomes a translator that searches like Marian.

    \b
    Examples:
        keras-transformer import Helsinki-NLP/opus-mt-en-de saved_models/opus-mt-en-de
        keras-transformer import facebook/nllb-200-distilled-600M saved_models/nllb
            --source-language eng_Latn --target-language deu_Latn --precision int8
        keras-transformer import gpt2 saved_models/gpt2
        keras-transformer import Unbabel/TowerInstruct-7B-v0.2 saved_models/tower
            --source-language en --target-language de
        keras-transformer import SmolLM2-135M-Instruct.Q4_1.gguf saved_models/smollm2
    """
    from keras_transformer.pretrained import load_pretrained
    from keras_transformer.saved.contents import CONFIG, MODEL

    for name in (CONFIG, MODEL):
        check_free(out / name, overwrite)
    pair = source_language, target_language
    load_pretrained(source, *pair, precision, prompt).save(out)
    typer.echo(out)


class Format(enum.StrEnum):
    """The formats that `export` writes."""

    SAVED_MODEL = "saved-model"
    HUGGING_FACE = "hugging-face"
    CTRANSLATE2 = "ctranslate2"
    MARIAN = "marian"
    ONNX = "onnx"
    LITERT = "litert"
    GGUF = "gguf"
    WEB = "web"


SHOWN = 10  # entries of a long list that `info` shows

# The options of `export` that each format accepts, besides --overwrite.
OPTIONS = {
    Format.SAVED_MODEL: (
        "version", "source_language", "target_language", "jit_compile", *TRANSLATE
    ),
    Format.HUGGING_FACE: (),
    Format.CTRANSLATE2: ("quantization",),
    Format.MARIAN: ("quantization",),
    Format.ONNX: ("layout", "source_language", "target_language"),
    Format.LITERT: ("quantization", "calibration", "source_language", "target_language"),
    Format.GGUF: ("quantization",),
    Format.WEB: ("source_language", "target_language", "runtime"),
}  # fmt: skip


@searching(Search, TRANSLATE)
def export(
    context: typer.Context,
    folder: Annotated[
        Path, saved_argument("A saved translator, language model or, for LiteRT, another model")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="The folder to write; servers use its name for the model. GGUF: the file."
        ),
    ],
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="For TensorFlow Serving, transformers, CTranslate2, Marian, ONNX Runtime, LiteRT, "
            "llama.cpp, or a web page that translates in the browser.",
        ),
    ] = Format.SAVED_MODEL,
    version: Annotated[
        int,
        typer.Option(
            min=1,
            help="Version of a SavedModel, the name of its subfolder; servers load the highest.",
        ),
    ] = 1,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    jit_compile: Annotated[
        bool,
        typer.Option("--jit-compile", help="Compile a SavedModel's search with XLA, for GPUs."),
    ] = False,
    quantization: Annotated[
        str | None,
        typer.Option(
            help="Type of the weights  [default: float32, for gguf F16]: for CTranslate2, such as "
            "int8; for Marian intgemm8; for LiteRT float16, int8 or int8-weights; for gguf Q8_0 or "
            "F32."
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="For LiteRT with int8-weights: a text file of some hundred examples, one a line, "
            "on which rounding should change the results least.",
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="Layout of ONNX graphs: transformers-js, for Node.js and browsers  [default: with "
            "a program of Python]"
        ),
    ] = None,
    runtime: Annotated[
        Path | None,
        typer.Option(
            help="The npm package onnxruntime-web for a page: a folder, or the file of `npm pack`."
            "  [default: npm fetches it]"
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an export that exists there.")
    ] = False,
    **search: Any,
) -> None:
    """Export a model to a format that other programs run.

    A TensorFlow SavedModel takes strings and returns strings. It is written to OUT/VERSION, where
    TensorFlow Serving looks for it; any process with tensorflow and tensorflow-text can load it,
    without keras-transformer. The export needs both packages, whatever backend trained the model.
    Language models are exported to the formats hugging-face, gguf and litert, text embedders to
    hugging-face, in the form of sentence-transformers, and to litert; transcribers, other encoders
    and image models to litert.
    The search options are fixed in a SavedModel. The formats hugging-face, marian, onnx, litert,
    gguf and web store those of FOLDER. With ctranslate2, the program that runs it chooses.
    The format web is a folder for any host of static files: a page that translates in the browser,
    also offline, with 8-bit weights.

    \b
    Examples:
        keras-transformer export saved_models/grammar serving/grammar
        keras-transformer export saved_models/grammar served/hf --format hugging-face
        keras-transformer export saved_models/grammar served/ct2 --format ctranslate2
            --quantization int8
        keras-transformer export saved_models/assistant assistant.gguf --format gguf
        keras-transformer export tatoeba served/page --format web
    """
    from keras_transformer.export import (
        ctranslate2,
        gguf,
        hugging_face,
        litert,
        marian,
        onnx,
        saved_model,
        web,
    )

    options = {
        name: value
        for name, value in context.params.items()
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }
    options = {
        x: y for x, y in options.items() if x not in ("folder", "out", "format_", "overwrite")
    }
    if strange := [name for name in options if name not in OPTIONS[format_]]:
        raise ValueError(
            f"--{strange[0].replace('_', '-')} is no option of --format {format_.value}"
        )
    exporters = {
        Format.SAVED_MODEL: saved_model,
        Format.HUGGING_FACE: hugging_face,
        Format.CTRANSLATE2: ctranslate2,
        Format.MARIAN: marian,
        Format.ONNX: onnx,
        Format.LITERT: litert,
        Format.GGUF: gguf,
        Format.WEB: web,
    }
    typer.echo(exporters[format_](folder, out, overwrite=overwrite, **options))


def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(metavar="CHECKPOINT", help="Checkpoint folders or .safetensors files."),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The .safetensors file to write; with --translator, the folder."),
    ],
    translator: Annotated[
        Path | None,
        typer.Option(help="A saved translator: OUT becomes a copy of it with the mean weights."),
    ] = None,
) -> None:
    """Average the weights of checkpoints.

    The mean of the last checkpoints usually translates better than the last one alone. With
    --translator, a single checkpoint of a LoRA run becomes a translator, too: its low-rank products
    are added to the weights.

    \b
    Examples:
        keras-transformer average run/checkpoints/epoch-* --out average.safetensors
        keras-transformer average run/checkpoints/epoch-* --translator run --out averaged
    """
    from keras_transformer.models.lora import enable_lora, lora_rank, merged
    from keras_transformer.translate.translator import Translator
    from keras_transformer.weights import assign_weights, average_weights, save_weights

    if translator is None:
        save_weights(out, average_weights(checkpoints))
        return
    loaded, weights = Translator.load(translator), average_weights(checkpoints)
    if rank := lora_rank(weights):
        if len(checkpoints) > 1:
            raise ValueError(
                "give only one LoRA checkpoint: averaging factors does not average their products"
            )
        enable_lora(loaded.model, rank)
    assign_weights(weights, loaded.model)
    if rank:
        loaded.model = merged(loaded.model)
    loaded.save(out)


def merge(
    adapter: Annotated[Path, typer.Argument(metavar="ADAPTER", help="A saved adapter (LoRA).")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that exists there.")
    ] = False,
) -> None:
    """Merge an adapter into the base that it names, and write one whole model.

    The commands load an adapter like any other saved model. It stores the relative path of its
    base, so move both folders together. A merged model needs no base.

    \b
    Example:
        keras-transformer merge saved_models/tuned/adapter saved_models/merged
    """
    from keras_transformer.saved.adapter_sets import merge

    merge(adapter, out, overwrite=overwrite)
    typer.echo(out)


def info(
    folder: Annotated[Path, typer.Argument(help="A saved model.", metavar="FOLDER")],
) -> None:
    """Describe a saved model: a translator, language model, classifier, transcriber ...

    Show its task, the object and the command that use it, languages or labels, sizes, precision,
    tokenizer and measured quality, and the installed versions. For another folder, such as a
    checkpoint or an exported model, show one sentence.

    \b
    Example:
        keras-transformer info saved_models/grammar
    """
    import keras

    from keras_transformer.evaluation.assess import read_metrics
    from keras_transformer.evaluation.scores import table
    from keras_transformer.saved.contents import is_saved
    from keras_transformer.saved.description import describe, other_kind
    from keras_transformer.translate.translator import METRICS

    if not is_saved(folder) and (kind := other_kind(folder)):
        typer.echo(f"{folder} is {kind}.")
        return
    values = {name: _shortened(value) for name, value in describe(folder).items()}
    backend = keras.backend.backend()
    values |= {
        "backend": f"{backend} {sys.modules[backend].__version__}",
        "keras": keras.__version__,
        "keras_transformer": __version__,
        "python": platform.python_version(),
    }
    typer.echo(table(values))
    metrics = read_metrics(folder)
    # Some scripts save metrics without the name of a test set.
    plain = {name: x for name, x in metrics.items() if not isinstance(x, dict)}
    named = {name: x for name, x in metrics.items() if name not in plain}
    for name, scores in (({METRICS: plain} if plain else {}) | named).items():
        typer.echo(f"\n{name}\n{table(scores)}")


def _shortened(value):
    """Return a value to show; a long list, such as the names of 1,000 classes, is cut."""
    if isinstance(value, list) and len(value) > SHOWN:
        return f"{str(value[:SHOWN])[:-1]}, ... ({len(value)} in all)]"
    return value
