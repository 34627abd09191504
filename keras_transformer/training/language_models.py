"""Further training of language models: where it starts, what is trained, how it is compiled."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import keras

from keras_transformer.config import require_whole
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import DecoderOnly, enable_lora
from keras_transformer.models.vocabulary import with_config
from keras_transformer.optimizers import adam
from keras_transformer.saved.model_files import is_saved
from keras_transformer.text.chat_template import NAMED, ChatTemplate
from keras_transformer.training.runs import say, schedule_for

TEMPLATE = "chatml"  # of models that have no template


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
    """Return a language model that has a chat template, and whether its vocabulary had to grow.

    A model without a template gets ChatML: its tokens join the vocabulary, and the one that ends a
    turn becomes an EOS token of the model.
    """
    if writer.template is not None:
        return writer, False
    tokens = NAMED[TEMPLATE][1]
    tokenizer = writer.tokenizer.with_special_tokens(tokens)
    config, ids = writer.model.config, [tokenizer.id_of(token) for token in tokens]
    size = max(config.vocab_size, max(ids) + 1)
    if size > config.vocab_size:
        size = -(-size // 8) * 8
    ends = (*config.eos_ids, ids[-1])
    model = with_config(
        writer.model, dataclasses.replace(config, vocab_size=size, eos_id=ends), "float32"
    )
    known = writer.tokenizer.id_of(tokens[-1]) is not None
    return CausalLM(model, tokenizer, ChatTemplate.named(TEMPLATE), writer.search), not known


def to_train(
    start: CausalLM,
    *,
    dropout: float,
    precision: str,
    lora_rank: int = 0,
    new_tokens: bool = False,
) -> DecoderOnly:
    """Return a copy of a language model to train further.

    Args:
        start: The language model.
        dropout: Dropout rate in [0, 1).
        precision: Keras dtype policy.
        lora_rank: Rank of the LoRA products, which alone are trained; 0: train all weights.
        new_tokens: Whether LoRA also trains the tables of the vocabulary: a frozen table never
            learns tokens that are new.

    Raises:
        ValueError: If a value is out of range.
    """
    require_whole("lora_rank", lora_rank, 0)
    config = dataclasses.replace(start.model.config, dropout=dropout)
    model = with_config(start.model, config, precision)
    if lora_rank:
        enable_lora(model, lora_rank)
        if new_tokens:
            for layer in (model.embedding.tokens, model.output_layer):
                for weight in layer.weights:
                    weight.trainable = True
    return model


def compile_for_text(
    model: DecoderOnly, steps: int, peak: float, warmup_steps: int, weight_decay: float
) -> None:
    """Compile a language model with AdamW and the mean loss of the labels that count.

    Args:
        model: The model.
        steps: Steps of the run.
        peak, warmup_steps: See `schedule_for`.
        weight_decay: Weight decay of AdamW.
    """
    adamw = dict(beta_2=0.99, epsilon=1e-8, weight_decay=weight_decay, global_clipnorm=1.0)
    model.compile(
        adam(schedule_for(peak, warmup_steps, steps), **adamw),
        LabelSmoothedCrossentropy(0.0, NO_LABEL),
        metrics=[Perplexity(NO_LABEL)],
    )
    trained = sum(keras.ops.size(weight) for weight in model.trainable_weights)
    say(f"{model.count_params():,} parameters, {int(trained):,} of them trained")
