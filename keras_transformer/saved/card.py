"""Model cards: the `README.md` of a saved folder, in Hugging Face's form (Mitchell et al. 2019)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_transformer.saved.kinds import KINDS, TRANSLATION
from keras_transformer.system.files import replacing

CARD = "README.md"
_END = re.compile(
    r"<!-- Written by keras_transformer\. .*SHA-256 of the text above: (\w{64}) -->\n"
)
MEASURES = ("accuracy", "bleu", "chrf", "exact_match", "f1", "loss", "perplexity", "ter")
MISSING = "[More Information Needed]"  # as in Hugging Face's template
LIMITS = """\
- Only what is listed under Evaluation was measured. How the model does on other data is not known.
- Unless a number above says so, gender bias, toxic output and other harms were not measured.
  `docs/responsible.md` of keras_transformer has ways to measure some of them.
- Intended uses and their limits: {missing}
- Licences of the data and of the model: {missing}"""


@dataclass(frozen=True)
class Run:
    """Facts of a training run for its model card.

    Args:
        command: The command line.
        script: The module of the training script.
        options: Options of the run, plain values.
        files: Name, number of bytes and SHA-256 of each data file; None in place of a SHA-256 that
            was not computed.
        versions: Versions of the packages, by name.
        metrics: Content of `metrics.json`: measures by test set, and other numbers by name.
    """

    command: str
    script: str
    options: Mapping[str, Any]
    files: Sequence[tuple[str, int, str | None]] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


def write_card(
    folder: str | os.PathLike,
    config: Mapping[str, Any],
    run: Run | None = None,
    into: str | os.PathLike | None = None,
) -> bool:
    """Write the model card of a saved folder, unless the folder has one that somebody edited.

    The last line of a card holds the SHA-256 of its text. A card that lacks this line, or has
    another SHA-256, was edited and is kept.

    Args:
        folder: Folder of the model.
        config: Its `config.json`.
        run: The run that trained the model; None: it is unknown, which the card says.
        into: Folder to write the card into, such as the one that `updating` yields; None: `folder`.

    Returns:
        Whether the card was written.
    """
    path = Path(folder, CARD)
    if path.exists() and not _is_ours(path):
        return False
    text = card_text(Path(folder).resolve().name, config, run)
    end = f"An edited card is kept. SHA-256 of the text above: {_digest(text)}"
    with replacing(Path(into or folder, CARD)) as temporary:
        text = f"{text}<!-- Written by keras_transformer. {end} -->\n"
        temporary.write_text(text, "utf-8", newline="\n")
    return True


def card_text(name: str, config: Mapping[str, Any], run: Run | None = None) -> str:
    """Return the text of a model card; `config` and `run` are those of `write_card`."""
    task = config.get("task") or TRANSLATION
    used = TRANSLATION if config.get("prompt") else task
    kind = next((kind for kind in KINDS if kind.task == used), None)
    tag = kind and kind.tag
    languages = [
        x.split("_")[0].lower()
        for x in (config.get("source_language"), config.get("target_language"))
        if x
    ]
    metrics = run.metrics if run else {}
    about: dict[str, Any] = {"library_name": "keras_transformer"}
    about |= {"tags": ["keras", "transformer"]}
    about |= {"pipeline_tag": tag} if tag else {}
    about |= {"language": list(dict.fromkeys(languages))} if languages else {}
    if tag and (results := _results(tag, metrics)):
        about["model-index"] = [{"name": name, "results": results}]
    # The head of a card is YAML, which includes JSON.
    head = "".join(f"{key}: {json.dumps(x, ensure_ascii=False)}\n" for key, x in about.items())
    details = {"task": task.replace("_", " "), "languages": " to ".join(languages) or None}
    details |= config.get("model", {})
    adapter = config.get("adapter") or {}
    # Only the name of the base: its path may name folders of this machine.
    details |= {
        f"adapter {key}": Path(x).name if key == "base" else x for key, x in adapter.items()
    }
    use = None
    if kind and kind.command:
        command = f"keras-transformer {kind.command} {shlex.quote(name)} {kind.example}"
        use = f"```bash\n{command}\n```"
    sections = {
        "Model details": _table(details),
        "How to use": use or "`docs/tasks.md` of keras_transformer names the object that loads it.",
        "Training data": _data(run),
        "Training procedure": _procedure(run),
        "Evaluation": _evaluation(metrics),
        "Bias, risks and limitations": LIMITS.format(missing=MISSING),
    }
    body = "\n".join(f"## {title}\n\n{text}\n" for title, text in sections.items())
    return f"---\n{head}---\n\n# {name}\n\n{body}\n"


def _results(tag: str, metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the measures of each test set in the form of Hugging Face's `model-index`."""
    results = []
    for name, measures in metrics.items():
        if isinstance(measures, Mapping):
            values = [
                {"type": x, "value": measures[x]} for x in MEASURES if _is_number(measures.get(x))
            ]
            if values:
                data = {"name": name, "type": name}
                results.append({"task": {"type": tag}, "dataset": data, "metrics": values})
    return results


def _data(run: Run | None) -> str:
    if run is None:
        return MISSING
    if not run.files:
        return "No files: see the options below."
    rows = [(f"`{name}`", f"{size:,}", digest or "") for name, size, digest in run.files]
    return _rows(("file", "bytes", "SHA-256"), rows)


def _procedure(run: Run | None) -> str:
    if run is None:
        return MISSING
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    command = f"```bash\n{run.command}\n```"
    return f"{command}\n\nOptions of `{run.script}`:\n\n{_table(run.options)}\n\n{versions}"


def _evaluation(metrics: Mapping[str, Any]) -> str:
    plain = {name: x for name, x in metrics.items() if not isinstance(x, Mapping)}
    named = {name: x for name, x in metrics.items() if isinstance(x, Mapping)}
    parts = [_table(plain)] if plain else []
    parts += [f"### {name}\n\n{_table(measures)}" for name, measures in named.items()]
    return "\n\n".join(parts) or MISSING


def _table(values: Mapping[str, Any]) -> str:
    rows = [(name, _shown(x)) for name, x in values.items() if x is not None and x != {}]
    return _rows(("name", "value"), rows)


def _rows(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _is_ours(path: Path) -> bool:
    """Return whether a card was written by `write_card` and not edited since."""
    try:
        # Git may have changed the line endings.
        text = path.read_text("utf-8").replace("\r\n", "\n")
    except (UnicodeDecodeError, OSError):
        return False
    *_, last = text.splitlines(keepends=True) or [""]
    match = _END.fullmatch(last)
    return match is not None and match[1] == _digest(text.removesuffix(last))
