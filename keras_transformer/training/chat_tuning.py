"""Train a language model on dialogues, so that it replies to messages, and save it.

This is supervised fine-tuning (Ouyang et al. 2022, section 3.5): the loss is the mean over the
tokens of the replies. Several dialogues share a row; no dialogue attends to another.
"""

from __future__ import annotations

import math
from pathlib import Path

import keras

from keras_transformer.config import require, require_whole
from keras_transformer.data.dialogues import encode_dialogues
from keras_transformer.data.windows import PackedRows
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.system.files import scratch
from keras_transformer.training.language_models import (
    compile_for_text,
    read_start,
    to_train,
    with_chat_template,
)
from keras_transformer.training.runs import say
from keras_transformer.training.task import REQUIRED, TaskRun, task

LENGTH = 1024  # default tokens per row; the `max_length` of the model if that is less


@task(
    start_from=REQUIRED,
    lora_rank=0,
    rows=8,
    epochs=3,
    dropout=0.0,
    peak_learning_rate=2e-4,
    warmup_steps=50,
    weight_decay=0.01,
)
def train(
    run: TaskRun,
    data_files: list[Path],
    validation_files: list[Path] | None = None,
    row_length: int | None = None,
) -> None:
    """Train a language model on dialogues; save it with its chat template and its loss.

    --start-from takes a saved language model, or one in Hugging Face's layout. A model without a
    chat template gets ChatML, with two new tokens. Run the same command again to resume from the
    last checkpoint; SIGTERM and Ctrl-C save one.

    Args:
        data_files: JSON lines with messages, or with prompt and completion; may be a .gz.
            Repeatable.
        validation_files: The same, measured after each epoch. Repeatable.
        row_length: Tokens per row; longer dialogues are left out.  [default: 1024, or the model's
            max_length if that is less]
    """
    assert run.start_from is not None, "it is required"
    start, new_tokens = with_chat_template(read_start(run.start_from))
    limit = start.model.config.max_length
    length = min(LENGTH, limit) if row_length is None else row_length
    require_whole("row_length", length, 2)
    accepted = f"at most {limit}, the max_length of {run.start_from}"
    require(length <= limit, "row_length", length, accepted)
    with scratch(run.output / "data") as room:
        packed = _packed(run, start, data_files, room / "train", length)
        validation = None
        if validation_files:
            validation = _packed(run, start, validation_files, room / "validation", length).all()
        steps = run.epochs * len(packed)
        keras.utils.set_random_seed(run.seed)
        model = to_train(run, start, new_tokens)
        compile_for_text(run, model, steps)
        identity = dict(lora_rank=run.lora_rank, seed=run.seed)
        logs = run.fit_rows(
            model,
            packed,
            len(packed),
            run.epochs,
            identity | dict(steps=steps, tokenizer=start.tokenizer.fingerprint()),
            validation_data=validation,
            validation_batch_size=run.rows,
        )
    run.save(CausalLM(model, start.tokenizer, start.template, start.search))
    names = {"perplexity": "loss", "val_perplexity": "validation_loss"}
    losses = {key: math.log(logs[name]) for name, key in names.items() if name in logs}
    run.record(losses | dict(epochs=run.epochs), "training", model)
    shown = ", ".join(f"{name.replace('_', ' ')} {x:.4f}" for name, x in losses.items())
    print(f"{shown} nats per token of the replies; saved to {run.output}")


def _packed(run, start, files, path, length):
    """Encode the dialogues of files, and return them packed into rows."""
    eos_id, name = start.model.config.eos_ids[0], path.name
    data = encode_dialogues(
        files, start.tokenizer, start.template, eos_id, length + 1, path.parent, name
    )
    packed = PackedRows(data.ids, length, run.rows, run.seed, data.is_reply)
    left_out = f"; {data.too_long} longer than {length} were left out" if data.too_long else ""
    say(
        f"{name}: {len(data.ids):,} dialogues of {len(data.ids.values):,} tokens, "
        f"{int(data.is_reply.values.sum()):,} of them in replies, in {len(packed):,} "
        f"batches{left_out}"
    )
    return packed
