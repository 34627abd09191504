"""Description of a folder: the facts of a saved model, read without loading the model."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

from keras_transformer.hub.gguf.container import is_gguf
from keras_transformer.saved.contents import MODEL, checkpoint_type, import_command, read_config
from keras_transformer.saved.kinds import kinds_of
from keras_transformer.saved.model_files import count_parameters, unreadable
from keras_transformer.system.files import read_json
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import MANIFEST
from keras_transformer.weights import WEIGHTS
from keras_transformer.weights.state import CHECKPOINTS, STATE, latest, read_state

OWN = (  # entries of `config.json` that some kinds have
    "classes", "mean", "deviation", "resampling", "letters_per_word", "pooling", "max_length",
    "sample_rate", "speakers",
)  # fmt: skip


def describe(folder: str | os.PathLike) -> dict[str, Any]:
    """Return what `keras-transformer info` shows of a saved folder, such as its task, by name.

    Args:
        folder: Folder of a saved model of any kind.

    Raises:
        ValueError: If it is not a saved folder, or a file in it is broken.
    """
    config = read_config(folder, "model")
    kinds, sizes = kinds_of(config), config["model"]
    facts = {
        "task": config.get("task") or "translation",
        "used by": ", ".join(kind.users for kind in kinds) or "further training alone",
    }
    languages = config.get("source_language"), config.get("target_language")
    if any(languages):
        facts["languages"] = " -> ".join(x or "?" for x in languages)
    adapter = config.get("adapter")
    kind = {} if adapter else _family_and_precision(Path(folder, MODEL))
    if isinstance(base := sizes.get("base"), dict):  # a reward model
        kind["family"] = f"{kind.get('family')} on {sizes.get('family')}"
        sizes = base
    facts |= kind | {"parameters": f"{count_parameters(folder):,}", **sizes}
    details = {name: config[name] for name in OWN if name in config}
    details |= {f"adapter {name}": x for name, x in (adapter or {}).items()}
    if isinstance(search := config.get("search"), dict):
        details |= {"search": ", ".join(f"{name}={x}" for name, x in search.items())}
    if isinstance(embedding := config.get("embedding"), dict):  # only of text encoders
        details |= {"after pooling": ", ".join(x["kind"] for x in embedding.get("steps", []))}
        details |= {name: x for name, x in embedding.items() if name != "steps"}
    if isinstance(hearing := config.get("hearing"), dict):
        details |= {name: x for name, x in hearing.items() if not isinstance(x, list)}
    if directions := config.get("directions"):
        details |= {"directions": ", ".join("-".join(x) for x in directions)}
    if config.get("tokenizer") is not None:
        manifest = read_json(Path(folder, MANIFEST))
        name = manifest.get("class") if isinstance(manifest, dict) else None
        details |= {"tokenizer": name or TextTokenizer.__name__}
        details |= {"fingerprint": config["tokenizer"][:16]}
        for side in ("source_languages", "target_languages"):  # only of models with many languages
            if isinstance(manifest, dict) and isinstance(codes := manifest.get(side), list):
                details[side.replace("_", " ")] = ", ".join(map(str, codes))
    return facts | details


def _family_and_precision(path: Path) -> dict[str, str]:
    """Return the class name of the saved model as "family", and "precision".

    The precision is the quantization or, without one, the name of the dtype policy.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            saved = json.loads(archive.read("config.json"))
        config = saved["config"]
        policy = config["dtype"]
        name = policy["config"]["name"] if isinstance(policy, dict) else policy
        return {"family": saved["class_name"], "precision": config.get("quantization") or name}
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise unreadable(path, error) from error


def other_kind(path: str | os.PathLike) -> str | None:
    """Return a phrase that says what a path is, if it is not a saved folder; None if unknown.

    Raises:
        ValueError: If a JSON file that identifies its kind is broken.
    """
    path = Path(path)

    def has(*names: str) -> bool:
        return all((path / name).is_file() for name in names)

    if path.is_file() and is_gguf(path):
        return f"a GGUF file, of llama.cpp; `{import_command(path)}` converts it"
    if path.is_file():
        return "a file; give the folder of a saved model"
    if has(STATE, WEIGHTS):
        state = read_state(path)
        epoch, step = len(state["history"]), state.get("step")
        logs = [f"{name} {x:.4g}" for name, x in (state["history"] or [{}])[-1].items()]
        place = f"after epoch {epoch}" + (f" and step {step}" if step else "")
        place += f" ({', '.join(logs)})" if logs else ""
        return f"a checkpoint {place}; keras-transformer average makes a model of checkpoints"
    if checkpoint := latest(path / CHECKPOINTS) or latest(path):
        return f"a run that has not saved its model yet; its last checkpoint is {checkpoint}"
    if has("saved_model.pb") or any(path.glob("*/saved_model.pb")):
        return "a SavedModel; TensorFlow with tensorflow-text or TensorFlow Serving loads it"
    if has("encoder.onnx", "decoder.onnx"):
        return "an ONNX model; ONNX Runtime runs it"
    if has("onnx/encoder_model.onnx"):
        return "an ONNX model for transformers.js, which runs it in Node.js and browsers"
    if has("model.bin") and any(path.glob("*vocabulary.*")):
        return f"a CTranslate2 model, which ctranslate2 loads; `{import_command(path)}` converts it"
    if kind := checkpoint_type(path):
        return f"a Hugging Face checkpoint of type {kind}; `{import_command(path)}` converts it"
    return None
