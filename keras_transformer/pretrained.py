"""Pretrained models of other programs, loaded as objects for their tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from keras_transformer.backend import usable_precision
from keras_transformer.config import BLOCKS, require
from keras_transformer.data.archives import extracted, is_zip
from keras_transformer.hub import hugging_face_checkpoint
from keras_transformer.hub.comet import FILES as COMET
from keras_transformer.hub.comet import HPARAMS, encoder_of, read_metric
from keras_transformer.hub.ctranslate2_reader import Converted, is_converted
from keras_transformer.hub.ctranslate2_tokenizer import text_tokenizer_of, tokenizer_of
from keras_transformer.hub.families.label_fields import labels_of
from keras_transformer.hub.families.metric_map import TOKENIZER
from keras_transformer.hub.generation_config import left_out, search_of, usual_languages
from keras_transformer.hub.gguf.checkpoint import unpacked
from keras_transformer.hub.gguf.container import is_gguf
from keras_transformer.hub.hugging_face_checkpoint import fetched, lent
from keras_transformer.hub.marian.incoming import MarianModel, is_marian, read_models
from keras_transformer.hub.sentence_transformers import read_scorer, read_sentence_model
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import DecoderOnly, EncoderDecoder, MetricModel, Speech, ViT, resized
from keras_transformer.saved.contents import FLOATS, PRECISIONS
from keras_transformer.saved.folder import in_precision, save_folder
from keras_transformer.search import Generation, Search, Transcription
from keras_transformer.speech.hearing import (
    check_feature_extractor,
    hearing_of,
    hearing_of_converted,
)
from keras_transformer.speech.transcriber import Transcriber
from keras_transformer.system.files import read_json
from keras_transformer.tasks.image_classifier import ImageClassifier
from keras_transformer.tasks.image_embedder import ImageEmbedder
from keras_transformer.tasks.image_format import image_format_of, image_size_of
from keras_transformer.tasks.image_task import ImageTask
from keras_transformer.tasks.learned_metric import LearnedMetric
from keras_transformer.tasks.text_embedder import TextEmbedder
from keras_transformer.tasks.text_scorer import TextScorer
from keras_transformer.text import read_tokenizer
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.hugging_face_tokenizer import KINDS
from keras_transformer.text.lowercase import lowercased
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.translation_prompt import TranslationPrompt, guessed
from keras_transformer.translate.ensemble import ensemble
from keras_transformer.translate.translator import Translator

CONFIG = hugging_face_checkpoint.CONFIG
NO_LOGIT = -1e4  # logit of a token that is never generated; float16 can represent it
FILES = ["*.json", "*.safetensors", "*.spm", "*.model", "*.jinja", "merges.txt", "vocab.txt"]
PICKLED = "pytorch_model*.bin"
FILES += ["[0-9]*_*/pytorch_model.bin"]  # modules of older folders of sentence-transformers


@dataclass(frozen=True)
class PretrainedModel:
    """An encoder or a classifier of texts, such as a BERT, to fine-tune.

    Args:
        model: Model with its `config`; `with_head` of an `EncoderOnly` gives it another head.
        tokenizer: Tokenizer of the model.

    Raises:
        ValueError: If the tokenizer has more pieces than the model.
    """

    model: keras.Model
    tokenizer: TextTokenizer

    def __post_init__(self) -> None:
        if self.tokenizer.vocab_size > self.model.config.vocab_size:
            raise ValueError(
                f"the tokenizer does not match the model: it has {self.tokenizer.vocab_size} "
                f"pieces, the model {self.model.config.vocab_size}"
            )

    def save(self, folder: str | os.PathLike) -> None:
        """Write `model.keras`, the tokenizer's files, `config.json` and a model card.

        `saved.folder.load_with_tokenizer` reads the folder, and so do `--start-from` of tasks that
        train an encoder, and the object for the model's head, such as `TextClassifier`.
        """
        save_folder(folder, self.model, self.tokenizer, {"task": "pretrained"})


def load_pretrained(
    source: str | os.PathLike,
    source_language: str | None = None,
    target_language: str | None = None,
    precision: str | None = None,
    prompt: str | os.PathLike | None = None,
) -> (
    Translator
    | CausalLM
    | Transcriber
    | ImageTask
    | TextEmbedder
    | TextScorer
    | LearnedMetric
    | PretrainedModel
):
    """Load a model of Hugging Face, CTranslate2, Marian or llama.cpp as an object for its task.

    The object depends on the family of the model. `save(folder)` saves it, except an ensemble.

    - `Translator`: Marian (the 1,400 models of OPUS-MT), Pegasus with a Marian tokenizer, M2M-100,
      NLLB-200, mBART, BART, T5, T5 v1.1, mT5, UMT5, MADLAD-400 and T5Gemma.
    - `CausalLM`: GPT-2, LLaMA and its relatives (Mistral, Mixtral, Qwen, Phi, OLMo 2, ...), Gemma.
    - `Transcriber`: Whisper.
    - `ImageClassifier`: ViT, DeiT and DINOv2; without a classifier, `ImageEmbedder`.
    - `LearnedMetric`: COMET, CometKiwi and MetricX, with the tokenizer of the encoder's model.
    - `PretrainedModel`: BERT and its variants (`models.BERT`), DeBERTa-v2 and v3, ModernBERT,
      EuroBERT, ESM-2, a BART with a classifier, and the encoder of a T5 alone. In a folder of
      sentence-transformers, such a model becomes a `TextEmbedder` with its pooling; a classifier of
      text pairs with one label, as cross-encoders have it, becomes a `TextScorer`.

    ```python
    translator = load_pretrained("Helsinki-NLP/opus-mt-en-de")
    translator.translate(["My name is Sarah."])
    translator.save("saved_models/opus-mt-en-de")  # from now on like any saved translator

    many = load_pretrained("facebook/nllb-200-distilled-600M", "eng_Latn", "deu_Latn")
    many.between("deu_Latn", "fra_Latn").translate(["Ich heiße Sarah."])
    ```

    Args:
        source: Folder with `config.json`, weights and tokenizer files; a zip file of one; a folder
            of CTranslate2, with `model.bin`, vocabularies and tokenizer files (Whisper, T5, Marian
            and its relatives); a GGUF file of a LLaMA (also SmolLM and Mistral), Qwen2, Qwen3,
            Phi-3, OLMo 2, Granite, Gemma or GPT-2; a model of Marian, `model.npz`, or its folder
            with `decoder.yml` (several models in it become an ensemble); or the name of a model on
            the hub, which is downloaded once and kept in the cache of `huggingface_hub`.
        source_language, target_language: Language codes of a multilingual model, such as "de"
            (M2M-100), "deu_Latn" (NLLB-200), "de_DE" (mBART-50), "deu" (a tag of Marian) or "de"
            (T5, MADLAD-400); None: the languages in its files. `Translator.between` chooses others.
        precision: See `Translator.load`; None: float32.
        prompt: Prompt of a language model that translates; once saved, `Translator.load` loads it.
            Name of a built-in prompt, such as "tower", or a TOML file with the fields of
            `TranslationPrompt`. None: the built-in prompt for a checkpoint of this name, if any.

    Returns:
        The object for the family of the model.

    Raises:
        ImportError: If a model name is given and `huggingface_hub` is not installed, or a GGUF
            file and `gguf` is not.
        FileNotFoundError: If there is neither such a folder nor such a model, or a file is
            missing.
        ConnectionError: If the model is not in the cache and the hub cannot be reached.
        PermissionError: If the model requires a login.
        ValueError: If the family, a language or the precision is unknown, or a file is broken or
            does not match the others.
    """
    accepted = f"one of {PRECISIONS} or None"
    require(precision in (*PRECISIONS, None), "precision", precision, accepted)
    pair = source_language, target_language
    asked = prompt is not None
    chosen = TranslationPrompt.read(prompt) if prompt is not None else guessed(Path(source).name)
    if chosen is not None:
        chosen = replace(chosen, source_language=source_language, target_language=target_language)
    for is_packed, opened in ((is_gguf, unpacked), (is_zip, extracted)):
        if is_packed(source):
            with opened(source) as folder:
                return _loaded(folder, pair, precision, chosen, asked)
    return _loaded(source, pair, precision, chosen, asked)


def _loaded(
    source: str | os.PathLike,
    pair: tuple[str | None, str | None],
    precision: str | None,
    prompt: TranslationPrompt | None,
    asked: bool,
) -> Any:
    """Load a model that is neither a GGUF nor a zip file, see `load_pretrained`.

    Args:
        source, precision: See `load_pretrained`.
        pair: Source and target language, or None for each.
        prompt: The prompt of a language model that translates; None: it has none.
        asked: Whether the caller named the prompt. If not, models that cannot use it ignore it.
    """
    precision = precision and usable_precision(precision)
    if is_marian(source):
        return _joined([(x, _of_marian(x, *pair, precision)) for x in read_models(source)])
    if is_converted(source):
        return _converted(Path(source), pair[0], pair[1], precision)
    config = _config_of(source)
    if config.name == HPARAMS:
        return _learned_metric(config, source, precision)
    fields = read_json(config)
    kind: Any = fields.get("model_type") if isinstance(fields, dict) else None
    family = hugging_face_checkpoint.family_of(fields if kind else {}, config)
    translates = kind in KINDS and issubclass(family.model, EncoderDecoder)
    prompted = prompt is not None and issubclass(family.model, DecoderOnly)
    accepted = f"None: {source} is a {kind!r}"
    require(prompted or not asked, "prompt", prompt, accepted)
    for name, language in zip(("source_language", "target_language"), pair, strict=True):
        require(translates or prompted or language is None, name, language, accepted)
    folder = _whole(source, config)
    # The tokenizer comes first, because its errors then come before gigabytes are read.
    if translates:
        fields, _ = hugging_face_checkpoint.read_config(folder)
        tokenizer = read_tokenizer(folder, fields)
        usual = usual_languages(folder, tokenizer)
        chosen = pair[0] or usual[0], pair[1] or usual[1]
        tokenizer.between(*chosen)
        codes = getattr(tokenizer, "languages", {})
        first = () if codes else tokenizer.target_frame.before
        search = search_of(folder, Search, fields, first, codes.values())
        model = _model(folder, precision, without=left_out(folder, fields))
        return Translator(model, tokenizer, *chosen, search)
    if family.model is ViT:
        model, size = _image_model(folder, str(kind), precision)
        channels = model.config.num_channels
        image_format = image_format_of(folder, channels, size, str(kind))
        if not model.config.num_classes:
            return ImageEmbedder(model, image_format)
        return ImageClassifier(model, labels_of(family.complete(fields)), image_format)
    if family.model is MetricModel:
        texts = TextTokenizer.read(lent(folder, TOKENIZER, "tokenizer_config.json"))
        return LearnedMetric(_model(folder, precision), texts)
    texts, template = TextTokenizer.read(folder), ChatTemplate.read(folder)
    if prompt is not None and prompt.chat and template is None:
        require(not asked, "prompt", prompt, f"one with chat=false: {source} has no chat template")
        prompt = None
    search = {}
    if issubclass(family.model, Speech | DecoderOnly):
        options = Transcription if issubclass(family.model, Speech) else Generation
        search = search_of(folder, options, hugging_face_checkpoint.read_config(folder)[0])
    model = _model(folder, precision)
    if isinstance(model, Speech):
        check_feature_extractor(folder, model.config)
        return Transcriber(model, texts, hearing_of(folder, texts, model.config), search)
    sentence_model = read_sentence_model(folder, model.config.d_model)
    if isinstance(model, DecoderOnly) and sentence_model is None:
        return CausalLM(model, texts, template, search, prompt)
    return _encoder(folder, model, texts, sentence_model)


def _encoder(
    folder: Path, model: Any, texts: TextTokenizer, sentence_model: tuple[Any, ...] | None
) -> TextEmbedder | TextScorer | PretrainedModel:
    """Return the object for an encoder: that of sentence-transformers, or one to fine-tune."""
    if sentence_model:
        pooling, embedding, lowercase = sentence_model
        return TextEmbedder(model, lowercased(texts) if lowercase else texts, pooling, embedding)
    settings = model.config
    is_scorer = settings.head == "sequence_classification" and len(settings.labels) == 1
    if is_scorer and settings.takes_pairs:
        length, lowercase = read_scorer(folder)
        return TextScorer(model, lowercased(texts) if lowercase else texts, length)
    return PretrainedModel(model, texts)


def checkpoint_folder(source: str | os.PathLike) -> Path:
    """Return the folder of a checkpoint, or its GGUF file.

    A model on the hub is downloaded if it is not in the cache.

    Args:
        source: See `load_pretrained`.

    Raises:
        ConnectionError, FileNotFoundError, ImportError, PermissionError: See `load_pretrained`.
        ValueError: If its `config.json` is broken, or of no family that is supported.
    """
    if is_gguf(source):
        if not Path(source).is_file():
            raise FileNotFoundError(f"there is no file {source}")
        return Path(source)
    return _whole(source, _config_of(source))


def _whole(source: str | os.PathLike, config: Path) -> Path:
    hugging_face_checkpoint.read_config(config.parent)  # fails before gigabytes are downloaded
    if Path(source).is_dir():
        return Path(source)
    folder = fetched(os.fspath(source), FILES)
    return folder if any(folder.glob("*.safetensors")) else fetched(os.fspath(source), [PICKLED])


def _config_of(source: str | os.PathLike) -> Path:
    """Return the path of the settings: `config.json`, or `hparams.yaml` of a COMET."""
    is_folder, names = Path(source).is_dir(), [CONFIG, HPARAMS]
    folder = Path(source) if is_folder else fetched(os.fspath(source), names)
    paths = [folder / name for name in reversed(names) if (folder / name).is_file()]
    if not paths:
        raise FileNotFoundError(f"{source} is not a checkpoint: it has no {CONFIG}")
    return paths[0]


def _learned_metric(settings: Path, source: Any, precision: str | None) -> LearnedMetric:
    """Load a COMET, whose tokenizer and `config.json` are those of its encoder."""
    encoder = lent(settings.parent, encoder_of(settings.parent), CONFIG)
    texts = TextTokenizer.read(encoder)
    folder = Path(source) if Path(source).is_dir() else fetched(os.fspath(source), COMET)
    model = read_metric(folder, encoder, precision if precision in FLOATS else "float32")
    return LearnedMetric(_narrow(model, precision, folder), texts)


def _model(folder: Path, precision: str | None, without: Iterable[int] = ()) -> keras.Model:
    """Return the model of a folder, in which the tokens in `without` have no probability."""
    dtype = precision if precision in FLOATS else "float32"
    blocks = precision if precision in BLOCKS else None
    model = hugging_face_checkpoint.read_model(folder, dtype, blocks)
    if without:
        weights, path = {x.path: x for x in model.weights}, "output_bias/bias"
        where = f"renormalize_logits of {folder}"
        require(path in weights, where, True, "false or null: the model has no bias of logits")
        value = keras.ops.convert_to_numpy(keras.ops.cast(weights[path], "float32")).copy()
        value[list(without)] = NO_LOGIT
        weights[path].assign(value)
    return _narrow(model, precision, folder)


def _image_model(folder: Path, kind: str, precision: str | None) -> tuple[ViT, tuple[int, int]]:
    """Return the ViT of a folder for images of the size that its processor makes, and the size."""
    model: Any = _model(folder, precision if precision in FLOATS else None)
    size = image_size_of(folder, model.config, kind)
    model = model if size == model.config.image_size else resized(model, size)
    return _narrow(model, precision, folder), size


def _converted(
    folder: Path, source_language: str | None, target_language: str | None, precision: str | None
) -> Translator | Transcriber:
    """Load a model that CTranslate2 has converted."""
    converted = Converted.read(folder)
    dtype = precision if precision in FLOATS else "float32"
    is_speech = converted.kind == "whisper"
    for name, language in dict(
        source_language=source_language, target_language=target_language
    ).items():
        require(not is_speech or language is None, name, language, f"None: {folder} is a Whisper")
    # The tokenizer comes first, because its errors then come before the weights are read.
    if is_speech:
        check_feature_extractor(folder, converted.config)
        texts = text_tokenizer_of(converted)
        hearing = hearing_of_converted(converted.facts, texts, converted.config)
        return Transcriber(_narrow(converted.model(dtype), precision, folder), texts, hearing)
    tokenizer = tokenizer_of(converted)
    usual = usual_languages(folder, tokenizer)
    languages = source_language or usual[0], target_language or usual[1]
    tokenizer.between(*languages)
    return Translator(_narrow(converted.model(dtype), precision, folder), tokenizer, *languages)


def _of_marian(
    marian: MarianModel,
    source_language: str | None,
    target_language: str | None,
    precision: str | None,
) -> Translator:
    dtype, folder = precision if precision in FLOATS else "float32", marian.file.path.parent
    if marian.is_ours:
        model, tokenizer, facts = marian.restored(dtype)
        source_language = source_language or facts.get("source_language")
        target_language = target_language or facts.get("target_language")
        options = facts.get("search"), facts.get("directions") or ()
        model = _narrow(model, precision, folder)
        translator = Translator(model, tokenizer, source_language, target_language, *options)
        translator.shortlist = marian.shortlist(tokenizer)
        return translator
    tokenizer, search = marian.tokenizer, marian.search
    shortlist = marian.shortlist(tokenizer)
    tokenizer.between(source_language, target_language)
    model = _narrow(marian.model(dtype), precision, folder)
    translator = Translator(model, tokenizer, source_language, target_language, search)
    translator.shortlist = shortlist
    return translator


def _joined(members: list[tuple[MarianModel, Translator]]) -> Translator:
    """Return the only translator, or the ensemble that Marian makes of several."""
    (marian, first), *others = members
    if not others:
        return first
    return ensemble([x for _, x in members], marian.decoder.get("weights"), normalized=False)


def _narrow(model: Any, precision: str | None, folder: Path) -> Any:
    return model if precision in FLOATS else in_precision(model, precision, folder)
