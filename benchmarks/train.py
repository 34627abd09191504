"""Training steps a second, ours and the peers' in turn, and the share of the machine's peak.

    python -m benchmarks.train [--size base] [--rows 64] [--length 32] [--precision float32]
        [--only ours-torch marian ...] [--rounds 5] [--save]

The peers need `pip install -c constraints.txt -e ".[all,bench]"`. All contestants begin from the
same weights, and must give the same loss on the same batch before any is timed. Dropout, label
smoothing and Adam are the same on both sides.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from benchmarks import contest, peers
from benchmarks.contest import Contestant
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
    """Random pairs without padding: inputs, labels."""
    generator = np.random.default_rng(0)
    source, target = generator.integers(4, vocab_size, (2, rows, length + 1), dtype="int32")
    target[:, 0] = 2
    return {"source_ids": source[:, 1:], "target_ids": target[:, :-1]}, target[:, 1:]


def training_flops(config: TransformerConfig, rows: int, length: int) -> float:
    """Floating point operations of one step: matmuls alone, backward twice the forward."""
    width, inner = config.d_model, config.d_ff
    attention = 8 * width**2 + 4 * length * width
    encoder = config.num_encoder_layers * (attention + 4 * width * inner)
    decoder = config.num_decoder_layers * (2 * attention + 4 * width * inner)
    return 3.0 * rows * length * (encoder + decoder + 2 * width * config.target_vocab_size)


def our_model(size, weights, precision):
    """Our model with its loss and optimizer, as `training.translation` compiles it."""
    from keras_transformer import LabelSmoothedCrossentropy, Perplexity, Transformer, adam
    from keras_transformer.checkpoints import load_weights

    model = Transformer(SIZES[size](), dtype=KERAS_PRECISION[precision])
    load_weights(weights, model)
    model.compile(adam(RATE), LabelSmoothedCrossentropy(SMOOTHING), metrics=[Perplexity()])
    return model


def ours(size, weights, rows, length, precision, steps):
    """A contestant: our model in `fit`."""
    return in_fit(our_model(size, weights, precision), batch(rows, length), steps)


def keras_hub(size, weights, rows, length, precision, steps):
    """A contestant: KerasHub's layers in `fit`."""
    import keras
    from keras import ops

    from keras_transformer.checkpoints import read_weights

    policy = KERAS_PRECISION[precision]
    model = peers.keras_hub_transformer(SIZES[size](), read_weights(weights), policy)
    # KerasHub drops out attention weights besides; the paper does not.
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.MultiHeadAttention):
            layer._dropout_layer.rate = layer._dropout = 0.0

    def loss(labels, logits):
        # Keras's sparse loss cannot smooth labels: the shortest way to the same number.
        logits = ops.cast(logits, "float32")
        chosen = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        others = -ops.mean(ops.log_softmax(logits, axis=-1), axis=-1)
        return (1 - SMOOTHING) * chosen + SMOOTHING * others

    optimizer = keras.optimizers.Adam(RATE, beta_2=0.98, epsilon=1e-9)
    model.compile(optimizer, loss)
    return in_fit(model, batch(rows, length), steps)


def in_fit(model, batch, steps):
    """Return a contestant: steps of a Keras model on one batch, its loss and its size."""
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


def marian(size, weights, rows, length, precision, steps, attention="sdpa", compiled=False):
    """A contestant: `transformers`' MarianMT in a plain PyTorch loop, bfloat16 under autocast."""
    forward, model = marian_logits(size, weights, attention)
    return _in_torch(model, forward, rows, length, precision, steps, compiled)


def marian_logits(size, weights, attention="sdpa"):
    """A function from source and target ids to MarianMT's logits, and the model."""
    config = SIZES[size]()
    model = peers.marian(config, load_file(weights), attention)

    def logits(source_ids, target_ids, attention_mask=None):
        return model(
            input_ids=source_ids, attention_mask=attention_mask, decoder_input_ids=target_ids,
            use_cache=False,
        ).logits  # fmt: skip

    return logits, model


def torch_transformer(size, weights, rows, length, precision, steps):
    """A contestant: `torch.nn.Transformer` in a plain PyTorch loop, bfloat16 under autocast."""
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


class TorchStep:
    """A training step as PyTorch's users write it: autocast, smoothed cross-entropy, fused Adam.

    Args:
        model: a module, moved to the GPU if there is one.
        forward: from the inputs to logits.
        precision: "float32" or "bfloat16".
    """

    def __init__(self, model, forward, precision):
        import torch

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        model.to(self.device)
        self.forward = forward
        self.optimizer = torch.optim.Adam(
            model.parameters(), RATE, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        enabled = precision == "bfloat16"
        self.autocast = torch.autocast(self.device, torch.bfloat16, enabled=enabled)

    def tensors(self, *arrays):
        """Arrays of ids as the model takes them."""
        import torch

        return [torch.from_numpy(np.ascontiguousarray(x)).long().to(self.device) for x in arrays]

    def loss(self, inputs, labels, pad_id=-100):
        """The mean over labels that are not `pad_id`."""
        import torch

        with self.autocast:
            logits = self.forward(*inputs)
            return torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), labels.flatten(), ignore_index=pad_id,
                label_smoothing=SMOOTHING,
            )  # fmt: skip

    def __call__(self, inputs, labels, pad_id=-100):
        self.optimizer.zero_grad()
        self.loss(inputs, labels, pad_id).backward()
        self.optimizer.step()

    def wait(self):
        """Until a GPU has done what it was given."""
        import torch

        if self.device == "cuda":
            torch.cuda.synchronize()


BACKENDS = {  # JAX would else take most of a GPU's memory before it needs it
    "torch": {"KERAS_BACKEND": "torch"},
    "tensorflow": {"KERAS_BACKEND": "tensorflow"},
    "jax": {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
}
CONTESTANTS = {
    **{f"ours-{b}": ("ours", {}, environment) for b, environment in BACKENDS.items()},
    "marian": ("marian", {}, {}),
    "marian-eager-attention": ("marian", {"attention": "eager"}, {}),
    "marian-compiled": ("marian", {"compiled": True}, {}),
    "torch.nn": ("torch_transformer", {}, {}),
    **{f"keras-hub-{b}": ("keras_hub", {}, environment) for b, environment in BACKENDS.items()},
}


def contestants(room, names, size, rows, length, precision, steps) -> dict[str, Contestant]:
    """Those of the names, in the table's order; their weights are written into `room`."""
    weights = str(Path(room, "weights.safetensors"))
    write_weights(size, weights)
    options = dict(size=size, weights=weights, rows=rows, length=length)
    options |= dict(precision=precision, steps=steps)
    return {
        name: Contestant(name, f"benchmarks.train:{function}", options | more, environment)
        for name, (function, more, environment) in CONTESTANTS.items()
        if name in names
    }


def check_same_loss(entries: dict[str, Contestant], precision: str) -> None:
    """Raises if those that are ready do not compute the same."""
    losses = {name: entry.facts["loss"] for name, entry in entries.items()}
    tolerance = 2e-3 if precision == "float32" else 0.02
    if max(losses.values()) - min(losses.values()) > tolerance:
        raise RuntimeError(f"the contestants do not compute the same loss: {losses}")


def compete(size, rows, length, precision, names, rounds, steps) -> tuple[list[list], float]:
    """Rows of the table, one a contestant, and the machine's peak in FLOP/s."""
    with tempfile.TemporaryDirectory() as room:
        entries = contestants(room, names, size, rows, length, precision, steps)
        peak = Contestant("matmul", "benchmarks.contest:matmul_peak", {"precision": precision})
        contest.contest(
            [peak, *entries.values()], rounds, lambda: check_same_loss(entries, precision)
        )
    flops = training_flops(SIZES[size](), rows, length)
    rate = sorted(result["flops"] for result in peak.results)[rounds // 2]
    lines = []
    for name, entry in entries.items():
        seconds = entry.seconds / steps
        ratios = {
            ours: contest.ratio(entry, entries[ours]) for ours in entries if ours.startswith("ours")
        }
        lines.append(
            [name, f"{seconds * 1e3:,.0f}", f"{rows * length / seconds:,.0f}"]
            + [f"{flops / seconds / rate:.0%}", f"{entry.results[-1]['peak_bytes'] / 2**30:.2f}"]
            + [f"{entry.facts['loss']:.4f}"]
            + [f"{value:.2f}" for value in ratios.values()]
        )
    return lines, rate


def write_weights(size: str, path: str) -> None:
    """Random weights of a plain spread, by a process of their own (this one needs no Keras)."""
    import os
    import subprocess
    import sys

    program = (
        "import sys, numpy as np\n"
        "from benchmarks.train import SIZES\n"
        "from keras_transformer import Transformer\n"
        "from keras_transformer.checkpoints.weights import save_weights, weights_of\n"
        "rng = np.random.default_rng(0)\n"
        "weights = weights_of(Transformer(SIZES[sys.argv[1]]()))\n"
        "noise = lambda x: (x + rng.normal(0, 0.02, x.shape)).astype('float32')\n"
        "save_weights(sys.argv[2], {name: noise(x) for name, x in weights.items()})\n"
    )
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    subprocess.run([sys.executable, "-c", program, size, path], env=environment, check=True)


def main() -> None:
    """Runs the contest and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--precision", choices=KERAS_PRECISION, default="float32")
    parser.add_argument("--rounds", type=int, default=5, help="at least 1")
    parser.add_argument("--steps", type=int, default=2, help="steps of one round")
    default = [name for name in CONTESTANTS if name != "marian-compiled"]
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=default)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--part", default="", help="of the table's name, where memory allows parts")
    options = parser.parse_args()
    for name in ("rows", "length", "rounds", "steps"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    lines, rate = compete(
        options.size, options.rows, options.length, options.precision, options.only,
        options.rounds, options.steps,
    )  # fmt: skip
    header = ["", "ms a step", "target tokens/s", "of matmul peak", "peak GiB", "loss at first"]
    ours = [name for name in CONTESTANTS if name in options.only and name.startswith("ours")]
    header += [f"{name} is faster by" for name in ours]
    name = f"train-{options.size}-{options.rows}x{options.length}-{options.precision}"
    name += f"-{options.part}" if options.part else ""
    peak = f"{options.precision} matmul (2048 x 2048, PyTorch): {rate / 1e12:.2f} TFLOP/s; "
    flops = training_flops(SIZES[options.size](), options.rows, options.length)
    contest.report(
        name,
        f"Training, {options.size}: {options.rows} pairs of {options.length} tokens, "
        f"{options.precision}",
        [f"{peak}arithmetic of a step: {flops / 1e12:.3f} TFLOP.", contest.table(header, lines)],
        options.save,
    )


if __name__ == "__main__":
    main()
