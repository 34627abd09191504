"""Train a language model on a text, measure it and save it.

    python -m training.language_model --text shakespeare.txt --output saved_models/shakespeare

The defaults are nanoGPT's for a CPU: 4 layers of 4 heads, 128 wide, 64 characters of context, 12
windows per step, 2,000 steps, no dropout.
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
from keras_transformer.checkpoints import load_weights
from keras_transformer.checkpoints.state import CHECKPOINTS
from keras_transformer.config import KERNELS, require, require_whole
from keras_transformer.data.text_files import iterate_lines
from keras_transformer.data.windows import NO_LABEL, Windows
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.causal_lm import CausalLM
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import GPT, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import facts, fit, main, run_into, say, schedule_for


@run_into()
def train(
    text: Annotated[Path, typer.Option(help="Text file in UTF-8; may be a .gz.")],
    output: options.Output,
    family: Annotated[str, typer.Option(help="gpt or llama.")] = "gpt",
    attention: Annotated[
        str, typer.Option(help="softmax, or linear attention: elu or performer.")
    ] = "softmax",
    pieces: Annotated[str, typer.Option(help="Tokens: characters, or bytes (BPE).")] = "characters",
    vocab_size: options.VocabSize = 8000,
    num_layers: options.Layers = 4,
    num_heads: options.Heads = 4,
    d_model: options.Width = 128,
    length: options.WindowLength = 64,
    rows: options.Rows = 12,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 2000,
    steps_per_epoch: Annotated[int, typer.Option(help="Steps between validations.")] = 250,
    dropout: options.Dropout = 0.0,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 100,
    weight_decay: options.WeightDecay = 0.1,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Train a language model on a text; save it with its measured loss.

    The last tenth of the text is for validation. Run the same command again to resume from
    the last checkpoint; SIGTERM and Ctrl-C save one. KERAS_BACKEND chooses the backend.
    """
    keep_compilations()
    require(family in ("gpt", "llama"), "family", family, "gpt or llama")
    kinds = ("softmax", *KERNELS)
    require(attention in kinds, "attention", attention, f"one of {kinds}")
    require_whole("steps_per_epoch", steps_per_epoch, 1)
    require_whole("steps", steps, 1)
    require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0")
    accepted = f"a multiple of steps_per_epoch={steps_per_epoch}"
    require(steps % steps_per_epoch == 0, "steps", steps, accepted)
    tokenizer, train_ids, validation_ids = _tokens(text, pieces, vocab_size, length)
    windows = Windows(train_ids, length, rows, seed)
    validation = Windows(validation_ids, length, rows).consecutive()

    keras.utils.set_random_seed(seed)
    sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads, dropout=dropout)
    sizes |= dict(max_length=length, kernel=None if attention == "softmax" else attention)
    model = _model(family, tokenizer.vocab_size, sizes, precision)
    adamw = dict(beta_2=0.99, epsilon=1e-8, weight_decay=weight_decay, global_clipnorm=1.0)
    model.compile(
        adam(schedule_for(peak_learning_rate, warmup_steps, steps), **adamw),
        LabelSmoothedCrossentropy(0.0, NO_LABEL),
        metrics=[Perplexity(NO_LABEL)],
    )
    say(f"{model.count_params():,} parameters, {tokenizer.vocab_size} pieces")

    run = dict(steps=steps, rows=rows, length=length, tokenizer=tokenizer.fingerprint())
    checkpoints = Checkpoints(output / CHECKPOINTS, keep=1, run=run)
    begun = time.monotonic()
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
    trained = facts(model, begun)

    load_weights(checkpoints.paths()[-1], model)
    writer = CausalLM(model, tokenizer)
    writer.save(output)
    loss = math.log(model.evaluate(*validation, batch_size=64, verbose=0)[1])
    save_metrics(output, "validation", dict(loss=loss, steps=steps) | trained)
    (sample,) = writer.generate(["\n"], max_new_tokens=length - 1, temperature=0.8, seed=seed)
    seconds = trained["seconds"]
    print(
        f"{sample}\n\nvalidation loss {loss:.4f} nats per token; {seconds:.0f} s; saved to {output}"
    )


def _tokens(text, pieces, vocab_size, length):
    """Return the tokenizer of a text, and the ids of its first nine tenths and of its last."""
    content = "".join(f"{line}\n" for line in iterate_lines(text))
    split = int(0.9 * len(content))
    tokenizer = TextTokenizer.train([content], pieces, vocab_size)
    (train_ids,) = tokenizer.encode([content[:split]])
    (validation_ids,) = tokenizer.encode([content[split:]])
    accepted = f"more than {length} tokens in its last tenth, which is for validation"
    require(len(validation_ids) > length, str(text), len(validation_ids), accepted)
    return tokenizer, train_ids, validation_ids


def _model(family, vocab_size, sizes, precision):
    """Make a model of either family; both have the same number of weights."""
    vocab_size = -(-vocab_size // 8) * 8
    if family == "gpt":
        return GPT(GPTConfig(vocab_size, **sizes), dtype=precision)
    # The gated feed-forward has three matrices instead of two.
    d_ff = 8 * round(sizes["d_model"] / 3)
    config = LLaMAConfig(vocab_size, bos_id=0, eos_id=0, d_ff=d_ff, tie_output=True, **sizes)
    return LLaMA(config, dtype=precision)


if __name__ == "__main__":
    main(train)
