"""Kinds of saved folders, with the object and the command for each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A kind of saved folder.

    Args:
        what: Its name in messages.
        loader: Class of this package whose `load` reads it.
        command: Command that runs it; None: there is none.
        task: The "task" in its `config.json`; None: it has none.
        heads: Heads of the encoders that it can hold, which count instead of a task.
        any_head: Whether an encoder may have any head.
        one_label: Whether its head must have a single label.
    """

    what: str
    loader: str
    command: str | None = None
    task: str | None = None
    heads: tuple[str, ...] = ()
    any_head: bool = False
    one_label: bool = False

    @property
    def users(self) -> str:
        """The object and the command for such a folder."""
        return self.loader + (f" and the command {self.command}" if self.command else "")


# For an encoder that fits several, the most specific comes first.
KINDS = (
    Kind("translator", "Translator", "translate"),
    Kind("language model", "CausalLM", "generate", "causal_lm"),
    Kind("transcriber", "Transcriber", "transcribe", "speech"),
    Kind("synthesizer", "Synthesizer", "speak", "speech_synthesis"),
    Kind("reward model", "Rewarder", None, "reward"),
    Kind("image classifier", "ImageClassifier", "see", "image_classification"),
    Kind("image encoder", "ImageEmbedder", "see", "image_embedding"),
    Kind("parser", "Parser", "parse", "parsing"),
    Kind("text scorer", "TextScorer", "rank", heads=("sequence_classification",), one_label=True),
    Kind("text classifier", "TextClassifier", "classify", heads=("sequence_classification",)),
    Kind("token tagger", "TokenTagger", "tag", heads=("token_classification",)),
    Kind("question answerer", "QuestionAnswerer", "answer", heads=("span_extraction",)),
    Kind("masked language model", "MaskFiller", "fill", heads=("masked_lm", "pretraining")),
    Kind("text encoder", "TextEmbedder", "embed", any_head=True),
)


def kinds_of(config: Mapping[str, Any]) -> list[Kind]:
    """Return the kinds that a `config.json` of a saved folder fits; none if it is of no use alone.

    The weights are not read. An encoder is known by its head, whatever its task.
    """
    if isinstance(head := config["model"].get("head"), str):
        labels = config["model"].get("labels")
        return kinds_with(head, isinstance(labels, list) and len(labels) == 1)
    return [x for x in KINDS if not x.heads and not x.any_head and x.task == config.get("task")]


def kinds_with(head: str, one_label: bool = False) -> list[Kind]:
    """Return the kinds of an encoder with this head, which has a single label or several."""
    fitting = [kind for kind in KINDS if head in kind.heads or kind.any_head]
    return [kind for kind in fitting if one_label or not kind.one_label]


def require_kind(what: str, config: Mapping[str, Any], folder: str | os.PathLike) -> None:
    """Raise ValueError, with the object and the command that fit, if a folder is of another kind.

    Args:
        what: Name of the kind; if it is none of `KINDS`, any folder is accepted.
        config: The folder's `config.json`.
        folder: The folder, for the message.
    """
    found = kinds_of(config)
    if what in {kind.what for kind in found} or what not in {kind.what for kind in KINDS}:
        return
    if found:
        article = "an" if found[0].what[0] in "aeiou" else "a"
        problem = f"{article} {found[0].what}: use {found[0].users}"
    elif config.get("task") == "pretrained":
        problem = "a pretrained model without a head: a script of training/ starts from it"
    else:
        problem = f"a model of task {config.get('task')!r}"
    raise ValueError(f"{folder} is not a saved {what} but {problem}")
