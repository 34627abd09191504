"""A model as two ONNX graphs, traced by PyTorch; `export.onnx` runs this as a program."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from keras_transformer.backend import portable
from keras_transformer.layers import record_attention
from keras_transformer.models import EncoderDecoder
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.translate.translator import Translator

OPSET = 18  # version of ONNX's operators
KEYS = "key", "value"  # names of the tensors in an attention's cache
# If the weights have more bytes, they are written to a separate file: a graph's file has 2 GB at
# most.
LARGEST = 1_500_000_000


class EncoderGraph(torch.nn.Module):
    """The encoder, from source ids (B, S) to the source mask and the caches of cross-attention.

    The caches are the keys and values (B, N, S, H) of each decoder block.

    Args:
        model: The model.
    """

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self.model = model

    def forward(self, source_ids: Any) -> tuple[Any, ...]:
        source_ids = source_ids.to(torch.int32)
        first_ids = torch.full_like(source_ids[:, :1], self.model.config.bos_id)
        _, state, _ = self.model.prefill(source_ids, first_ids, 1)
        caches = [cache["cross"][x] for cache in state["caches"] for x in KEYS]
        return (state["source_mask"], *caches)


class DecoderGraph(torch.nn.Module):
    """A decoder step, from a token per row (B, 1) and caches (B, N, T, H) to logits (B, V).

    The source mask and the caches of cross-attention are inputs, too. The step also returns the
    caches of the target with the keys and values of the token appended. With a recurrence, these
    caches are states (B, 1, D), and the token's position is an input.

    Args:
        model: The model.
        attention: Whether the last output has the weights of cross-attention (B, L, N, S), for L
            decoder blocks.
    """

    def __init__(self, model: EncoderDecoder, attention: bool = False):
        super().__init__()
        self.model, self.attention = model, attention

    def forward(
        self,
        token_ids: Any,
        source_mask: Any,
        cross: Sequence[Any],
        past: Sequence[Any],
        position: Any = None,
    ) -> tuple[Any, ...]:
        """Return the logits (B, V) of the next token, and the caches of the target."""
        parts = parts_of(self.model)
        by_block = zip(_grouped(cross, KEYS), _grouped(past, parts), strict=True)
        caches = [{"cross": of_source, "self": of_target} for of_source, of_target in by_block]
        state = {"source_mask": source_mask, "caches": caches}
        index = past[0].shape[2] if position is None else position
        recording: contextlib.AbstractContextManager[dict[str, Any]] = contextlib.nullcontext({})
        if self.attention:
            recording = record_attention()
        with recording as weights:
            logits, state = self.model.step(token_ids.to(torch.int32), state, index)
        outputs = [cache["self"][x] for cache in state["caches"] for x in parts]
        if self.attention:
            paths = [block.cross_attention.path for block in self.model.decoder.blocks]
            outputs.append(torch.cat([weights[x].transpose(1, 2) for x in paths], 1))
        return (logits[:, 0], *outputs)


def _grouped(tensors, parts):
    """Return a list with a dict for each block: its tensors by the names in `parts`."""
    starts = range(0, len(tensors), len(parts))
    return [dict(zip(parts, tensors[i : i + len(parts)], strict=True)) for i in starts]


def parts_of(model: EncoderDecoder) -> tuple[str, ...]:
    """Return the names of the tensors in the target's cache of a block."""
    return ("state",) if model.decoder.recurrence else KEYS


def names(kind: str, layers: int, parts: Sequence[str] = KEYS) -> list[str]:
    """Return names of inputs or outputs, such as `<kind>_key_i`: all parts for each block i."""
    return [f"{kind}_{x}_{i}" for i in range(layers) for x in parts]


def write(model: EncoderDecoder, folder: Path, attention: bool = False) -> None:
    """Write `encoder.onnx` and `decoder.onnx`; batch, source and past lengths are dynamic.

    Args:
        model: The model.
        folder: Folder to write to, which exists.
        attention: Whether the decoder has the output `attention`, see `DecoderGraph`.
    """
    layers = model.config.num_decoder_layers
    source_ids = torch.tensor([[5, 6, 7, model.config.eos_ids[0]], [5, 6, 7, 8]])
    batch, source, past = (torch.export.Dim(name) for name in ("batch", "source", "past"))
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    options = dict(dynamo=True, opset_version=OPSET, verbose=False)
    with portable(), torch.no_grad():
        encoder = EncoderGraph(model).eval()
        mask, *cross = encoder(source_ids)
        program = torch.onnx.export(
            encoder,
            (source_ids,),
            input_names=["source_ids"],
            output_names=["source_mask", *names("cross", layers)],
            dynamic_shapes={"source_ids": {0: batch, 1: source}},
            **options,
        )
        _save(program, folder / "encoder.onnx", size > LARGEST)
        past_names, present_names = (names(x, layers, parts_of(model)) for x in ("past", "present"))
        past_shapes: dict[int, Any] = {0: batch, 2: past}
        old, position = [x[:, :, :3] for x in cross], {}
        if model.decoder.recurrence:
            past_shapes = {0: batch}
            old = [torch.zeros(len(mask), 1, model.config.d_model) for _ in past_names]
            position = {"position": torch.tensor(3)}
        program = torch.onnx.export(
            DecoderGraph(model, attention).eval(),
            (source_ids[:, :1], mask, cross, old, *position.values()),
            input_names=[
                "token_ids", "source_mask", *names("cross", layers), *past_names, *position
            ],
            output_names=["logits", *present_names, *(["attention"] if attention else [])],
            dynamic_shapes={
                "token_ids": {0: batch},
                "source_mask": {0: batch, 3: source},
                "cross": [{0: batch, 2: source}] * len(cross),
                "past": [past_shapes] * len(old),
                **{name: {} for name in position},
            },
            **options,
        )  # fmt: skip
        _save(program, folder / "decoder.onnx", size > LARGEST)


def _save(program, path, external_data):
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # PyTorch records paths of this machine there
    program.save(path, external_data=external_data)


def main() -> None:
    """Write the ONNX graphs that the first command-line argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"], "float32")
        translator.model.require_whole_caches()
    except ValueError as error:
        print(error)
        sys.exit(INVALID)
    write(translator.model, Path(task["path"]))


if __name__ == "__main__":
    main()
