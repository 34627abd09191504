"""Tables of what corpora, failures and limits cost."""

from __future__ import annotations

import math

from benchmarks.contest import table
from benchmarks.cost import assumptions as given
from benchmarks.cost import counting
from benchmarks.cost.estimates import (
    break_even,
    lost,
    port_rate,
    ring_rate,
    sentences_per_second,
    start_up,
    tensor_share,
)
from benchmarks.cost.numbers import number, share

COUNTS = given.COUNTS


def billion() -> str:
    """A billion sentences."""
    rows = []
    for name, size in given.NLLB.items():
        for beam in (1, given.BEAM):
            need = counting.search_memory(size, given.SENTENCE, given.SENTENCE, beam, given.ROWS)
            row = [name, beam, number(need / 1e9, 2)]
            for device in given.DEVICES.values():
                speed = sentences_per_second(size, device, beam)
                hours = [number(given.CORPUS / speed / n / 3600, 2) for n in COUNTS]
                row += [number(speed, 2), " / ".join(hours)]
            rows.append(row)
    header = ["", "beam", "GB"]
    for name in given.DEVICES:
        header += [f"{name}: sentences/s", f"hours on {' / '.join(map(str, COUNTS))}"]
    return table(header, rows)


def shards() -> str:
    """Shards of a corpus."""
    size, device = given.NLLB_600M, given.DEVICES["H100"]
    seconds = given.SHARD / sentences_per_second(size, device, given.BEAM)
    count = given.CORPUS / given.SHARD
    rows = []
    for n in (*COUNTS, 4096, 16_384, 32_768):
        rounds = math.ceil(count / n)
        row = [f"{n:,}", number(count / n, 2), share(1 - count / n / rounds)]
        row += [number(given.FILE_OPERATIONS * n / seconds, 2)]
        row += [number(2 * given.SENTENCE_BYTES * given.SHARD * n / seconds / 1e6, 2)]
        rows.append(row)
    header = ["devices", "shards each", "idle at the end", "file operations/s"]
    lines = table([*header, "MB/s read and written"], rows)
    first = start_up(size)
    part = share(first / (first + seconds))
    return (
        f"{lines}\n\nA shard takes {number(seconds, 2)} s. A process that starts for one shard "
        f"needs {number(first, 2)} s more, {part} of its time."
    )


def failures() -> str:
    """Checkpoints and failures."""
    rows = []
    cases = [(n, "fail", given.DEVICE_FAILURES / n) for n in (*COUNTS, 2048, 16_384)]
    cases += [(n, "are preempted", given.PREEMPTED * given.HOST / n) for n in (*COUNTS, 2048)]
    for n, kind, between in cases:
        write, interval, wasted = lost(between)
        cells = [f"{number(between / 3600, 2)} h", f"{number(write, 2)} s"]
        wasted = "all" if wasted >= 1 else share(wasted)
        rows.append([f"{n:,} that {kind}", *cells, f"{number(interval / 60, 2)} min", wasted])
    header = ["devices", "time between failures", "to write", "best interval", "time lost"]
    return table(header, rows)


def training_limits() -> str:
    """Where the designs of training break."""
    h100, big = given.DEVICES["H100"], given.NLLB_3300M
    rates = [ring_rate(h100, h100.island), given.LINK_USE * given.ETHERNET]
    even = [break_even(given.BASE, h100, bandwidth) for bandwidth in rates]
    tensor = [tensor_share(big, h100, n) for n in (8, 16)]
    bubbles = [counting.pipeline_bubble(8, n) for n in (8, 64)]
    block = [given.TRAINING_USE * h100.flops / port_rate(h100, n) for n in (8, 16)]
    failing = next(n for n in range(64, 2**20, 64) if lost(given.DEVICE_FAILURES / n)[2] > 0.1)
    rows = [
        ("one device", "the state fills the memory",
         f"{number(h100.memory / 16e9, 2)} billion parameters in 80 GB, before activations",
         "`shard_weights`, remat"),
        ("data", "the all-reduce outlasts the matmuls",
         f"below {number(even[0], 2)} tokens per device on NVLink, "
         f"{number(even[1], 2)} on 100 Gb/s",
         "larger batches; gradients in bfloat16"),
        ("`shard_weights`", "the same, with 1.5 times the bytes",
         f"below {number(1.5 * even[0], 2)} and {number(1.5 * even[1], 2)} tokens",
         "split within a host, copy across hosts"),
        ("`model`", "the axis leaves the host",
         f"{share(tensor[0])} of the matmuls' time on 8 devices, {share(tensor[1])} on 16",
         "pipeline across hosts"),
        ("pipeline", "few microbatches",
         f"8 stages idle {share(bubbles[0])} with 8 microbatches, {share(bubbles[1])} with 64",
         "interleaved stages (Narayanan et al. 2021)"),
        ("context", "keys travel longer than they are used",
         f"below {number(block[0], 2)} tokens per device on NVLink, {number(block[1], 2)} across",
         "heads split within a host, ring across"),
        ("one synchronous job", "failures cost a tenth of the time",
         f"{number(failing, 2)} devices, LLaMA 7B",
         "checkpoints in peers' memory; spare hosts"),
    ]  # fmt: skip
    return table(["design", "breaks when", "estimate", "next"], rows)


def corpus_limits() -> str:
    """Where the designs of translating and serving break."""
    h100, size = given.DEVICES["H100"], given.NLLB_600M
    speed = sentences_per_second(size, h100, given.BEAM)
    count = given.CORPUS / given.SHARD
    replicas = [number(x / speed, 2) for x in (given.HTTP_LOW, given.HTTP_HIGH)]
    operations = given.SHARD / given.FILE_OPERATIONS / speed
    web = number(given.WEB / 1e9, 2)
    slowest = sentences_per_second(given.NLLB_3300M, h100, given.BEAM)
    days = given.WEB / slowest / given.MANY / 86_400
    rows = [
        ("queue of shards", "more devices than shards",
         f"{number(count, 2)} devices for {number(given.CORPUS / 1e9, 1)} billion sentences",
         "smaller shards"),
        ("a process per shard", "the start is a tenth of the time",
         f"shards below {number(9 * start_up(size) * speed, 2)} lines",
         "actors that keep the model"),
        ("one writer of files", "it creates and renames all",
         f"{number(given.ONE_CLIENT * operations, 2)} devices", "each worker writes its own"),
        ("one file system", "all workers create and rename",
         f"{number(given.FILE_SYSTEM * operations, 2)} devices",
         "larger shards; an object store"),
        ("one folder", "resume lists the shards of the web",
         f"{number(given.WEB / given.SHARD / 1e6, 2)} million names",
         "larger shards; many folders"),
        ("one HTTP process", "a request per sentence",
         f"{replicas[0]} to {replicas[1]} replicas", "several, behind a load balancer"),
        (f"{given.MANY} devices", "the corpus is the web",
         f"{number(days, 2)} days for {web} billion sentences, NLLB 3.3B",
         "filters first; a distilled model"),
    ]  # fmt: skip
    return table(["design", "breaks when", "estimate", "next"], rows)
