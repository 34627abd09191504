"""Assumptions of `benchmarks.cost`: sizes, data sheets, published numbers, and guesses called so.

Rates are in units a second, memory in bytes, bandwidths in bytes a second in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cost.counting import Size

# Vaswani et al. 2017, Table 3 and section 5.1 (37,000 tokens).
BASE = Size(37_000, 512, 2048, 6, 6, num_heads=8)
BIG = Size(37_000, 1024, 4096, 6, 6, num_heads=16)
# `config.json` of facebook/nllb-200-distilled-600M, nllb-200-1.3B and nllb-200-3.3B.
NLLB_600M = Size(256_206, 1024, 4096, 12, 12, num_heads=16, final_norms=True)
NLLB_1300M = Size(256_206, 1024, 8192, 24, 24, num_heads=16, final_norms=True)
NLLB_3300M = Size(256_206, 2048, 8192, 24, 24, num_heads=16, final_norms=True)
# Touvron et al. 2023, Table 2.
_LLAMA = dict(gated=True, bias=False, final_norms=True, tied=False)
LLAMA_7B = Size(32_000, 4096, 11_008, 32, num_heads=32, **_LLAMA)
LLAMA_13B = Size(32_000, 5120, 13_824, 40, num_heads=40, **_LLAMA)
LLAMA_65B = Size(32_000, 8192, 22_016, 80, num_heads=64, **_LLAMA)

NLLB = {"NLLB 600M": NLLB_600M, "NLLB 1.3B": NLLB_1300M, "NLLB 3.3B": NLLB_3300M}
MODELS = {"base": BASE, "big": BIG, **NLLB, "LLaMA 7B": LLAMA_7B}


@dataclass(frozen=True)
class Accelerator:
    """A device and its links, from its vendor's data sheet.

    Args:
        flops: Peak bfloat16 FLOP/s without sparsity.
        memory: Bytes of memory.
        memory_rate: Bytes a second between memory and cores.
        link: Bytes a second that a device sends to devices of its island.
        island: Number of devices joined by such links.
        network: Bytes a second that a device sends beyond its island.
        source: Where the numbers are from.
    """

    flops: float
    memory: float
    memory_rate: float
    link: float
    island: int
    network: float
    source: str


DEVICES = {
    "A100": Accelerator(
        312e12, 80e9, 2.039e12, 600e9 / 2, 8, 200e9 / 8,
        "NVIDIA A100 80GB SXM and DGX A100 data sheets",
    ),
    "H100": Accelerator(
        989e12, 80e9, 3.35e12, 900e9 / 2, 8, 400e9 / 8,
        "NVIDIA H100 SXM and DGX H100 data sheets",
    ),
    "TPU v5e": Accelerator(
        197e12, 16e9, 819e9, 400e9 / 2, 256, 6.4e12 / 8 / 256,
        "Google Cloud documentation, TPU v5e",
    ),
}  # fmt: skip
ETHERNET = 100e9 / 8  # a guess: one port of 100 Gb/s for a host of 8 devices, as rented hosts have

COUNTS = (8, 256)  # devices of the tables
MANY = 256  # devices after which the bytes of a ring hardly grow

# Guesses. No accelerator was measured; the table "checks" has what is known of the first.
TRAINING_USE = 0.4  # share of peak FLOP/s in training
SEARCH_USE = 0.2  # share of peak FLOP/s in search, whose products are small
MEMORY_USE = 0.6  # share of memory bandwidth
LINK_USE = 0.7  # share of a link's bandwidth that collectives reach
LEAST_STEP = 5e-3  # seconds: a thousand kernels one after another, however short
SENTENCE = 30  # tokens of a sentence, source and target
TEXT = 1024  # tokens of a language model's text
TOKENS = 4096  # tokens of each side per device in a step
ROWS, BEAM = 128, 4  # sentences of a batch in search
SENTENCE_BYTES = 130

# Vaswani et al. 2017: sections 5.1 and 5.2, Table 2, footnote 5.
STEPS = {"base": 100_000, "big": 300_000}
BATCH = 25_000  # tokens of each side
LARGER = 16  # times the batch, as Ott et al. 2018 trained
HOURS = {"base": 12, "big": 3.5 * 24}  # on 8 P100
PUBLISHED_FLOPS = {"base": 3.3e18, "big": 2.3e19}
P100 = 9.5e12  # FLOP/s in float32

# Touvron et al. 2023, section 2.4 (65B) and Table 15 (13B): on A100, windows of 2,048 tokens.
LLAMA_65B_RATE = 380  # tokens a second and device
LLAMA_13B_HOURS, LLAMA_13B_TOKENS = 135_168, 1.0e12
LLAMA_TEXT = 2048

# Measured here, on two cores: benchmarks/results/2-cores-intel-amx and 2-cores-amd.
MEASURED = {  # share of the machine's matmul peak
    "training base, bfloat16, Xeon with AMX": 0.26,
    "training base, float32, EPYC": 0.87,
    "translating with base, float32, Xeon with AMX": 0.68,
}
STEP_MEMORY = 3_880 * 2**20  # bytes that training base in float32 adds: memory-base-128x32-float32
STEP_ROWS, STEP_LENGTH, STEP_VOCABULARY = 128, 32, 10_000
IMPORT_SECONDS = 3.0 / 0.95e9  # a byte of a float32 checkpoint, JAX: importing.md
FIRST_SECONDS = 4.3  # first batch of base, JAX: decode-base-beam4.md
PROCESS_SECONDS = 30  # a guess: schedule and start a container

# Corpora. `SHARD` is the default of `keras-transformer translate --shard-lines`.
SHARD = 50_000  # lines
CORPUS = 1e9  # sentences
WEB = 71e9  # unique sentences of 32 snapshots of Common Crawl: Schwenk et al. 2021, abstract
# Each shard creates and renames two files: the translations, and their count and checksum.
FILE_OPERATIONS = 4
# Files a second: Dell, "Storage for HPC with Intel Enterprise Edition for Lustre", figure 12.
ONE_CLIENT, FILE_SYSTEM = 500, 15_000
# Requests a second of one Python process: ray-project/ray issue 42565, pull request 14334.
HTTP_LOW, HTTP_HIGH = 220, 3_000

# NLLB Team et al. 2022: every fourth block of the 54.5B model has experts, two a token.
EXPERT_EVERY, EXPERTS = 4, 2

# Failures. Dubey et al. 2024, section 3.3.4: 419 unexpected ones in 54 days on 16,384 H100.
DEVICE_FAILURES = 16_384 * 54 * 86_400 / 419  # seconds between failures of one device
# A guess at preemptions of a host. Compute Engine ends preemptible VMs after 24 hours at most.
PREEMPTED = 24 * 3600
HOST = 8  # devices
STORE = 2e9  # a guess: bytes a second into the shared file system, from all processes together
RESTART = 300  # a guess: seconds to schedule, start, compile and read the checkpoint
