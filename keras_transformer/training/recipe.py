"""Options of a training run of a translator, with their defaults and ranges."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_transformer.config import TransformerConfig, check_names, check_types, known, require
from keras_transformer.training.corpus_options import checked

FOLDER = Path(__file__).parent / "recipes"  # folder of the built-in recipes
MONITORS = ("val_bleu", "val_loss")
DECAYS = ("inverse_sqrt", "linear", "cosine", "cooldown")
_TABLES = ("model", "distribution")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


@dataclass(frozen=True)
class Distribution:
    """Options of a recipe's table `distribution`: the arguments of `distribution.distribute`."""

    data: int = -1
    model: int = 1
    shard_weights: bool = False


@dataclass(frozen=True)
class TranslationRecipe:
    """Options of `training.translation`; a recipe file sets them.

    Args:
        corpus: Name of a corpus of `data.built_in_corpora.load_corpus`, or "files" for text files
            that the command names.
        corpora: Several corpora in place of `corpus`: tables of
            `training.corpus_options.CorpusOptions`.
        temperature: T of the `corpora`, from 1 (off) to 1,000, if none has a weight: the share of a
            corpus of n pairs in an epoch is proportional to n^(1/T), so small ones occur more
            often.
        source_language: Language code such as "en".
        target_language: Language code such as "de".
        train_size: Maximum number of training pairs, or of pairs of each of the `corpora`; None:
            all. For "grammar" and "documents", see `load_corpus`.
        max_words: Maximum words per side of a training pair; longer pairs are dropped.
        max_length_ratio: Maximum ratio of the word counts of the sides; other pairs are dropped.
        tokenizer: "bpe" or "unigram".
        vocab_size: Maximum number of pieces, rounded up to a multiple of 8.
        shared_vocabulary: Whether both languages share one vocabulary and one token embedding.
        byte_fallback: Whether unknown characters are encoded as bytes, so that nothing is lost.
        lowercase: Whether to fold case.
        subword_sampling: Rate of BPE-dropout, or alpha of unigram sampling, in training; 0: off.
        inline_terms: Share of the training sources that carry translations of some of their words,
            so that the model learns to use a glossary, see `training.terms.with_terms`; 0: none.
        noise: Share of the training pairs that are changed as people type and paste text, such as
            0.2, see `training.noise.with_noise`; 0: none. It excludes `context_sentences`.
        prefix_pairs: Share of the training pairs of which a prefix is added, for live translation,
            such as 0.5, see `training.prefix_pairs.with_prefixes`; 0: none. It excludes
            `context_sentences`.
        context_sentences: Number of previous sentences of its document with which each sentence is
            read and translated, see `text.context.in_context`; an empty line in both text files
            ends a document. Each sentence also occurs alone. 0: none.
        model: Fields of `TransformerConfig` other than vocabulary sizes and special ids. A run that
            starts from a translator keeps that model's fields, except for `dropout`, `layer_drop`
            and `guided_alignment` if `model` sets them.
        tokens_per_batch: Maximum tokens per side of a batch, padding included.
        num_buckets: Maximum number of batch shapes.
        packed_length: Length of rows that several pairs share, at most `tokens_per_batch`; all
            batches then have one shape and little padding. Longer pairs are left out. None: one
            pair per row, in `num_buckets` shapes.
        epochs: Maximum passes over the training data.
        peak_learning_rate: Peak of the warmup schedule; None: the paper's
            d_model^-0.5 warmup^-0.5.
        warmup_steps: Updates until the peak.
        decay: Decay after the peak: "inverse_sqrt" (the paper); or "linear", "cosine" or "cooldown"
            to zero at the end of the last epoch, see `WarmupSchedule`.
        clip_norm: Maximum norm of the gradient of all weights; a longer gradient is scaled down to
            it (Pascanu et al. 2013, algorithm 1). None: no limit.
        weight_decay: Share of the weights that is subtracted in each update, times the learning
            rate (Loshchilov and Hutter 2019, algorithm 2), in [0, 1); biases and the weights of
            norms are excluded.
        label_smoothing: Label smoothing in [0, 1).
        r_drop: Weight of the divergence of two passes with different dropout (R-Drop, Liang et al.
            2021), such as 5, which doubles the time of a step; 0: one pass.
        optimizer_state: Dtype of Adam's moments: "float32", or "bfloat16" in half the memory.
        gradient_accumulation: Batches per update.
        lora_rank: Rank of the LoRA products, if a run that starts from a translator trains only
            these; 0: all weights are trained.
        precision: Keras dtype policy: "float32", "mixed_bfloat16" or "mixed_float16".
        remat: Whether blocks are computed again in the backward pass, which saves memory.
        monitor: "val_loss" or "val_bleu", for early stopping.
        patience: Epochs without a better `monitor` before training stops; None: never.
        bleu_every: Epochs between beam search translations of the validation set; 0: never.
        checkpoint_every: Batches between saves of the training state inside an epoch; 0: it is
            saved at the end of each epoch only.
        average_last: Number of last checkpoints whose weights are averaged at the end.
        ema_decay: Decay per update of an exponential moving average of the weights (Polyak and
            Juditsky 1992; Tarvainen and Valpola 2017, equation 1), such as 0.999, in [0, 1); in
            update n it is at most n / (n + 9). The average is saved in place of the mean of the
            last checkpoints; validation during training does not use it. 0: none.
        beam_size: Beam size of the translations whose quality training measures.
        length_penalty: Length penalty of these translations.
        protect: Whether the translator copies URLs, addresses, numbers and tags by default, see
            `search.Search`. A run that starts from such a translator keeps this default.
        seed: Seed of weights, dropout, order and sampling.
        distribution: Arguments of `distribution.distribute`, such as {"data": -1, "model": 2};
            empty: one device; in a run of several processes, one device per process.
    """

    corpus: str = "grammar"
    corpora: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    temperature: float = 1.0
    source_language: str = "en"
    target_language: str = "de"
    train_size: int | None = None
    max_words: int = 250
    max_length_ratio: float = 4.0
    tokenizer: str = "bpe"
    vocab_size: int = 8000
    shared_vocabulary: bool = True
    byte_fallback: bool = True
    lowercase: bool = False
    subword_sampling: float = 0.0
    inline_terms: float = 0.0
    noise: float = 0.0
    prefix_pairs: float = 0.0
    context_sentences: int = 0
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    tokens_per_batch: int = 4096
    num_buckets: int = 6
    packed_length: int | None = None
    epochs: int = 20
    peak_learning_rate: float | None = None
    warmup_steps: int = 4000
    decay: str = "inverse_sqrt"
    clip_norm: float | None = None
    weight_decay: float = 0.0
    label_smoothing: float = 0.1
    r_drop: float = 0.0
    optimizer_state: str = "float32"
    gradient_accumulation: int = 1
    lora_rank: int = 0
    precision: str = "float32"
    remat: bool = False
    monitor: str = "val_loss"
    patience: int | None = None
    bleu_every: int = 0
    checkpoint_every: int = 0
    average_last: int = 5
    ema_decay: float = 0.0
    beam_size: int = 4
    length_penalty: float = 0.6
    protect: bool = False
    seed: int = 0
    distribution: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        check_types(type(self), dataclasses.asdict(self), "")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            require(value is None or value >= least, name, value, f"at least {least}")
        for name, (accepted, is_accepted) in _RANGES.items():
            require(is_accepted(getattr(self, name)), name, getattr(self, name), accepted)
        for name, choices in _CHOICES.items():
            require(getattr(self, name) in choices, name, getattr(self, name), f"one of {choices}")
        checked(self.corpora, self.temperature, self.source_language, self.target_language)
        check_names(TransformerConfig, self.model, "fields of model")
        check_types(TransformerConfig, self.model, "model.")
        check_names(Distribution, self.distribution, "fields of distribution")
        check_types(Distribution, self.distribution, "distribution.")
        if self.packed_length is not None:
            accepted = f"from 1 to tokens_per_batch={self.tokens_per_batch}"
            in_range = 1 <= self.packed_length <= self.tokens_per_batch
            require(in_range, "packed_length", self.packed_length, accepted)
        for name in ("noise", "prefix_pairs"):
            value = getattr(self, name)
            require(not (self.context_sentences and value), name, value, "0 with context_sentences")
        if self.model.get("guided_alignment"):
            self.check_guided("with model.guided_alignment")
        if self.monitor == "val_bleu" and self.patience is not None:
            require(self.bleu_every >= 1, "bleu_every", self.bleu_every, "at least 1 for val_bleu")

    def check_guided(self, when: str) -> None:
        """Raise ValueError if an option is set that does not work with guided alignment.

        Args:
            when: End of the message, which says when the alignment is guided.

        Raises:
            ValueError: If such an option is set.
        """
        for name in ("subword_sampling", "remat"):
            value = getattr(self, name)
            require(not value, name, value, f"0 or false {when}")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TranslationRecipe:
        """Make a recipe from its options; one that is unknown or out of range raises ValueError."""
        return cls(**known(cls, values, "recipe options"))

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values, for JSON."""
        return dataclasses.asdict(self)


_LEAST = dict.fromkeys(
    ("epochs", "warmup_steps", "gradient_accumulation", "average_last", "beam_size"), 1
)
_LEAST |= dict.fromkeys(("vocab_size", "tokens_per_batch", "num_buckets", "max_words"), 1)
_LEAST |= {"train_size": 1, "patience": 1, "context_sentences": 0}
_LEAST |= dict.fromkeys(
    ("checkpoint_every", "bleu_every", "lora_rank", "length_penalty", "r_drop", "seed"), 0
)
_RANGES = {
    "max_length_ratio": ("at least 1", lambda x: x >= 1),
    "subword_sampling": ("in [0, 1)", lambda x: 0 <= x < 1),
    "ema_decay": ("in [0, 1)", lambda x: 0 <= x < 1),
    "inline_terms": ("in [0, 1]", lambda x: 0 <= x <= 1),
    "noise": ("in [0, 1]", lambda x: 0 <= x <= 1),
    "prefix_pairs": ("in [0, 1]", lambda x: 0 <= x <= 1),
    "label_smoothing": ("in [0, 1)", lambda x: 0 <= x < 1),
    "peak_learning_rate": ("above 0 or none", lambda x: x is None or x > 0),
    "clip_norm": ("above 0 or none", lambda x: x is None or x > 0),
    "weight_decay": ("in [0, 1)", lambda x: 0 <= x < 1),
}
_CHOICES = {
    "optimizer_state": ("float32", "bfloat16"),
    "tokenizer": ("bpe", "unigram"),
    "monitor": MONITORS,
    "decay": DECAYS,
    "precision": PRECISIONS,
}


# Fields that are set from the tokenizer and from `shared_vocabulary`.
_OF_TOKENIZER = [f"model.{name}" for name in ("share_embeddings", "pad_id", "bos_id", "eos_id")]
_SPELLED = {"None": "none", "True": "true", "False": "false"}


def names() -> list[str]:
    """Return the names of the built-in recipes."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def settings() -> list[str]:
    """Return "option=default" of the options of a recipe and of its tables.

    `corpora`, the fields of `model` without a default, and those of `_OF_TOKENIZER` are left out.
    """
    tables = {"model.": TransformerConfig, "distribution.": Distribution}
    return [
        f"{table}{field.name}={_SPELLED.get(str(field.default), field.default)}"
        for table, kind in {"": TranslationRecipe, **tables}.items()
        for field in dataclasses.fields(kind)
        if field.default is not dataclasses.MISSING and f"{table}{field.name}" not in _OF_TOKENIZER
    ]


def read_recipe(recipe: str, changes: list[str] | None = None) -> TranslationRecipe:
    """Read a recipe and change some of its options.

    Args:
        recipe: Name of a built-in recipe, or path of a TOML file.
        changes: Changes "option=value", "model.option=value" or "distribution.option=value", with
            values in TOML; "none" is None, and other values are read as text.

    Raises:
        ValueError: If a recipe or an option is unknown, an option is out of range, or a file is not
            TOML.
    """
    path = Path(recipe) if recipe.endswith(".toml") else FOLDER / f"{recipe}.toml"
    if not path.is_file():
        missing = ", which does not exist" if recipe.endswith(".toml") else ""
        accepted = f"one of {names()} or a .toml file"
        raise ValueError(f"recipe must be {accepted}, got {recipe!r}{missing}")
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested too deeply
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    for change in changes or []:
        name, equals, text = change.partition("=")
        require(equals, "a change", change, "option=value")
        table, _, field = name.rpartition(".")
        accepted = ", ".join(f"{table}.option=value" for table in _TABLES)
        require(table in ("", *_TABLES), "a change", change, f"option=value, {accepted}")
        target = values.setdefault(table, {}) if table else values
        if isinstance(target, dict):  # any other type raises an error below
            target[field] = _value(text)
    return TranslationRecipe.from_dict(values)


def _value(text: str) -> Any:
    if text == "none":
        return None  # TOML has no null
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, too large a number, or nested too deeply
        return text
