"""Contestants of `benchmarks.train`: one function per library, ours and its peers.

All of them take the same options: the size, the file of the weights, rows and length of the batch,
the precision, and the steps of one run.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from benchmarks import contest, marian_program, peers
from keras_transformer.config import TransformerConfig

VOCABULARY = 10_000
SMOOTHING = 0.1
RATE = 1e-4
SIZES = {
    "tiny": lambda: TransformerConfig.tiny(VOCABULARY, dropout=0.1),
    "base": lambda: TransformerConfig.base(VOCABULARY),
    "big": lambda: TransformerConfig.big(VOCABULARY, dropout=0.1),
    "toy": lambda: TransformerConfig.tiny(VOCABULARY, num_encoder_layers=1, num_decoder_layers=1),
}
KERAS_PRECISION = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def batch(
    rows: int, length: int, vocab_size: int = VOCABULARY
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return inputs and labels of random pairs without padding."""
    generator = np.random.default_rng(0)
    source, target = generator.integers(4, vocab_size, (2, rows, length + 1), dtype="int32")
    target[:, 0] = 2
    return {"source_ids": source[:, 1:], "target_ids": target[:, :-1]}, target[:, 1:]


def our_model(size: str, weights: str, precision: str, remat: bool = False) -> Any:
    """Return our model, compiled as `training.translation` does."""
    from keras_transformer import LabelSmoothedCrossentropy, Perplexity, Transformer, adam
    from keras_transformer.models import enable_remat
    from keras_transformer.weights import load_weights

    model = Transformer(SIZES[size](), dtype=KERAS_PRECISION[precision])
    load_weights(weights, model)
    if remat:
        enable_remat(model)
    model.compile(adam(RATE), LabelSmoothedCrossentropy(SMOOTHING), metrics=[Perplexity()])
    return model


def ours(
    size: str,
    weights: str,
    rows: int,
    length: int,
    precision: str,
    steps: int,
    remat: bool = False,
) -> tuple[Callable, dict]:
    """A contestant: our model, trained by `fit`, with or without rematerialization."""
    return in_fit(our_model(size, weights, precision, remat), batch(rows, length), steps)


def keras_hub(
    size: str, weights: str, rows: int, length: int, precision: str, steps: int
) -> tuple[Callable, dict]:
    """A contestant: a model of KerasHub's layers, trained by `fit`."""
    import keras
    from keras import ops

    from keras_transformer.weights import read_weights

    policy = KERAS_PRECISION[precision]
    model = peers.keras_hub_transformer(SIZES[size](), read_weights(weights), policy)
    # KerasHub also applies dropout to attention weights; the paper does not.
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.MultiHeadAttention):
            layer._dropout_layer.rate = layer._dropout = 0.0

    def loss(labels, logits):
        # Keras 3.15's sparse loss has no label smoothing; this is the shortest equal expression.
        logits = ops.cast(logits, "float32")
        chosen = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        others = -ops.mean(ops.log_softmax(logits, axis=-1), axis=-1)
        return (1 - SMOOTHING) * chosen + SMOOTHING * others

    optimizer = keras.optimizers.Adam(RATE, beta_2=0.98, epsilon=1e-9)
    model.compile(optimizer, loss)
    return in_fit(model, batch(rows, length), steps)


def in_fit(
    model: Any, batch: tuple[dict[str, np.ndarray], np.ndarray], steps: int
) -> tuple[Callable, dict]:
    """Return `run, facts` of a contestant that trains a Keras model by `fit` on one batch."""
    import keras

    inputs, labels = batch
    facts = {"resident_bytes": contest.resident_bytes()}
    before = model.evaluate(inputs, labels, batch_size=len(labels), verbose=0)
    facts["loss"] = float(before[0] if isinstance(before, list) else before)

    class Data(keras.utils.PyDataset):
        def __len__(self):
            return steps

        def __getitem__(self, index):
            return inputs, labels

    def run():
        model.fit(Data(), epochs=1, verbose=0, shuffle=False)

    return run, facts


def marian(
    size: str,
    weights: str,
    rows: int,
    length: int,
    precision: str,
    steps: int,
    attention: str = "sdpa",
    compiled: bool = False,
) -> tuple[Callable, dict]:
    """A contestant: MarianMT of `transformers` in a PyTorch loop, bfloat16 under autocast."""
    forward, model = marian_logits(size, weights, attention)
    return _in_torch(model, forward, rows, length, precision, steps, compiled)


def marian_logits(size: str, weights: str, attention: str = "sdpa") -> tuple[Callable, Any]:
    """Return a function from source and target ids to MarianMT's logits, and the model."""
    config = SIZES[size]()
    model = peers.marian(config, load_file(weights), attention)

    def logits(source_ids, target_ids, attention_mask=None):
        return model(
            input_ids=source_ids, attention_mask=attention_mask, decoder_input_ids=target_ids,
            use_cache=False,
        ).logits  # fmt: skip

    return logits, model


def torch_transformer(
    size: str, weights: str, rows: int, length: int, precision: str, steps: int
) -> tuple[Callable, dict]:
    """A contestant: `torch.nn.Transformer` in a PyTorch loop, bfloat16 under autocast."""
    model = peers.torch_transformer(SIZES[size](), load_file(weights))
    return _in_torch(model, model, rows, length, precision, steps)


def _in_torch(model, forward, rows, length, precision, steps, compiled=False):
    import torch

    step = TorchStep(model, torch.compile(forward) if compiled else forward, precision)
    inputs, labels = batch(rows, length)
    data = step.tensors(inputs["source_ids"], inputs["target_ids"]), step.tensors(labels)[0]

    def run():
        for _ in range(steps):
            step(*data)
        step.wait()

    facts = {"resident_bytes": contest.resident_bytes()}
    model.eval()
    with torch.no_grad():
        facts["loss"] = step.loss(*data).item()
    model.train()
    return run, facts


def pymarian(
    size: str, weights: str, rows: int, length: int, precision: str, steps: int
) -> tuple[Callable, dict]:
    """A contestant: Marian, the program, which starts from weights of its own.

    A run is a process that makes twice the steps; the first half warms up. Marian's log has the
    rate of the second half. Each text ends in EOS, which Marian adds, in place of its last token.
    """
    if precision != "float32":
        raise ValueError(f"precision must be float32 for pymarian, got {precision!r}")
    room = tempfile.TemporaryDirectory()
    files = {
        name: Path(room.name, name) for name in ("source", "target", "pieces.yml", "model.npz")
    }
    inputs, labels = batch(rows, length)
    for name, ids in (("source", inputs["source_ids"]), ("target", labels)):
        lines = [" ".join(f"w{i}" for i in row[:-1]) + "\n" for row in ids]
        files[name].write_text("".join(lines * (2 * steps)), "utf-8")
    special = ["<pad>", "<unk>", "<s>", "</s>"]
    pieces = [*special, *(f"w{i}" for i in range(len(special), VOCABULARY))]
    marian_program.write_vocabulary(files["pieces.yml"], pieces)
    config = SIZES[size]()
    command = marian_program.training_command(
        config, files, rows, steps,
        {
            "transformer-dropout": config.dropout, "label-smoothing": SMOOTHING,
            "learn-rate": RATE, "optimizer-params": [0.9, 0.98, 1e-9], "clip-norm": 0,
        },
    )  # fmt: skip

    def run():
        log = subprocess.run(command, check=True, capture_output=True, text=True, cwd=room.name)
        tokens, rate = marian_program.last_shown(log.stderr)
        if tokens != steps * rows * length:
            raise RuntimeError(f"Marian trained on {tokens} tokens, not {steps * rows * length}")
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return {"seconds": tokens / rate, "peak_bytes": memory}

    return run, {"resident_bytes": contest.resident_bytes()}


class TorchStep:
    """A training step in plain PyTorch: autocast, smoothed cross-entropy, fused Adam.

    Args:
        model: Module to train; moved to the GPU if there is one.
        forward: Function from the inputs to the logits.
        precision: "float32" or "bfloat16".

    Call arguments:
        inputs: Tensors, the arguments of `forward`.
        labels: Tensor of target ids.
        pad_id: Label to leave out of the loss.
    """

    def __init__(self, model: Any, forward: Callable, precision: str):
        import torch

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        model.to(self.device)
        self.forward = forward
        self.optimizer = torch.optim.Adam(
            model.parameters(), RATE, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        enabled = precision == "bfloat16"
        self.autocast = torch.autocast(self.device, torch.bfloat16, enabled=enabled)

    def tensors(self, *arrays: np.ndarray) -> list[Any]:
        """Return arrays of ids as tensors on the model's device."""
        import torch

        return [torch.from_numpy(np.ascontiguousarray(x)).long().to(self.device) for x in arrays]

    def loss(self, inputs: Sequence[Any], labels: Any, pad_id: int = -100) -> Any:
        """Return the mean loss over the labels that are not `pad_id`."""
        import torch

        with self.autocast:
            logits = self.forward(*inputs)
            return torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), labels.flatten(), ignore_index=pad_id,
                label_smoothing=SMOOTHING,
            )  # fmt: skip

    def __call__(self, inputs: Sequence[Any], labels: Any, pad_id: int = -100) -> None:
        self.optimizer.zero_grad()
        self.loss(inputs, labels, pad_id).backward()
        self.optimizer.step()

    def wait(self) -> None:
        """Wait until a GPU has finished; return at once on a CPU."""
        import torch

        if self.device == "cuda":
            torch.cuda.synchronize()
