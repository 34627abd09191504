"""Steps of flows that train language models: load, add a chat template, copy, compile."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import keras

from keras_transformer.config import require
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import DecoderOnly
from keras_transformer.models.vocabulary import with_config
from keras_transformer.saved.contents import is_saved
from keras_transformer.text.chat_template import NAMED, ChatTemplate
from keras_transformer.training.fine_tuning import with_lora
from keras_transformer.training.runs import say
from keras_transformer.training.task import TaskRun

TEMPLATE = "chatml"  # chat template that models without a template get


def read_start(folder: str | os.PathLike) -> CausalLM:
    """Load the language model that a run starts from, in float32.

    Args:
        folder: A saved language model, or a folder in Hugging Face's layout.

    Raises:
        ValueError: If the folder is neither.
    """
    if not is_saved(folder) and Path(folder, "config.json").is_file():
        return CausalLM.from_pretrained(folder)
    return CausalLM.load(folder, "float32")


def with_chat_template(writer: CausalLM) -> tuple[CausalLM, bool]:
    """Return a language model that has a chat template, and whether its tokenizer got new tokens.

    A model without a template gets ChatML: ChatML's tokens join the vocabulary, and the token that
    ends a message becomes an EOS token of the model.
    """
    if writer.template is not None:
        return writer, False
    tokens = NAMED[TEMPLATE][1]
    tokenizer = writer.tokenizer.with_special_tokens(tokens)
    config, pieces = writer.model.config, tokenizer.pieces()
    ids = [pieces[token] for token in tokens]
    size = max(config.vocab_size, max(ids) + 1)
    if size > config.vocab_size:
        size = -(-size // 8) * 8
    ends = (*config.eos_ids, ids[-1])
    model = with_config(
        writer.model, dataclasses.replace(config, vocab_size=size, eos_id=ends), "float32"
    )
    known = writer.tokenizer.id_of(tokens[-1]) is not None
    return CausalLM(model, tokenizer, ChatTemplate.named(TEMPLATE), writer.search), not known


def to_train(run: TaskRun, start: CausalLM, new_tokens: bool = False) -> DecoderOnly:
    """Return a copy of a language model to train further.

    Args:
        run: The run, with its `dropout`, `precision` and `lora_rank`.
        start: The language model.
        new_tokens: Whether the vocabulary has new tokens. With LoRA, the token embedding and the
            output layer are then trained whole, because frozen ones cannot learn new tokens.

    Raises:
        ValueError: If a value is out of range.
    """
    config = dataclasses.replace(start.model.config, dropout=run.dropout)
    model = with_lora(with_config(start.model, config, run.precision), run.lora_rank)
    if run.lora_rank and new_tokens:
        for layer in (model.embedding.tokens, model.output_layer):
            for weight in layer.weights:
                weight.trainable = True
    return model


def compile_for_text(run: TaskRun, model: DecoderOnly, steps: int) -> None:
    """Compile a language model with AdamW and the mean loss of all labels but `NO_LABEL`.

    Args:
        run: The run, with its `peak_learning_rate`, `warmup_steps` and `weight_decay`.
        model: The model.
        steps: Steps of the run.

    Raises:
        ValueError: If the weight decay is negative.
    """
    require(run.weight_decay >= 0, "weight_decay", run.weight_decay, "at least 0")
    adamw = dict(beta_2=0.99, epsilon=1e-8, weight_decay=run.weight_decay, global_clipnorm=1.0)
    loss = LabelSmoothedCrossentropy(0.0, NO_LABEL)
    model.compile(run.optimizer(steps, **adamw), loss, metrics=[Perplexity(NO_LABEL)])
    trained = sum(keras.ops.size(weight) for weight in model.trainable_weights)
    say(f"{model.count_params():,} parameters, {int(trained):,} of them trained")
