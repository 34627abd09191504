"""Train a language model on texts, measure it and save it.

    python -m training.language_model --text shakespeare.txt --output saved_models/shakespeare

The defaults are nanoGPT's for a CPU: 4 layers of 4 heads, 128 wide, 64 characters of context, 12
windows per step, 2,000 steps, no dropout. With --start-from a trained model is trained further.
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
from keras_transformer.config import KERNELS, require, require_whole
from keras_transformer.data.documents import encode_documents, texts_of
from keras_transformer.data.windows import Windows
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import GPT, DecoderOnly, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.system.files import scratch
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, save_run
from keras_transformer.training.language_models import compile_for_text, read_start, to_train
from keras_transformer.training.runs import facts, fit, main, run_into, say
from keras_transformer.weights import load_weights
from keras_transformer.weights.state import CHECKPOINTS

VALIDATION = 4096  # most windows that the loss is measured on


@run_into()
def train(
    text: Annotated[
        list[Path],
        typer.Option(
            help="A document in UTF-8, or documents in JSON lines (.jsonl) with a text each; may "
            "be a .gz. Repeatable."
        ),
    ],
    output: options.Output,
    start_from: options.StartWriter = None,
    lora_rank: options.LoRARank = 0,
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
    """Train a language model on texts; save it with its measured loss.

    The last tenth of each file is for validation. Several documents are separated by EOS, and none
    sees another. The texts can be larger than memory. Run the same command again to resume from
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
    sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads, dropout=dropout)
    sizes |= dict(max_length=length, kernel=None if attention == "softmax" else attention)
    start, tokenizer = _start(start_from, lora_rank, text, pieces, vocab_size, length)
    with scratch(output / "data") as room:
        windows, validation = _windows(text, tokenizer, start, room, length, rows, seed)
        keras.utils.set_random_seed(seed)
        if start is None:
            model = _model(family, tokenizer.vocab_size, sizes, precision)
        else:
            model = to_train(start, dropout=dropout, precision=precision, lora_rank=lora_rank)
        compile_for_text(model, steps, peak_learning_rate, warmup_steps, weight_decay)

        run = dict(steps=steps, rows=rows, length=length, tokenizer=tokenizer.fingerprint())
        run |= dict(lora_rank=lora_rank, tokens=len(windows.ids)) if start else {}
        checkpoints = Checkpoints(output / CHECKPOINTS, keep=1, run=run, log=output / LOG)
        begun = time.monotonic()
        fit(
            model,
            windows.batches,
            checkpoints,
            steps_per_epoch=steps_per_epoch,
            epochs=steps // steps_per_epoch,
            validation_data=validation,
            validation_batch_size=64,
            callbacks=[Progress(rows * length, checkpoints=checkpoints)],
        )
    seconds = sum(logs["seconds"] for logs in checkpoints.history)  # of all parts of the run
    trained = facts(model, begun) | dict(seconds=seconds)

    load_weights(checkpoints.paths()[-1], model)
    template, search = (start.template, start.search) if start else (None, None)
    writer = CausalLM(model, tokenizer, template, search)
    save_run(writer.save, output, start_from, lora_rank)
    loss = math.log(model.evaluate(*validation, batch_size=64, verbose=0)[1])
    save_metrics(output, "validation", dict(loss=loss, steps=steps) | trained)
    (sample,) = writer.generate(["\n"], max_new_tokens=length - 1, temperature=0.8, seed=seed)
    print(
        f"{sample}\n\nvalidation loss {loss:.4f} nats per token; {seconds:.0f} s; saved to {output}"
    )


def _start(start_from, lora_rank, text, pieces, vocab_size, length):
    """Return the language model that the run starts from, or None, and the tokenizer."""
    if start_from is None:
        check_lora(lora_rank, start_from)
        return None, TextTokenizer.train(texts_of(text), pieces, vocab_size)
    start = read_start(start_from)
    limit = start.model.config.max_length
    require(length <= limit, "length", length, f"at most {limit}, the max_length of {start_from}")
    return start, start.tokenizer


def _windows(text, tokenizer, start, room, length, rows, seed):
    """Return the windows to train on, and the rows to validate with."""
    separator = start.model.config.eos_ids[0] if start else 0
    data = encode_documents(text, tokenizer, separator, room)
    sizes = {part: len(documents.values) for part, documents in data.items()}
    say(f"{sizes['train']:,} tokens in {len(data['train']):,} documents")
    accepted = f"more than {length} tokens in its last tenth, which is for validation"
    named = ", ".join(map(str, text))
    require(sizes["validation"] > length, named, sizes["validation"], accepted)
    training, validation = (
        Windows(own.values, length, rows, seed, own.starts[:-1]) for own in data.values()
    )
    return training, validation.consecutive(VALIDATION)


def _model(family, vocab_size, sizes, precision) -> DecoderOnly:
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
