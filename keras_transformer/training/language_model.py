"""Train a language model on texts, measure it and save it.

The defaults are nanoGPT's for a CPU: 4 layers of 4 heads, 128 wide, 64 characters of context, 12
windows per step, 2,000 steps, no dropout. --start-from trains an existing model further.
"""

from __future__ import annotations

import math
from pathlib import Path

import keras

from keras_transformer.config import KERNELS, require, require_whole
from keras_transformer.data.documents import encode_documents, texts_of
from keras_transformer.data.windows import Windows
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import GPT, DecoderOnly, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.system.files import scratch
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.language_models import compile_for_text, read_start, to_train
from keras_transformer.training.runs import say
from keras_transformer.training.task import TaskRun, task

VALIDATION = 4096  # maximum number of windows for the validation loss


@task(
    start_from=None,
    lora_rank=0,
    vocab_size=8000,
    num_layers=4,
    num_heads=4,
    d_model=128,
    length=64,
    rows=12,
    dropout=0.0,
    peak_learning_rate=1e-3,
    warmup_steps=100,
    weight_decay=0.1,
)
def train(
    run: TaskRun,
    text: list[Path],
    family: str = "gpt",
    attention: str = "softmax",
    pieces: str = "characters",
    steps: int = 2000,
    steps_per_epoch: int = 250,
) -> None:
    """Train a language model on texts; save it with its measured loss.

    --start-from takes a saved language model, or one in Hugging Face's layout.

    The last tenth of each file is for validation. Several documents are separated by EOS; no
    document attends to another. The texts can be larger than memory. Run the same command again to
    resume from the last checkpoint; SIGTERM and Ctrl-C save one. KERAS_BACKEND chooses the backend.

    Args:
        text: A document in UTF-8, or documents in JSON lines (.jsonl) with a text each; may be a
            .gz. Repeatable.
        family: gpt or llama.
        attention: softmax, or linear attention: elu or performer.
        pieces: Kind of tokens: characters, or bytes (BPE).
        steps: Steps of training.
        steps_per_epoch: Steps between validations.
    """
    require(family in ("gpt", "llama"), "family", family, "gpt or llama")
    kinds = ("softmax", *KERNELS)
    require(attention in kinds, "attention", attention, f"one of {kinds}")
    require_whole("steps_per_epoch", steps_per_epoch, 1)
    require_whole("steps", steps, 1)
    accepted = f"a multiple of steps_per_epoch={steps_per_epoch}"
    require(steps % steps_per_epoch == 0, "steps", steps, accepted)
    start = tokenizer = None
    if run.start_from is None:
        tokenizer = TextTokenizer.train(texts_of(text), pieces, run.vocab_size)
    else:
        start = read_start(run.start_from)
        tokenizer, limit = start.tokenizer, start.model.config.max_length
        accepted = f"at most {limit}, the max_length of {run.start_from}"
        require(run.length <= limit, "length", run.length, accepted)
    with scratch(run.output / "data") as room:
        windows, validation = _windows(run, text, tokenizer, start, room)
        keras.utils.set_random_seed(run.seed)
        if start is None:
            model = _model(run, family, tokenizer.vocab_size, attention)
        else:
            model = to_train(run, start)
        compile_for_text(run, model, steps)
        identity = dict(steps=steps, tokenizer=tokenizer.fingerprint())
        identity |= dict(lora_rank=run.lora_rank, tokens=len(windows.ids)) if start else {}
        options = dict(validation_data=validation, validation_batch_size=64)
        epochs = steps // steps_per_epoch
        run.fit_rows(model, windows, steps_per_epoch, epochs, identity, **options)
    kept = (start.template, start.search) if start else ()
    writer = CausalLM(model, tokenizer, *kept)
    run.save(writer)
    loss = math.log(model.evaluate(*validation, batch_size=64, verbose=0)[1])
    run.record(dict(loss=loss, steps=steps), "validation", model)
    sampling = dict(max_new_tokens=run.length - 1, temperature=0.8, seed=run.seed)
    (sample,) = writer.generate(["\n"], **sampling)
    said = f"validation loss {loss:.4f} nats per token; {run.seconds:.0f} s"
    print(f"{sample}\n\n{said}; saved to {run.output}")


def _windows(run, text, tokenizer, start, room):
    """Return the windows to train on, and the rows to validate with."""
    separator = start.model.config.eos_ids[0] if start else 0
    data = encode_documents(text, tokenizer, separator, room)
    sizes = {part: len(documents.values) for part, documents in data.items()}
    say(f"{sizes['train']:,} tokens in {len(data['train']):,} documents")
    accepted = f"more than {run.length} tokens in its last tenth, which is for validation"
    named = ", ".join(map(str, text))
    require(sizes["validation"] > run.length, named, sizes["validation"], accepted)
    training, validation = (
        Windows(part.values, run.length, run.rows, run.seed, part.starts[:-1])
        for part in data.values()
    )
    return training, validation.consecutive(VALIDATION)


def _model(run: TaskRun, family: str, vocab_size: int, attention: str) -> DecoderOnly:
    """Return a new model; with the same options, both families have about as many weights."""
    vocab_size = -(-vocab_size // 8) * 8
    kernel = None if attention == "softmax" else attention
    sizes = run.sizes | dict(max_length=run.length, kernel=kernel)
    if family == "gpt":
        return GPT(GPTConfig(vocab_size, **sizes), dtype=run.precision)
    # A gated feed-forward has three matrices, not two, so its width is 2/3 of 4 * d_model.
    d_ff = 8 * round(run.d_model / 3)
    config = LLaMAConfig(vocab_size, bos_id=0, eos_id=0, d_ff=d_ff, tie_output=True, **sizes)
    return LLaMA(config, dtype=run.precision)
