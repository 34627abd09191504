"""A model as ONNX graphs for transformers.js; `export.transformers_js` runs this as a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, compose, helper

from keras_transformer.backend import mask_bias, portable
from keras_transformer.export.onnx_graph import KEYS, OPSET, DecoderGraph
from keras_transformer.export.web_graph import quantize
from keras_transformer.layers import padding_mask
from keras_transformer.models import EncoderDecoder
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.translate.translator import Translator

NEVER = -1e9  # logit of a token that must not follow
CACHED = "use_cache_branch"


class EncoderGraph(torch.nn.Module):
    """The encoder, from source ids and their mask (B, S) to the memory (B, S, D).

    Args:
        model: The model.
    """

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        pad_id = self.model.config.pad_id
        ids = torch.where(attention_mask == 0, pad_id, input_ids).to(torch.int32)
        mask = padding_mask(ids, pad_id)
        return self.model.encoder(self.model.source_embedding(ids), attention_mask=mask)


class CrossGraph(torch.nn.Module):
    """The keys and values (B, N, S, H) of each decoder block for a memory (B, S, D).

    Args:
        model: The model.
    """

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self.model = model

    def forward(self, memory: Any) -> tuple[Any, ...]:
        first = self.model.target_embedding(torch.zeros_like(memory[:, :1, 0]).to(torch.int32))
        _, caches = self.model.decoder(first, memory=memory)
        return tuple(cache["cross"][x] for cache in caches for x in KEYS)


class StepGraph(torch.nn.Module):
    """A decoder step that ends each translation with EOS, also at the maximum length.

    transformers.js (4.3) lets a row of a batch go on after its EOS, so EOS is followed by EOS here.

    Args:
        model: The model.
    """

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self.step = DecoderGraph(model)
        self.config = model.config
        row = torch.full((model.config.target_vocab_size,), NEVER)
        row[model.config.eos_ids[0]] = 0
        self.register_buffer("ending", row, persistent=False)

    def forward(
        self, input_ids: Any, attention_mask: Any, cross: Sequence[Any], past: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the logits (B, 1, V) of the next token, and the caches of the target."""
        mask = mask_bias((attention_mask != 0)[:, None, None], "float32")
        position = torch.full((), past[0].shape[2], dtype=torch.int64)
        logits, *present = self.step(input_ids, mask, cross, past, position)
        is_last = position >= self.config.max_length - 2
        for end in self.config.eos_ids:
            is_last = is_last | (input_ids == end)
        return (torch.where(is_last, self.ending, logits)[:, None], *present)


def write(model: EncoderDecoder, folder: Path) -> None:
    """Write the encoder and the decoder, and both with weights of 8 bits."""
    folder.mkdir()
    graphs = {"encoder_model": encoder_of(model), "decoder_model_merged": decoder_of(model)}
    for name, graph in graphs.items():
        onnx.save(graph, folder / f"{name}.onnx")
        rounded = folder / f"{name}_quantized.onnx"
        onnx.save(graph, rounded)
        quantize(rounded)


def encoder_of(model: EncoderDecoder) -> onnx.ModelProto:
    """Return the graph of the encoder."""
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 8]])
    axes = _dimensions("batch_size", "encoder_sequence_length")
    shapes = {"input_ids": axes, "attention_mask": axes}
    return _exported(
        EncoderGraph(model), (ids, torch.ones_like(ids)), [*shapes], ["last_hidden_state"], shapes
    )


def decoder_of(model: EncoderDecoder) -> onnx.ModelProto:
    """Return the graph of a decoder step.

    If `use_cache_branch` is true, the keys and values of the source are inputs, else they are
    computed from the memory. Both branches share the rest of the graph.
    """
    layers, config = range(model.config.num_decoder_layers), model.config
    source, past = (_names(f"past_key_values.{{}}.{x}", layers) for x in ("encoder", "decoder"))
    batch, length = _dimensions("batch_size", "encoder_sequence_length").values()
    memory, mask = torch.zeros(2, 4, config.d_model), torch.ones(2, 4, dtype=torch.int64)
    cross_names = [f"computed.{x}" for x in source]
    cross = _exported(
        CrossGraph(model), (memory,), ["encoder_hidden_states"], cross_names,
        {"memory": {0: batch, 1: length}},
    )  # fmt: skip
    with portable(), torch.no_grad():
        keys = list(CrossGraph(model).eval()(memory))
    (past_length,) = _dimensions("past_sequence_length").values()
    step = _exported(
        StepGraph(model),
        (torch.full((2, 1), 5), mask, keys, [x[:, :, :3] for x in keys]),
        ["input_ids", "encoder_attention_mask", *(f"chosen.{x}" for x in source), *past],
        ["logits", *(x.replace("past_key_values", "present") for x in past)],
        {
            "input_ids": {0: batch},
            "attention_mask": {0: batch, 1: length},
            "cross": [{0: batch, 2: length}] * len(keys),
            "past": [{0: batch, 2: past_length}] * len(keys),
        },
    )
    return _merged(cross, step, source)


def _merged(cross, step, source):
    """Return the decoder step with the choice between given and computed keys and values.

    Args:
        cross: Graph that computes them from the memory.
        step: Graph of a step, whose inputs "chosen.NAME" they are.
        source: Their names as inputs of the whole.
    """
    cross = compose.add_prefix(cross, "cross/", rename_inputs=False)
    chosen = [f"chosen.{x}" for x in source]
    present = [x.replace("past_key_values", "present") for x in source]
    types = {x.name: x.type for x in step.graph.input}
    cached = [helper.make_value_info(x, types[y]) for x, y in zip(source, chosen, strict=True)]
    for value in cached:  # of no tokens, unless they are used
        value.type.tensor_type.shape.dim[2].dim_param = "encoder_sequence_length_out"
    branches = {
        "then_branch": helper.make_graph(
            _copies(source, [f"given.{x}" for x in source]),
            "given",
            [],
            [helper.make_value_info(f"given.{x.name}", x.type) for x in cached],
        ),
        "else_branch": helper.make_graph(cross.graph.node, "computed", [], cross.graph.output),
    }
    choice = helper.make_node("If", [CACHED], chosen, name="cross_attention", **branches)
    graph = helper.make_graph(
        [choice, *step.graph.node, *_copies(chosen, present)],
        "decoder",
        [
            *(x for x in step.graph.input if x.name not in chosen),
            *cross.graph.input,
            *cached,
            helper.make_tensor_value_info(CACHED, TensorProto.BOOL, [1]),
        ],
        [
            *step.graph.output,
            *(helper.make_value_info(x, types[y]) for x, y in zip(present, chosen, strict=True)),
        ],
        initializer=[*step.graph.initializer, *cross.graph.initializer],
    )
    model = helper.make_model(
        graph,
        opset_imports=step.opset_import,
        functions=[*step.functions, *cross.functions],
        ir_version=step.ir_version,
    )
    onnx.checker.check_model(model)
    return model


def _copies(names, others):
    pairs = zip(names, others, strict=True)
    return [helper.make_node("Identity", [x], [y], name=y) for x, y in pairs]


def _exported(module, arguments, inputs, outputs, shapes):
    """Return the ONNX model of a PyTorch module."""
    with portable(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(),
            arguments,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=shapes,
            dynamo=True,
            opset_version=OPSET,
            verbose=False,
        )
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # PyTorch records paths of this machine there
    return program.model_proto


def _dimensions(*names):
    return {i: torch.export.Dim(name) for i, name in enumerate(names)}


def _names(prefix, layers):
    return [f"{prefix.format(i)}.{x}" for i in layers for x in KEYS]


def main() -> None:
    """Write the graphs that the first command-line argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"], "float32")
    except ValueError as error:
        print(error)
        sys.exit(INVALID)
    write(translator.model, Path(task["path"], "onnx"))


if __name__ == "__main__":
    main()
