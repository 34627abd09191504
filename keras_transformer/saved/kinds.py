"""Kinds of saved folders, with the class that loads each, and its command if there is one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.saved.uses import ANSWER, CLASSIFY, FILL, PARSE, REGRESS, TAG, Use


@dataclass(frozen=True)
class Kind:
    """A kind of saved folder: declared here for messages, model cards, commands and the server.

    Args:
        what: Name of the kind in messages.
        loader: Name of the class of this package whose `load` reads such a folder.
        command: Name of the command that runs it; None: there is no command.
        task: The "task" in its `config.json`.
        tag: Hugging Face's name of the task; None: there is no such name.
        example: Rest of the command line, after the folder, in an example of the command.
        heads: Heads of an encoder that make a folder one of this kind, whatever its task.
        any_head: Whether an encoder may have any head.
        one_label: Whether the head must have a single label.
        problem: `problem_type` that the model must have; a model with it is of no other kind,
            except kinds with `any_head`. None: any `problem_type`.
        use: Declaration from which the command and the route are made; None: both have code of
            their own.
    """

    what: str
    loader: str
    command: str | None
    task: str
    tag: str | None = None
    example: str = "< texts.txt"
    heads: tuple[str, ...] = ()
    any_head: bool = False
    one_label: bool = False
    problem: str | None = None
    use: Use | None = None

    @property
    def users(self) -> str:
        """The class and the command for such a folder, as a phrase."""
        return self.loader + (f" and the command {self.command}" if self.command else "")


TRANSLATION = "translation"  # task of folders whose config names no task
# If an encoder is of several kinds, the most specific kind comes first.
KINDS = (
    Kind("translator", "Translator", "translate", TRANSLATION, "translation"),
    Kind(
        "language model",
        "CausalLM",
        "generate",
        "causal_lm",
        "text-generation",
        '"The beginning of a text"',
    ),
    Kind(
        "transcriber",
        "Transcriber",
        "transcribe",
        "speech",
        "automatic-speech-recognition",
        "recording.wav",
    ),
    Kind(
        "synthesizer",
        "Synthesizer",
        "speak",
        "speech_synthesis",
        "text-to-speech",
        '"A text" -o sound.wav',
    ),
    Kind("reward model", "Rewarder", None, "reward"),
    Kind("learned metric", "LearnedMetric", None, "metric"),
    Kind(
        "image classifier",
        "ImageClassifier",
        "see",
        "image_classification",
        "image-classification",
        "image.png",
    ),
    Kind(
        "image encoder",
        "ImageEmbedder",
        "see",
        "image_embedding",
        "image-feature-extraction",
        "image.png",
    ),
    Kind("parser", "Parser", "parse", "parsing", None, "< sentences.txt", use=PARSE),
    Kind(
        "text scorer",
        "TextScorer",
        "rank",
        "text_scoring",
        "text-ranking",
        '"A query" < texts.txt',
        heads=("sequence_classification",),
        one_label=True,
    ),
    Kind(
        "text classifier",
        "TextClassifier",
        "classify",
        "text_classification",
        "text-classification",
        heads=("sequence_classification",),
        use=CLASSIFY,
    ),
    Kind(
        "token regressor",
        "TokenRegressor",
        "regress",
        "token_regression",
        heads=("token_classification",),
        one_label=True,
        problem="regression",
        use=REGRESS,
    ),
    Kind(
        "token tagger",
        "TokenTagger",
        "tag",
        "token_classification",
        "token-classification",
        heads=("token_classification",),
        use=TAG,
    ),
    Kind(
        "question answerer",
        "QuestionAnswerer",
        "answer",
        "question_answering",
        "question-answering",
        "< questions.tsv",
        heads=("span_extraction",),
        use=ANSWER,
    ),
    Kind(
        "masked language model",
        "MaskFiller",
        "fill",
        "masked_language_model",
        "fill-mask",
        heads=("masked_lm", "pretraining"),
        use=FILL,
    ),
    Kind(
        "text encoder",
        "TextEmbedder",
        "embed",
        "text_embedding",
        "feature-extraction",
        any_head=True,
    ),
)


def kind_of(loader: str) -> Kind:
    """Return the kind that the class of this name loads."""
    return next(kind for kind in KINDS if kind.loader == loader)


def kinds_of(config: Mapping[str, Any]) -> list[Kind]:
    """Return the kinds of a saved folder with this `config.json`; empty if no class loads it.

    The head of an encoder determines its kinds, whatever its task. A language model with a prompt
    for translations is a translator, too.
    """
    model = config["model"]
    if isinstance(head := model.get("head"), str):
        labels = model.get("labels")
        one_label = isinstance(labels, list) and len(labels) == 1
        return kinds_with(head, one_label, model.get("problem_type"))
    task = config.get("task") or TRANSLATION
    tasks = (TRANSLATION, task) if config.get("prompt") else (task,)
    return [x for x in KINDS if not x.heads and x.task in tasks]


def kinds_with(head: str, one_label: bool = False, problem: str | None = None) -> list[Kind]:
    """Return the kinds of an encoder with this head.

    Args:
        head: The head, one of `models.task_heads.HEADS`.
        one_label: Whether the head has a single label.
        problem: The model's `problem_type`, or None.
    """
    fitting = [kind for kind in KINDS if head in kind.heads or kind.any_head]
    special = [kind for kind in fitting if kind.problem and kind.problem == problem]
    plain = [kind for kind in fitting if not kind.problem and (kind.any_head or not special)]
    return [kind for kind in special + plain if one_label or not kind.one_label]


def require_kind(what: str, config: Mapping[str, Any], folder: str | os.PathLike) -> None:
    """Raise ValueError if a folder is of another kind; the message names its class and command.

    Args:
        what: Name of the required kind; if no kind in `KINDS` has it, any folder is accepted.
        config: The folder's `config.json`.
        folder: The folder, for the message.
    """
    kinds = kinds_of(config)
    if what in {kind.what for kind in kinds} or what not in {kind.what for kind in KINDS}:
        return
    if kinds:
        article = "an" if kinds[0].what[0] in "aeiou" else "a"
        problem = f"{article} {kinds[0].what}: use {kinds[0].users}"
    elif config.get("task") == "pretrained":
        problem = "a pretrained model without a head: `train --task` starts from it"
    else:
        problem = f"a model of task {config.get('task')!r}"
    raise ValueError(f"{folder} is not a saved {what} but {problem}")
