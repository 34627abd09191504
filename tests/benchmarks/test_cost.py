"""Estimates of cost: formulas against real models, counts of PyTorch, papers and the page."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

import keras_transformer as kt
from benchmarks import cost, scaling, train
from benchmarks.cost import MODELS, Size
from keras_transformer.backend import portable
from keras_transformer.models import LLaMA, LLaMAConfig

PAGE = Path(__file__).parents[2] / "docs/scale.md"
SMALL = Size(50, 16, 24, 3, 2)
CONFIG = kt.TransformerConfig(
    50, 50, d_model=16, d_ff=24, num_encoder_layers=2, num_decoder_layers=3, num_heads=2
)


def transformer(size: Size):
    layers = dict(num_encoder_layers=size.encoder_layers, num_decoder_layers=size.decoder_layers)
    return kt.Transformer(
        kt.TransformerConfig(
            size.vocab_size, size.vocab_size, size.d_model, size.d_ff, **layers,
            norm_first=size.final_norms,
        )
    )  # fmt: skip


@pytest.mark.parametrize("name", ["base", "big", "NLLB 600M"])
def test_parameters_are_those_of_the_models(name):
    with keras.device("meta"):  # weights without memory
        assert cost.parameters(MODELS[name]) == transformer(MODELS[name]).count_params()


def test_parameters_are_the_published_ones():
    published = {
        "NLLB 600M": 615_073_792, "NLLB 1.3B": 1_370_638_336, "NLLB 3.3B": 3_344_863_232,
        "LLaMA 7B": 6_738_415_616,
    }  # fmt: skip
    assert {name: cost.parameters(MODELS[name]) for name in published} == published


def test_flops_are_those_that_pytorch_counts():
    source, target = (np.ones((5, n), "int32") for n in (7, 9))
    model = kt.Transformer(CONFIG)
    with portable(), FlopCounterMode(display=False) as counter:  # kernels are not counted
        logits = model({"source_ids": source, "target_ids": target})
        forward = counter.get_total_flops()
        logits.sum().backward()
    assert forward == 5 * (cost.block_flops(SMALL, 7, 9) + 2 * 9 * 16 * 50)
    assert counter.get_total_flops() == 5 * cost.training_flops(SMALL, 7, 9)


def test_flops_of_gates():
    size = Size(40, 16, 24, 2, gated=True, bias=False, tied=False)
    model = LLaMA(LLaMAConfig(40, 16, 24, 2, 4))
    with portable(), FlopCounterMode(display=False) as counter:  # kernels are not counted
        model({"token_ids": np.ones((3, 6), "int32")})
    assert counter.get_total_flops() == 3 * (cost.block_flops(size, 0, 6) + 2 * 6 * 16 * 40)


def test_flops_are_those_of_the_other_benchmarks():
    assert cost.training_flops(SMALL, 8, 8) * 4 == train.training_flops(CONFIG, 4, 8)
    assert cost.search_flops(SMALL, 8, 8, 1) * 4 == scaling.search_flops(CONFIG, 4, 8, 1)


def test_a_step_waits_for_its_gradients_if_it_has_few_tokens():
    big, device = MODELS["big"], cost.DEVICES["H100"]
    moving = cost.gradient_bytes(big, 256) / cost.ring_rate(device, 256)
    compute = cost.compute_seconds(big, device, 1)  # of a token
    even = moving / compute
    assert cost.step_seconds(big, device, 256, even) == pytest.approx(moving * 4 / 3)
    assert cost.step_seconds(big, device, 256, 3 * even) == pytest.approx(3 * moving)
    assert cost.step_seconds(big, device, 1, 1) == cost.LEAST_STEP


def test_a_search_fits_its_device():
    sizes = [size for name, size in MODELS.items() if "NLLB" in name]
    needs = max(cost.search_memory(size, cost.BEAM) for size in sizes)
    assert needs < min(x.memory for x in cost.DEVICES.values())


def test_the_page_has_the_tables_of_the_script(monkeypatch, tmp_path, capsys):
    text = PAGE.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in cost.TABLES)
    assert cost.filled(text) == text
    page = tmp_path / "page.md"
    page.write_text(text.replace("| NLLB 600M |", "| a stale row |"), "utf-8")
    monkeypatch.setattr("sys.argv", ["cost", "--page", str(page)])
    cost.main()
    assert page.read_text("utf-8") == text
    monkeypatch.setattr("sys.argv", ["cost"])
    cost.main()
    assert capsys.readouterr().out.startswith("## models\n\n|  | million parameters |")
