"""The model as two ONNX graphs, traced by PyTorch: what `export.onnx`'s process runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from keras_transformer.backend import portable
from keras_transformer.export.saved_model import BAD_INPUT
from keras_transformer.inference.translator import Translator
from keras_transformer.models import EncoderDecoder

OPSET = 18
LARGEST = 1_500_000_000  # bytes of weights that lie in the graph's file, not beside it: 2 GB end it


class EncoderGraph(torch.nn.Module):
    """Source ids (B, S) to the mask and each decoder block's cross keys and values (B, N, S, H)."""

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self.model = model

    def forward(self, source_ids):
        source_ids = source_ids.to(torch.int32)
        first_ids = torch.full_like(source_ids[:, :1], self.model.config.bos_id)
        _, state, _ = self.model.prefill(source_ids, first_ids, 1)
        caches = [cache["cross"][x] for cache in state["caches"] for x in ("key", "value")]
        return (state["source_mask"], *caches)


class DecoderGraph(torch.nn.Module):
    """A token a row (B, 1) after what is cached (B, N, T, H) to logits (B, V), and the caches."""

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self.model = model

    def forward(self, token_ids, source_mask, cross, past):
        pairs = list(zip(cross[::2], cross[1::2], past[::2], past[1::2], strict=True))
        caches = [
            {"cross": {"key": a, "value": b}, "self": {"key": c, "value": d}}
            for a, b, c, d in pairs
        ]
        state = {"source_mask": source_mask, "caches": caches}
        index = past[0].shape[2]
        logits, state = self.model.step(token_ids.to(torch.int32), state, index)
        present = [cache["self"][x] for cache in state["caches"] for x in ("key", "value")]
        return (logits[:, 0], *present)


def names(kind: str, layers: int) -> list[str]:
    """Names of the inputs or outputs of a kind: a key and a value a block."""
    return [f"{kind}_{x}_{i}" for i in range(layers) for x in ("key", "value")]


def write(model: EncoderDecoder, folder: Path) -> None:
    """Writes `encoder.onnx` and `decoder.onnx`; batch, source and past are of any size."""
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
        old = [x[:, :, :3] for x in cross]
        program = torch.onnx.export(
            DecoderGraph(model).eval(),
            (source_ids[:, :1], mask, cross, old),
            input_names=[
                "token_ids", "source_mask", *names("cross", layers), *names("past", layers)
            ],
            output_names=["logits", *names("present", layers)],
            dynamic_shapes={
                "token_ids": {0: batch},
                "source_mask": {0: batch, 3: source},
                "cross": [{0: batch, 2: source}] * len(cross),
                "past": [{0: batch, 2: past}] * len(cross),
            },
            **options,
        )  # fmt: skip
        _save(program, folder / "decoder.onnx", size > LARGEST)


def _save(program, path, external_data):
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # PyTorch notes there in which file of this machine it arose
    program.save(path, external_data=external_data)


def main() -> None:
    """Does the task that the first argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"], "float32")
    except ValueError as error:
        print(error)
        sys.exit(BAD_INPUT)
    write(translator.model, Path(task["path"]))


if __name__ == "__main__":
    main()
