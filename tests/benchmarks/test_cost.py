"""Estimates of cost: formulas against counts of real models, of PyTorch, of papers and by hand."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

import keras_transformer as kt
from benchmarks import cost, scaling, train
from benchmarks.cost import assumptions as given
from benchmarks.cost import counting, estimates
from benchmarks.cost.counting import Size
from benchmarks.cost.numbers import number, share
from keras_transformer.backend import portable
from keras_transformer.models import T5, LLaMA, LLaMAConfig, T5Config

PAGE = Path(__file__).parents[2] / "docs/scale.md"
SMALL = Size(50, 16, 24, 3, 2, num_heads=2)
CONFIG = kt.TransformerConfig(
    50, 50, d_model=16, d_ff=24, num_encoder_layers=2, num_decoder_layers=3, num_heads=2
)


def transformer(size: Size):
    layers = dict(num_encoder_layers=size.encoder_layers, num_decoder_layers=size.decoder_layers)
    return kt.Transformer(
        kt.TransformerConfig(
            size.vocab_size, size.vocab_size, size.d_model, size.d_ff, **layers,
            num_heads=size.num_heads, norm_first=size.final_norms,
        )
    )  # fmt: skip


def t5(size: Size):
    return T5(
        T5Config(
            size.vocab_size, size.d_model, size.d_ff, size.encoder_layers, size.decoder_layers,
            size.num_heads, size.head_dim, size.buckets, gated=size.gated, tie_output=size.tied,
        )
    )  # fmt: skip


def llama(size: Size):
    return LLaMA(
        LLaMAConfig(
            size.vocab_size, size.d_model, size.d_ff, size.decoder_layers, size.num_heads,
            size.num_kv_heads,
        )
    )  # fmt: skip


RMS = dict(bias=False, final_norms=True, buckets=32, head_dim=64)
MODELS = {
    "base": (transformer, given.BASE, None),  # the paper's Table 3 says 65 million
    "big": (transformer, given.BIG, None),
    # Numbers of parameters on the hub's pages of the checkpoints.
    "NLLB 600M": (transformer, given.NLLB_600M, 615_073_792),
    "T5-small": (t5, Size(32_128, 512, 2048, 6, 6, num_heads=8, **RMS), 60_506_624),
    "T5 v1.1": (t5, Size(100, 32, 48, 3, 2, num_heads=2, gated=True, tied=False, **RMS), None),
    "Llama 3 8B": (
        llama,
        dataclasses.replace(given.LLAMA_7B, vocab_size=128_256, d_ff=14_336, num_kv_heads=8),
        8_030_261_248,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_of_the_models(name):
    make, size, published = MODELS[name]
    with keras.device("meta"):  # weights without memory
        assert counting.parameters(size) == make(size).count_params()
    assert published in (None, counting.parameters(size))


def test_parameters_are_the_published_ones():
    """Models that would take seconds to build; smaller ones of their kinds are above."""
    assert counting.parameters(given.NLLB_1300M) == 1_370_638_336
    assert counting.parameters(given.NLLB_3300M) == 3_344_863_232
    assert counting.parameters(given.LLAMA_7B) == 6_738_415_616
    assert counting.parameters(given.LLAMA_13B) == 13_015_864_320
    assert counting.parameters(given.LLAMA_65B) == 65_285_660_672


def test_flops_are_those_that_pytorch_counts():
    source, target = (np.ones((5, n), "int32") for n in (7, 9))
    model = kt.Transformer(CONFIG)
    with portable(), FlopCounterMode(display=False) as counter:  # kernels are not counted
        logits = model({"source_ids": source, "target_ids": target})
        forward = counter.get_total_flops()
        logits.sum().backward()
    assert forward == 5 * (counting.block_flops(SMALL, 7, 9) + 2 * 9 * 16 * 50)
    assert counter.get_total_flops() == 5 * counting.training_flops(SMALL, 7, 9)
    repeated = counting.training_flops(SMALL, 7, 9, remat=True)
    repeated -= counting.training_flops(SMALL, 7, 9)
    assert repeated == counting.block_flops(SMALL, 7, 9)


def test_flops_of_grouped_heads_and_gates():
    size = Size(40, 16, 24, 2, num_heads=4, num_kv_heads=2, gated=True, bias=False, tied=False)
    model = LLaMA(LLaMAConfig(40, 16, 24, 2, 4, 2))
    with portable(), FlopCounterMode(display=False) as counter:  # kernels are not counted
        model({"token_ids": np.ones((3, 6), "int32")})
    assert counter.get_total_flops() == 3 * (counting.block_flops(size, 0, 6) + 2 * 6 * 16 * 40)


def test_flops_by_hand_of_one_token():
    one = Size(10, 2, 3, 1, num_heads=1)
    # Four 2x2 matrices, a 2x3 and a 3x2, one score and one product with one value of width 2.
    assert counting.block_flops(one, 0, 1) == 2 * (4 * 4 + 12) + 4 + 4
    assert counting.training_flops(one, 0, 1) == 3 * (64 + 2 * 2 * 10)


def test_flops_are_those_of_the_other_benchmarks():
    assert counting.training_flops(SMALL, 8, 8) * 4 == train.training_flops(CONFIG, 4, 8)
    assert counting.search_flops(SMALL, 8, 8, 1) * 4 == scaling.search_flops(CONFIG, 4, 8, 1)
    # There, the first token has one beam.
    beams = [counting.search_flops(SMALL, 8, 8, beam) for beam in (1, 4)]
    assert scaling.search_flops(CONFIG, 1, 8, 4) == beams[1] - (beams[1] - beams[0]) / 8


def test_activations_are_those_of_korthikanti_et_al():
    b, s, h, a = 3, 128, 64, 4
    size = Size(10, h, 4 * h, 1, num_heads=a)
    # Equation 1, less dropout of attention weights: a mask and a result per weight.
    assert b * counting.activation_bytes(size, 0, s) == 34 * s * b * h + (5 - 3) * a * s * s * b
    deep = dataclasses.replace(size, decoder_layers=6)
    kept = counting.activation_bytes(deep, 0, s, remat=True)
    assert kept == 6 * 2 * s * h + counting.activation_bytes(size, 0, s)


def ring(n, rng):
    """An all-reduce of n elements a device by messages along a ring; the elements each sends."""
    values = rng.standard_normal((n, n))
    total, sent = values.sum(0), 0
    for turn in range(2 * (n - 1)):
        part = [(rank - turn) % n for rank in range(n)]
        messages = values[range(n), part]
        for rank in range(n):
            after = (rank + 1) % n
            adds = turn < n - 1
            values[after, part[rank]] = messages[rank] + adds * values[after, part[rank]]
        sent += 1
    np.testing.assert_allclose(values, np.tile(total, (n, 1)), atol=1e-9)
    return sent


@pytest.mark.parametrize("n", [2, 5, 8])
def test_a_ring_sends_as_much_as_the_formula(n, rng):
    assert counting.all_reduce(n, n) == ring(n, rng)


def test_tensor_parallel_is_megatrons():
    """Narayanan et al. 2021, section 3.2: 8bsh (t-1)/t elements a layer, which Shoeybi et al. 2019
    need for two all-reduces forward and two backward."""
    b, s, h, t = 4, 32, 64, 8
    size, deep = (Size(10, h, 4 * h, layers, num_heads=8) for layers in (1, 5))
    layers = counting.tensor_bytes(deep, 0, b * s, t) - counting.tensor_bytes(size, 0, b * s, t)
    assert layers == 2 * 4 * 8 * b * s * h * (t - 1) / t
    ends = counting.tensor_bytes(size, 0, b * s, t) - layers / 4
    assert ends == 2 * 2 * 2 * b * s * h * (t - 1) / t  # the embedding, and the logits backward


def test_bytes_of_the_other_axes():
    weights = 4 * counting.parameters(SMALL)
    assert counting.data_bytes(SMALL, 4) == 2 * weights * 3 / 4
    assert counting.sharded_bytes(SMALL, 4) == 1.5 * counting.data_bytes(SMALL, 4)
    assert counting.data_bytes(SMALL, 1) == counting.tensor_bytes(SMALL, 9, 9, 1) == 0
    assert counting.pipeline_bytes(SMALL, 10) == 2 * 2 * 16 * 10
    # Of 12 tokens on 4 devices each sends keys and values of 3 tokens on, 3 times in each of 3
    # rounds: forward, again backward, and their gradients.
    assert counting.context_bytes(SMALL, 1, 12, 4) == 3 * 3 * 3 * 2 * 16 * 2
    # Four of five copies of 10 tokens leave the device, there and back, forward and backward.
    assert counting.expert_bytes(SMALL, 2, 10, 1, 5) == 2 * 4 * 8 * 16 * 2


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 4), (4, 1), (8, 8)])
def test_the_bubble_is_that_of_a_schedule(stages, microbatches):
    busy = {(m + stage, stage) for m in range(microbatches) for stage in range(stages)}
    turns = 1 + max(turn for turn, _ in busy)
    idle = 1 - len(busy) / (turns * stages)
    assert counting.pipeline_bubble(stages, microbatches) == pytest.approx(idle)


def test_the_best_interval_loses_least():
    write, between = 40.0, 9_000.0
    best = counting.best_interval(write, between)
    intervals = np.linspace(best / 4, best * 4, 1001)
    lost = [counting.lost_share(x, write, 300, between) for x in intervals]
    assert intervals[np.argmin(lost)] == pytest.approx(best, rel=0.01)


def test_the_first_order_loss_is_that_of_random_failures(rng):
    write, restart, between, work = 10.0, 50.0, 20_000.0, 2e7
    interval = counting.best_interval(write, between)
    clock = 0.0
    for _ in range(math.ceil(work / interval)):
        while (failure := rng.exponential(between)) < interval + write:
            clock += failure + restart
        clock += interval + write
    expected = counting.lost_share(interval, write, restart, between)
    assert clock / work - 1 == pytest.approx(expected, rel=0.15)


def test_a_search_fits_its_device():
    needs = [counting.search_memory(x, 30, 30, given.BEAM, given.ROWS) for x in given.NLLB.values()]
    assert max(needs) < min(x.memory for x in given.DEVICES.values())
    # Keys and values of 2 source tokens, and of 3 tokens of each of 4 beams.
    rows = [counting.search_memory(SMALL, 2, 3, 4, rows) for rows in (0, 1)]
    assert rows[0] == 2 * counting.parameters(SMALL)
    assert rows[1] - rows[0] == 2 * 2 * 16 * 3 * (2 + 12) + 4 * 4 * 50


def test_few_sentences_wait_for_memory(monkeypatch):
    h100 = given.DEVICES["H100"]
    fast = estimates.sentences_per_second(given.NLLB_3300M, h100, 1)
    monkeypatch.setattr(given, "ROWS", 1)
    # Each of 30 steps reads the decoder and the output projection once.
    decoder = 24 * (8 * 2048**2 + 2 * 2048 * 8192) + 256_206 * 2048
    slow = given.MEMORY_USE * h100.memory_rate / (30 * 2 * decoder)
    assert slow < fast / 10
    assert estimates.sentences_per_second(given.NLLB_3300M, h100, 1) == pytest.approx(slow, 0.01)


def test_a_step_waits_for_its_gradients_below_the_break_even():
    device = given.DEVICES["H100"]
    tokens = estimates.break_even(given.BIG, device, estimates.ring_rate(device, 256))
    compute = estimates.compute_seconds(given.BIG, device, tokens)
    assert estimates.step_seconds(given.BIG, device, 256, tokens) == pytest.approx(compute * 4 / 3)
    assert estimates.step_seconds(given.BIG, device, 256, 3 * tokens) == pytest.approx(3 * compute)
    assert estimates.step_seconds(given.BIG, device, 1, 1) == given.LEAST_STEP


def test_measured_numbers_are_those_of_the_result_files():
    results = PAGE.parents[1] / "benchmarks/results"
    intel, amd = (results / name for name in ("2-cores-intel-amx", "2-cores-amd"))
    for path, row in {
        intel / "train-base-64x32-bfloat16.md": "| ours-torch | 1,138 | 1,800 | 26% |",
        amd / "train-base-64x32-float32-torch.md": "| ours-torch | 5,032 | 407 | 87% |",
        results / "README.md": "68 % of the float32 time are matrix products",
        amd / "memory-base-128x32-float32.md": "| ours-torch | 4,624 | 744 | 3,880 |",
        amd / "importing.md": "| jax | 238 | 0.95 | 0.7 | 3.0 |",
        intel / "decode-base-beam4.md": "| ours-jax-float32 | 11.5 | 4.30 |",
    }.items():
        assert row in path.read_text("utf-8")
    assert list(given.MEASURED.values()) == [0.26, 0.87, 0.68]
    measured = (given.STEP_MEMORY, given.IMPORT_SECONDS, given.FIRST_SECONDS)
    assert measured == (3_880 * 2**20, 3.0 / 0.95e9, 4.3)


def test_numbers():
    assert [number(x) for x in (0, 1234.5, 0.012345, 7.1e10)] == ["0", "1,230", "0.0123", "7.10e10"]
    assert (number(1699, 2), number(9.99, 2), share(0.123456)) == ("1,700", "10", "12 %")


def test_the_page_has_the_tables_of_the_script(tmp_path, monkeypatch, capsys):
    text = PAGE.read_text("utf-8")
    assert cost.filled(text) == text
    with pytest.raises(ValueError, match="marks must be"):
        cost.filled(text.replace("<!-- table: axes -->", ""))
    page = tmp_path / "page.md"
    page.write_text(text.replace("| NLLB 600M |", "| a stale row |"), "utf-8")
    monkeypatch.setattr("sys.argv", ["cost", "--page", str(page)])
    cost.main()
    assert page.read_text("utf-8") == text
    monkeypatch.setattr("sys.argv", ["cost", "--tables", "wmt14"])
    cost.main()
    assert capsys.readouterr().out.startswith("## wmt14\n\n|  | steps |")


def test_no_backend_is_loaded():
    loaded = "import sys; from benchmarks import cost; print({'keras', 'torch'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
