"""Export a translator to a folder that `transformers` loads."""

from __future__ import annotations

import os
from pathlib import Path

from keras_transformer.checkpoints import weights_of
from keras_transformer.checkpoints.hugging_face import CONFIG, write_checkpoint
from keras_transformer.checkpoints.standard import standard_form
from keras_transformer.config import TransformerConfig
from keras_transformer.inference.translator import Translator
from keras_transformer.system.files import check_free, read_json, replacing, write_json
from keras_transformer.text.hugging_face import write_tokenizer


def hugging_face(
    folder: str | os.PathLike, out: str | os.PathLike, *, overwrite: bool = False
) -> Path:
    """Write a checkpoint with its tokenizer in Hugging Face's layout.

    ```python
    export.hugging_face("saved_models/grammar", "served/grammar")
    # in any process with `transformers` and `sentencepiece`:
    tokenizer = AutoTokenizer.from_pretrained("served/grammar")
    model = AutoModelForSeq2SeqLM.from_pretrained("served/grammar")
    found = model.generate(**tokenizer(["The old man loves the dog."], return_tensors="pt"))
    print(tokenizer.batch_decode(found, skip_special_tokens=True))
    ```

    An imported model is written in its original family. A model trained here is written as Marian,
    with Marian's tokenizer; a pre-norm model as Pegasus, which is Marian with pre-norm.
    `checkpoints.standard` describes how its weights are converted.

    Args:
        folder: A folder written by `Translator.save`.
        out: The folder to write.
        overwrite: Whether to replace `out` if it exists.

    Returns:
        The path `out`.

    Raises:
        ValueError: If `folder` is not a saved translator, or no family of `transformers` supports
            its model or tokenizer; the message names the option that is not supported.
        FileExistsError: If `out` exists and `overwrite` is False, or `out` holds other files.
    """
    out = Path(out)
    check_free(out, overwrite)
    translator = Translator.load(folder, precision="float32")
    config, weights = translator.model.config, weights_of(translator.model)
    if isinstance(config, TransformerConfig):
        config, weights = standard_form(config, weights)
    tokenizer = translator.tokenizer
    generation = dict(
        decoder_start_token_id=config.bos_id,
        pad_token_id=config.pad_id,
        eos_token_id=config.eos_id,
        forced_eos_token_id=config.eos_id,
        num_beams=4,
        max_length=config.max_length,
    )
    # As in this library, padding and BOS are never generated.
    if never := sorted({config.pad_id, config.bos_id} - {*config.eos_ids}):
        generation["bad_words_ids"] = [[i] for i in never]
    with replacing(out, lose_others=False) as temporary:
        write_checkpoint(temporary, config, weights)
        write_tokenizer(temporary, tokenizer)
        tasks = getattr(tokenizer, "model", {}).get("task_specific_params")
        if tasks:  # T5's prompts; here they belong to the tokenizer, there to the model's config
            theirs = read_json(temporary / CONFIG)
            write_json(temporary / CONFIG, theirs | {"task_specific_params": tasks})
        write_json(temporary / "generation_config.json", generation)
    return out
