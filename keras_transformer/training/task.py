"""Options that training scripts share, each declared once: `seed: options.Seed = 0`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Files
Output = Annotated[Path, typer.Option(help="Folder of the run.")]
DataFolder = Annotated[
    Path | None, typer.Option(help="Folder of the data sets.  [default: KT_DATA, or data]")
]
StartFrom = Annotated[
    Path | None,
    typer.Option(
        help="Folder of a pretrained encoder: a run of training.masked_language_model, or an "
        "imported BERT or variant of it (RoBERTa, MPNet, ...), DeBERTa or ESM-2. It "
        "replaces the tokenizer and the sizes."
    ),
]
StartWriter = Annotated[
    Path | None,
    typer.Option(
        help="Folder of a language model to train further: a saved one, or one in Hugging Face's "
        "layout. It replaces the tokenizer and the sizes."
    ),
]
LoRARank = Annotated[
    int,
    typer.Option(
        min=0,
        help="Train only products of this rank (LoRA), and save them as an adapter, too; 0: train "
        "all weights. Needs --start-from.",
    ),
]
TrainSize = Annotated[int | None, typer.Option(help="Train on at most this many examples.")]

# The model
VocabSize = Annotated[int, typer.Option(help="Size of the vocabulary, in pieces.")]
Width = Annotated[int, typer.Option(min=1, help="Width of the model.")]
Layers = Annotated[int, typer.Option(min=1, help="Blocks per stack.")]
Heads = Annotated[int, typer.Option(min=1, help="Attention heads per block.")]
Dropout = Annotated[float, typer.Option(help="Dropout rate, in [0, 1).")]
MaxLength = Annotated[int, typer.Option(help="Longest sequence, in tokens.")]

# The steps
TokensPerBatch = Annotated[int, typer.Option(help="Tokens per batch, padding included.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Examples per batch.")]
WindowLength = Annotated[int, typer.Option(help="Tokens per window of text.")]
Rows = Annotated[
    int, typer.Option(help="Rows per step: windows of text, or dialogues that are packed.")
]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the training data.")]
PeakLearningRate = Annotated[float, typer.Option(help="Learning rate after the warmup.")]
WarmupSteps = Annotated[int, typer.Option(help="Steps until the peak learning rate.")]
WeightDecay = Annotated[float, typer.Option(help="Weight decay of AdamW.")]
BeamSize = Annotated[int, typer.Option(help="Hypotheses of the beam search.")]
Precision = Annotated[
    str, typer.Option(help="Keras dtype policy: float32, mixed_bfloat16 or mixed_float16.")
]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.")]
