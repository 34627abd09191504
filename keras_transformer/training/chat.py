"""Train a language model on dialogues, so that it replies to messages, and save it.

    python -m training.chat --start-from saved_models/gpt2 --data dialogues.jsonl \\
        --output saved_models/assistant

This is supervised fine-tuning (Ouyang et al. 2022, section 3.5): the loss is on the tokens of the
replies alone. Whole dialogues share a row, and none sees another.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.callbacks import Checkpoints, Progress
from keras_transformer.callbacks.checkpoints import LOG
from keras_transformer.config import require, require_whole
from keras_transformer.data.dialogues import encode_dialogues
from keras_transformer.data.windows import PackedRows
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.system.files import scratch
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import save_run
from keras_transformer.training.language_models import (
    compile_for_text,
    read_start,
    to_train,
    with_chat_template,
)
from keras_transformer.training.runs import facts, fit, main, run_into, say
from keras_transformer.weights import load_weights
from keras_transformer.weights.state import CHECKPOINTS

LENGTH = 1024  # default of the row length, if the model has as many positions

Data = Annotated[
    list[Path],
    typer.Option(
        "--data",
        help="JSON lines with messages, or with prompt and completion; may be a .gz. Repeatable.",
    ),
]


@run_into()
def train(
    start_from: Annotated[
        Path,
        typer.Option(
            help="Folder of a language model: a saved one, or one in Hugging Face's layout."
        ),
    ],
    data_files: Data,
    output: options.Output,
    validation_files: Annotated[
        list[Path] | None,
        typer.Option("--validation", help="The same, measured after each epoch. Repeatable."),
    ] = None,
    lora_rank: options.LoRARank = 0,
    row_length: Annotated[
        int | None,
        typer.Option(
            help=f"Tokens per row; longer dialogues are left out.  [default: {LENGTH}, or the "
            "model's max_length if that is less]"
        ),
    ] = None,
    rows: options.Rows = 8,
    epochs: options.Epochs = 3,
    dropout: options.Dropout = 0.0,
    peak_learning_rate: options.PeakLearningRate = 2e-4,
    warmup_steps: options.WarmupSteps = 50,
    weight_decay: options.WeightDecay = 0.01,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Train a language model on dialogues; save it with its chat template and its loss.

    A model without a chat template gets ChatML, with two new tokens. Run the same command again to
    resume from the last checkpoint; SIGTERM and Ctrl-C save one.
    """
    keep_compilations()
    require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
    start, new_tokens = with_chat_template(read_start(start_from))
    limit = start.model.config.max_length
    length = min(LENGTH, limit) if row_length is None else row_length
    require_whole("row_length", length, 2)
    accepted = f"at most {limit}, the max_length of {start_from}"
    require(length <= limit, "row_length", length, accepted)
    with scratch(output / "data") as room:
        packed = _packed(start, data_files, room, "train", length, rows, seed)
        validation = None
        if validation_files:
            own = _packed(start, validation_files, room, "validation", length, rows, seed)
            validation = own.all()
        keras.utils.set_random_seed(seed)
        options_of_model = dict(dropout=dropout, precision=precision, lora_rank=lora_rank)
        model = to_train(start, **options_of_model, new_tokens=new_tokens)
        steps = epochs * len(packed)
        compile_for_text(model, steps, peak_learning_rate, warmup_steps, weight_decay)

        run = dict(steps=steps, rows=rows, length=length, lora_rank=lora_rank, seed=seed)
        run |= dict(tokenizer=start.tokenizer.fingerprint())
        checkpoints = Checkpoints(output / CHECKPOINTS, keep=1, run=run, log=output / LOG)
        begun = time.monotonic()
        fit(
            model,
            packed.batches,
            checkpoints,
            steps_per_epoch=len(packed),
            epochs=epochs,
            validation_data=validation,
            validation_batch_size=rows,
            callbacks=[Progress(rows * length, checkpoints=checkpoints)],
        )
    load_weights(checkpoints.paths()[-1], model)
    writer = CausalLM(model, start.tokenizer, start.template, start.search)
    save_run(writer.save, output, start_from, lora_rank)
    found = _measured(checkpoints.history[-1])
    seconds = sum(logs["seconds"] for logs in checkpoints.history)  # of all parts of the run
    known = facts(model, begun) | dict(epochs=epochs, seconds=seconds)
    save_metrics(output, "training", found | known)
    said = ", ".join(f"{name.replace('_', ' ')} {x:.4f}" for name, x in found.items())
    print(f"{said} nats per token of the replies; saved to {output}")


def _packed(start, files, room, name, length, rows, seed):
    """Return the rows of the dialogues of some files."""
    eos_id = start.model.config.eos_ids[0]
    writer = start.tokenizer, start.template, eos_id
    data = encode_dialogues(files, *writer, length + 1, room, name)
    packed = PackedRows(data.ids, length, rows, seed, data.is_reply)
    replies = int(data.is_reply.values.sum())
    left_out = f"; {data.too_long} longer than {length} were left out" if data.too_long else ""
    say(
        f"{name}: {len(data.ids):,} dialogues of {len(data.ids.values):,} tokens, {replies:,} of "
        f"them in replies, in {len(packed):,} batches{left_out}"
    )
    return packed


def _measured(logs):
    """Return the mean losses of the last epoch, in nats per token."""
    names = {"perplexity": "loss", "val_perplexity": "validation_loss"}
    return {ours: math.log(logs[name]) for name, ours in names.items() if name in logs}


if __name__ == "__main__":
    main(train)
