"""Loading of the engine of a translator, by the engine's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.running.inputs import require_match
from keras_transformer.saved.contents import read_with_sides
from keras_transformer.system.files import complete
from keras_transformer.text import Tokenizer
from keras_transformer.translate import engines
from keras_transformer.translate.engines.auto_engine import NAME as AUTO
from keras_transformer.translate.engines.auto_engine import AutoEngine
from keras_transformer.translate.engines.ctranslate2_engine import NAME as CTRANSLATE2
from keras_transformer.translate.engines.ctranslate2_engine import CTranslate2Engine
from keras_transformer.translate.engines.engine import Engine
from keras_transformer.translate.engines.exported import exported_engine
from keras_transformer.translate.engines.litert_engine import NAME as LITERT
from keras_transformer.translate.engines.litert_engine import LiteRTEngine

ENGINES = ("keras", "ctranslate2", "litert", "inductor", "auto")


def load_engine(
    folder: str | os.PathLike, engine: str, precision: str | None
) -> tuple[Engine, Tokenizer, Mapping[str, Any]]:
    """Load the engine of a saved or an exported translator.

    Args:
        folder: Folder of the translator.
        engine: One of `ENGINES`; must be "keras" or "auto" for an exported translator or a language
            model.
        precision: See `Translator.load`; must be None for an exported translator.

    Returns:
        The engine, the tokenizer, and the contents of `config.json`: {} for an exported
        translator.

    Raises:
        ImportError: If a package of the engine is missing.
        ValueError: If the folder is not a translator, or `engine` cannot run it.
    """
    require(engine in ENGINES, "engine", engine, f"one of {ENGINES}")
    complete(folder)
    if (exported := exported_engine(folder)) is not None:
        for name, value, plain in (
            ("engine", engine, ("keras", AUTO)),
            ("precision", precision, (None,)),
        ):
            require(value in plain, name, value, f"left out for {exported.carried.kind}")
        return exported, exported.tokenizer, {}
    tokenizer, saved = read_with_sides(folder, "translator", precision)
    if saved.get("prompt"):
        accepted = "keras or auto for a language model"
        require(engine in ("keras", AUTO), "engine", engine, accepted)
        engine = "keras"
    arguments = Path(folder), saved, tokenizer, precision
    new_engine: Engine
    without_keras: dict[str, Callable[..., Engine]]
    without_keras = {CTRANSLATE2: CTranslate2Engine, LITERT: LiteRTEngine, AUTO: AutoEngine}
    if engine in without_keras:
        new_engine = without_keras[engine](*arguments)
    else:
        kind = engines.InductorEngine if engine == "inductor" else engines.KerasEngine
        new_engine = kind.load(*arguments)
    require_match(tokenizer, new_engine.config)
    return new_engine, tokenizer, saved
