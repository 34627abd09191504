"""Trains a language model on a text, measures it and saves it.

    python -m training.language_model --text shakespeare.txt --output saved_models/shakespeare

The defaults are nanoGPT's for a CPU: 4 layers of 4 heads, 128 wide, 64 characters of context, 12
windows a step, 2,000 steps, no dropout.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.callbacks import Checkpoints, Progress
from keras_transformer.checkpoints import load_weights
from keras_transformer.checkpoints.state import CHECKPOINTS
from keras_transformer.config import require, require_whole
from keras_transformer.data.text_files import iterate_lines
from keras_transformer.data.windows import NO_LABEL, Windows
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.causal_lm import CausalLM
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import GPT, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import fit, main, run_into, schedule_for


@run_into()
def train(
    text: Annotated[Path, typer.Option(help="The text, UTF-8; may be a .gz.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    family: Annotated[str, typer.Option(help="gpt or llama.")] = "gpt",
    pieces: Annotated[str, typer.Option(help="characters or bytes (BPE).")] = "characters",
    vocab_size: Annotated[int, typer.Option(help="Pieces, with bytes.")] = 8000,
    num_layers: int = 4,
    num_heads: int = 4,
    d_model: int = 128,
    length: Annotated[int, typer.Option(help="Tokens of a window, the context.")] = 64,
    rows: Annotated[int, typer.Option(help="Windows a step.")] = 12,
    steps: int = 2000,
    steps_per_epoch: Annotated[int, typer.Option(help="Between measurements.")] = 250,
    dropout: float = 0.0,
    peak_learning_rate: float = 1e-3,
    warmup_steps: int = 100,
    weight_decay: float = 0.1,
    precision: Annotated[str, typer.Option(help="Keras dtype policy.")] = "float32",
    seed: int = 0,
) -> None:
    """Trains a language model on a text and saves it with its measured loss.

    The last tenth of the text is for validation. The same command again resumes from the last
    checkpoint; SIGTERM and Ctrl-C save one. The backend is KERAS_BACKEND's.
    """
    keep_compilations()
    require(family in ("gpt", "llama"), "family", family, "gpt or llama")
    require_whole("steps_per_epoch", steps_per_epoch, 1)
    require_whole("steps", steps, 1)
    require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
    require(
        steps % steps_per_epoch == 0,
        "steps",
        steps,
        f"a multiple of steps_per_epoch={steps_per_epoch}",
    )

    # Text: ids, the last tenth of them for validation.
    content = "".join(f"{line}\n" for line in iterate_lines(text))
    split = int(0.9 * len(content))
    tokenizer = TextTokenizer.train([content], pieces, vocab_size)
    (train_ids,) = tokenizer.encode([content[:split]])
    (validation_ids,) = tokenizer.encode([content[split:]])
    accepted = f"more than {length} tokens in its last tenth, which is for validation"
    require(len(validation_ids) > length, str(text), len(validation_ids), accepted)
    windows = Windows(train_ids, length, rows, seed)
    validation = Windows(validation_ids, length, rows).consecutive()

    # Model: both families of the same number of weights.
    keras.utils.set_random_seed(seed)
    size = -(-tokenizer.vocab_size // 8) * 8
    sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads, dropout=dropout)
    if family == "gpt":
        model = GPT(GPTConfig(size, max_length=length, **sizes), dtype=precision)
    else:
        # Three matrices in place of two.
        sizes |= dict(d_ff=8 * round(d_model / 3), max_length=length, tie_output=True)
        model = LLaMA(LLaMAConfig(size, bos_id=0, eos_id=0, **sizes), dtype=precision)
    options = dict(beta_2=0.99, epsilon=1e-8, weight_decay=weight_decay, global_clipnorm=1.0)
    model.compile(
        adam(schedule_for(peak_learning_rate, warmup_steps, steps), **options),
        LabelSmoothedCrossentropy(0.0, NO_LABEL),
        metrics=[Perplexity(NO_LABEL)],
    )
    print(f"{model.count_params():,} parameters, {tokenizer.vocab_size} pieces", file=sys.stderr)

    # Training.
    run = dict(steps=steps, rows=rows, length=length, tokenizer=tokenizer.fingerprint())
    checkpoints = Checkpoints(output / CHECKPOINTS, keep=1, run=run)
    begin = time.perf_counter()
    fit(
        model,
        windows.batches,
        checkpoints,
        steps_per_epoch=steps_per_epoch,
        epochs=steps // steps_per_epoch,
        validation_data=validation,
        validation_batch_size=64,
        callbacks=[Progress(rows * length)],
    )
    seconds = time.perf_counter() - begin

    # How good it is, and what it writes.
    load_weights(checkpoints.paths()[-1], model)
    writer = CausalLM(model, tokenizer)
    writer.save(output)
    loss = math.log(model.evaluate(*validation, batch_size=64, verbose=0)[1])
    metrics = dict(loss=loss, parameters=model.count_params(), seconds=seconds, steps=steps)
    save_metrics(output, "validation", metrics)
    (sample,) = writer.generate(["\n"], max_new_tokens=length - 1, temperature=0.8, seed=seed)
    print(
        f"{sample}\n\nvalidation loss {loss:.4f} nats a token; {seconds:.0f} s; saved to {output}"
    )


if __name__ == "__main__":
    main(train)
