"""Preparation of a training run of a translator: its text, tokenizer and config."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import TransformerConfig, require
from keras_transformer.data.built_in_corpora import Corpus, load_corpus
from keras_transformer.data.cleaning import are_exchanged, clean
from keras_transformer.data.formats import check_sides
from keras_transformer.data.text_files import read_pairs
from keras_transformer.models import Transformer
from keras_transformer.text import MarianTokenizer, SentencePieceTokenizer, Tokenizer
from keras_transformer.text.context import SEPARATOR, reads_context
from keras_transformer.text.glossary import TERM_TAGS, reads_terms
from keras_transformer.text.marian_tokenizer import tag_of
from keras_transformer.training.corpus_options import checked
from keras_transformer.training.document_pairs import with_context
from keras_transformer.training.mixture import read_corpora
from keras_transformer.training.noise import with_noise
from keras_transformer.training.prefix_pairs import with_prefixes
from keras_transformer.training.recipe import TranslationRecipe
from keras_transformer.training.runs import say
from keras_transformer.training.terms import with_terms
from keras_transformer.translate.translator import Translator

Pairs = list[tuple[str, str]]
OF_TRAINING = ("dropout", "layer_drop", "guided_alignment")  # config fields that a run may change


@dataclasses.dataclass(frozen=True)
class RunSetup:
    """Setup of a run: tokenizer, model class, config and languages.

    Args:
        start: Translator that the run starts from; None: a new model is trained.
        family: Class of the model.
        tokenizer: Tokenizer of the new translator.
        config: Config of the model.
        languages: Codes of the source and the target language; None: unknown, or several.
        search: Default search options of the new translator.
        directions: Language pairs of a multilingual translator; empty for one pair.
    """

    start: Translator | None
    family: type
    tokenizer: Tokenizer
    config: Any
    languages: tuple[str | None, str | None]
    search: dict[str, Any]
    directions: tuple[tuple[str, str], ...] = ()

    def translator(self, model: keras.Model) -> Translator:
        """Return a translator with a model of this run."""
        return Translator(model, self.tokenizer, *self.languages, self.search, self.directions)


def read_text(
    options: TranslationRecipe, data_folder: Path | None, files: dict[str, list[Path] | None]
) -> tuple[Corpus, Pairs]:
    """Return the corpus and its cleaned training pairs.

    The options decide whether the pairs have context, noise or terms.

    Args:
        options: Options of the run.
        data_folder: Folder with the files of the corpora that the options name.
        files: Files of the user's own text, by part: "train", "validation", "test".

    Raises:
        ValueError: If a file is missing or broken, or no pair is left.
    """
    cleaning: dict[str, Any] = dict(max_words=options.max_words)
    cleaning["max_length_ratio"] = options.max_length_ratio
    if options.corpora:
        for name, paths in files.items():
            accepted = "left out: the recipe names its corpora"
            require(not paths, f"--{name}", [str(x) for x in paths or ()], accepted)
        tables = checked(
            options.corpora, options.temperature, options.source_language, options.target_language
        )
        settings = data_folder or Path(), options.temperature, options.train_size
        context, noise, seed = options.context_sentences, options.noise, options.seed
        prefixes = options.prefix_pairs
        corpus = read_corpora(tables, *settings, context, noise, seed, prefixes, **cleaning)
        pairs = corpus.train
    else:
        corpus = _corpus(options, data_folder, files)
        if size := options.context_sentences:
            accepted = f"0 for the corpus {corpus.name}, which has no documents"
            require(corpus.has_documents, "context_sentences", size, accepted)
            held_out = with_context(corpus.validation, size, alone=False)
            train = with_context(corpus.train, size)
            corpus = dataclasses.replace(corpus, train=train, validation=held_out)
        pairs, report = clean(corpus.train, **cleaning)
        if not pairs:
            raise ValueError(f"the training corpus is empty after cleaning: {report}")
        say(f"corpus {corpus.name}: {report}")
        for name, held_out in {"validation": corpus.validation, **corpus.tests}.items():
            if are_exchanged(held_out, pairs):
                warnings.warn(
                    f"sources of the {name} text have the words of training targets: are its sides "
                    "exchanged?",
                    stacklevel=2,
                )
        pairs = with_noise(pairs, options.noise, options.seed)
        pairs = with_prefixes(pairs, options.prefix_pairs, options.seed)
    if options.inline_terms:
        pairs = with_terms(pairs, options.inline_terms, options.seed)
    return corpus, pairs


def prepare_run(
    options: TranslationRecipe, corpus: Corpus, pairs: Pairs, start_from: Path | None
) -> RunSetup:
    """Return the tokenizer, model class, config and languages of a run.

    The tokenizer is trained on the pairs, or loaded with the translator that the run starts from.

    Raises:
        ValueError: If an option does not fit the corpus or the translator.
    """
    languages = corpus.source_language, corpus.target_language
    if corpus.directions:
        languages = None, None
    search: dict[str, Any] = {"protect": True} if options.protect else {}
    if start_from is None:
        if options.lora_rank:
            raise ValueError("lora_rank needs --start-from: LoRA trains an existing model further")
        tokenizer = _tokenizer(options, corpus, pairs)
        config = _config(options, tokenizer)
        directions = tuple(dict.fromkeys(corpus.directions.values()))
        return RunSetup(None, Transformer, tokenizer, config, languages, search, directions)
    start = Translator.load(start_from, "float32")
    _check_start(options, start.tokenizer, start_from)
    if corpus.directions:  # a tag in each source names its target language
        tokenizer = _tokenizer_for(start.tokenizer, corpus.directions.values())
    else:
        languages = start.source_language or languages[0], start.target_language or languages[1]
        tokenizer = start.tokenizer.between(*languages)
    config = dataclasses.replace(start.model.config, **_changes(options, start.model.config))
    if getattr(config, "guided_alignment", 0):
        options.check_guided("for this start_from, or model.guided_alignment=0")
    directions = tuple(dict.fromkeys([*start.directions, *corpus.directions.values()]))
    search = {**start.search, **search}
    return RunSetup(start, type(start.model), tokenizer, config, languages, search, directions)


def _check_start(options, tokenizer, start_from):
    """Raise ValueError if the tokenizer lacks symbols that the options write into the text."""
    needs = {"context_sentences": reads_context, "inline_terms": reads_terms}
    for name, reads in needs.items():
        accepted = f"a translator that was trained with {name}"
        can_read = not getattr(options, name) or reads(tokenizer)
        require(can_read, "start_from", str(start_from), accepted)


def _changes(options, config):
    """Return the config fields of `OF_TRAINING` that the recipe sets."""
    changes = {name: options.model[name] for name in OF_TRAINING if name in options.model}
    known = {field.name for field in dataclasses.fields(config)}
    for name in [x for x in changes if x not in known]:
        accepted = f"0 for {type(config).__name__}, which has no such field"
        require(not changes.pop(name), f"model.{name}", options.model[name], accepted)
    return changes


def _tokenizer_for(tokenizer, directions):
    """Return the tokenizer of `start_from` for sources that begin with the tag of a language.

    Raise ValueError if it lacks the tag of a target language.
    """
    known = isinstance(tokenizer, SentencePieceTokenizer | MarianTokenizer)
    languages = tokenizer.target_languages if known else ()
    for _, target in directions:
        if target not in languages:
            raise ValueError(
                f"start_from must be a model that knows {target} by its tag {tag_of(target)} "
                f"before the source; it knows {', '.join(languages) or 'no tags'}"
            )
    return tokenizer.between(None, None)


def _tokenizer(options, corpus, pairs):
    """Train the tokenizer of a run on its training pairs."""
    directions = corpus.directions.values()
    sources, targets = zip(*pairs, strict=True)
    symbols = [*corpus.symbols, *(TERM_TAGS if options.inline_terms else ())]
    symbols += [SEPARATOR] if options.context_sentences else []
    return SentencePieceTokenizer.train(
        sources,
        targets,
        vocab_size=options.vocab_size,
        kind=options.tokenizer,
        shared=options.shared_vocabulary,
        byte_fallback=options.byte_fallback,
        lowercase=options.lowercase,
        source_languages=[*dict.fromkeys(source for source, _ in directions)],
        target_languages=[*dict.fromkeys(target for _, target in directions)],
        symbols=symbols,
    )


def _config(options, tokenizer):
    """Return the config of a new model for a tokenizer."""
    shared = {"share_embeddings": options.shared_vocabulary}
    vocabulary = dict(
        source_vocab_size=tokenizer.source_vocab_size,
        target_vocab_size=tokenizer.target_vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    return TransformerConfig.from_dict(vocabulary | shared | options.model)


def _corpus(options, data_folder, files):
    """Return the corpus of a run: a built-in one, or text files."""
    languages = dict(
        source_language=options.source_language, target_language=options.target_language
    )
    if options.corpus != "files" and not files["train"]:
        return load_corpus(options.corpus, data_folder, train_size=options.train_size, **languages)
    pairs = {}
    for name, paths in files.items():
        if name != "test" and not paths:
            raise ValueError(f"--{name} is required to train on your own text files")
        if paths:
            check_sides(f"--{name}", paths)
        if paths and options.context_sentences:
            accepted = "two text files: others have no empty lines between documents"
            require(len(paths) == 2, f"--{name}", [str(x) for x in paths], accepted)
        pairs[name] = read_pairs(*paths, **languages) if paths else []
    tests = {"test": pairs["test"]} if pairs["test"] else {}
    train_pairs = pairs["train"][: options.train_size]
    sides = options.source_language, options.target_language
    return Corpus("files", *sides, train_pairs, pairs["validation"], tests, has_documents=True)
