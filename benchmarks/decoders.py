"""Contestants of `benchmarks.decode`: one function per translator, ours and its peers.

All of them take the same options: the folder of a saved translator, the sentences, the beam size,
whether to translate one by one, and the precision, where there is a choice. With `shortlist`, a
contestant that knows shortlists uses that of the folder.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import machine, marian_program, peers

ROOM = 50  # a translation has at most this many tokens more than its source
_rooms: list[tempfile.TemporaryDirectory] = []  # kept until the process ends


def ours(
    folder: str,
    lines: list[str],
    beam_size: int,
    one_by_one: bool,
    precision: str,
    engine: str = "keras",
    length_penalty: float = 0.0,
    shortlist: bool = False,
) -> tuple[Callable, dict]:
    """A contestant: `Translator.translate`."""
    from keras_transformer import Translator

    translator = Translator.load(folder, precision=precision, engine=engine)
    search = dict(beam_size=beam_size, length_penalty=length_penalty, shortlist=shortlist)

    def translate(lines):
        return translator.translate(lines, **search)

    return _contestant(translate, lines, one_by_one, ready=translator.wait)


def ours_on_ctranslate2(**options: Any) -> tuple[Callable, dict]:
    """A contestant: `Translator.translate` with the engine of CTranslate2."""
    return ours(**options, engine="ctranslate2")


def ours_inductor(**options: Any) -> tuple[Callable, dict]:
    """A contestant: `Translator.translate` with the engine of PyTorch's compiler."""
    return ours(**options, engine="inductor")


def saved_model(
    folder: str,
    lines: list[str],
    beam_size: int,
    one_by_one: bool,
    batch_size: int = 64,
    jit_compile: bool = False,
    shortlist: bool = False,
) -> tuple[Callable, dict]:
    """A contestant: our SavedModel, called with batches of sentences of similar length."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - its operations are in the graph

    import keras_transformer.export

    room = _room()
    path = keras_transformer.export.saved_model(
        folder, Path(room, "served"), beam_size=beam_size, length_penalty=0.0,
        shortlist=shortlist, jit_compile=jit_compile,
    )  # fmt: skip
    loaded = tf.saved_model.load(str(path))

    def batch(lines):
        texts = loaded.translate(tf.constant(lines))["translations"].numpy()
        return [text.decode() for text in texts]

    def translate(lines):
        return _by_length(batch, lines, len, batch_size)

    return _contestant(translate, lines, one_by_one)


def graphs(
    folder: str, lines: list[str], beam_size: int, one_by_one: bool, precision: str, form: str
) -> tuple[Callable, dict]:
    """A contestant: the program beside our ONNX or LiteRT graphs, which searches one by one."""
    import keras_transformer.export
    from keras_transformer.translate.engines.graph_runner import GraphTranslator

    options = {"quantization": precision} if form == "litert" else {}
    out = getattr(keras_transformer.export, form)(folder, Path(_room(), "graphs"), **options)
    program = GraphTranslator(out, machine.count_threads())
    search = dict(beam_size=beam_size, length_penalty=0.0)

    def translate(lines):
        return [program.translate(line, **search) for line in lines]

    return _contestant(translate, lines, one_by_one)


def ctranslate2(
    folder: str,
    lines: list[str],
    beam_size: int,
    one_by_one: bool,
    precision: str,
    workers: int = 1,
    shortlist: bool = False,
) -> tuple[Callable, dict]:
    """A contestant: CTranslate2 with our weights; the workers share the cores, one takes all."""
    import ctranslate2

    from keras_transformer.hub.ctranslate2_writer import specification

    tokenizer, config, weights = _model(folder)
    pieces = tokenizer.pieces_of("target")
    room = _room()
    spec = specification(config, weights, tokenizer.pieces_of("source"), pieces)
    spec.validate()
    spec.save(room)
    if shortlist:
        _write_vmap(Path(room, "vmap.txt"), folder, tokenizer)
    numbers = {piece: number for number, piece in enumerate(pieces)}
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    threads = {}
    if device == "cpu":
        threads = {
            "inter_threads": workers,
            "intra_threads": max(1, machine.count_threads() // workers),
        }
    model = ctranslate2.Translator(room, device=device, compute_type=precision, **threads)

    def translate(lines):
        ids = tokenizer.encode_source(lines)
        results = model.translate_batch(
            [[pieces[i] for i in row] for row in ids], beam_size=beam_size, length_penalty=0.0,
            use_vmap=shortlist, max_batch_size=2048 // workers, batch_type="tokens",
            min_decoding_length=0, max_decoding_length=max(map(len, ids)) + ROOM,
        )  # fmt: skip
        return tokenizer.decode_target(
            [[numbers[x] for x in result.hypotheses[0]] for result in results]
        )

    return _contestant(translate, lines, one_by_one)


def ctranslate2_workers(**options: Any) -> tuple[Callable, dict]:
    """A contestant: CTranslate2 with one worker per core."""
    return ctranslate2(**options, workers=machine.count_threads())


def pymarian(
    folder: str,
    lines: list[str],
    beam_size: int,
    one_by_one: bool,
    precision: str,
    batch_size: int = 32,
    shortlist: bool = False,
) -> tuple[Callable, dict]:
    """A contestant: Marian, the program, with our weights; they have one vocabulary."""
    import pymarian

    import keras_transformer.export

    quantization = "intgemm8" if precision == "int8" else None
    served = keras_transformer.export.marian(
        folder, Path(_room(), "served"), quantization=quantization
    )
    tokenizer, _, _ = _model(folder)
    pieces = tokenizer.pieces_of("source")
    longest = max(map(len, tokenizer.encode_source(lines)))
    (model,) = served.glob("model.*")
    more = {"shortlist": [served / "shortlist.bin", False]} if shortlist else {}
    model = pymarian.Translator(
        models=model, vocabs=[served / "vocab.spm"] * 2, cpu_threads=machine.count_threads(),
        beam_size=beam_size, mini_batch=batch_size, maxi_batch=len(lines), maxi_batch_sort="none",
        max_length_factor=1 + ROOM / longest, quiet=True, quiet_translation=True,
        no_spm_encode=True, allow_unk=True, allow_special=True, **more,
    )  # fmt: skip

    def translate(lines):
        rows, places = marian_program.rows_of(tokenizer.encode_source(lines), batch_size)
        # Marian adds EOS, the last of our ids, by itself.
        outputs = model.translate([" ".join(pieces[i] for i in row[:-1]) for row in rows])
        translated = [""] * len(lines)
        for place, output in zip(places, outputs, strict=True):
            if place is not None:
                translated[place] = output
        return translated

    return _contestant(translate, lines, one_by_one)


def transformers(
    folder: str,
    lines: list[str],
    beam_size: int,
    one_by_one: bool,
    precision: str,
    batch_size: int = 64,
) -> tuple[Callable, dict]:
    """A contestant: `generate` of `transformers` with our weights."""
    import torch

    tokenizer, config, weights = _model(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = peers.marian(config, weights).to(device, getattr(torch, precision)).eval()

    @torch.no_grad()
    def batch(ids):
        longest = max(map(len, ids))
        padded = torch.tensor([[*row, *[config.pad_id] * (longest - len(row))] for row in ids])
        padded = padded.to(device)
        generated = model.generate(
            input_ids=padded, attention_mask=(padded != config.pad_id).long(),
            num_beams=beam_size, do_sample=False, length_penalty=0.0, max_length=longest + ROOM,
        )  # fmt: skip
        return tokenizer.decode_target(
            [_until_end(row, config) for row in generated[:, 1:].tolist()]
        )

    def translate(lines):
        return _by_length(batch, tokenizer.encode_source(lines), len, batch_size)

    return _contestant(translate, lines, one_by_one)


def _write_vmap(path, folder, tokenizer):
    """Write the shortlist of a folder as CTranslate2 reads it; the first line is for every text."""
    from keras_transformer.text.lexical_shortlist import Shortlist

    shortlist, target = Shortlist.read(folder, tokenizer), tokenizer.pieces_of("target")
    rows = [("", shortlist.frequent)]
    rows += zip(tokenizer.pieces_of("source"), shortlist.candidates, strict=True)
    lines = (f"{piece}\t{' '.join(target[i] for i in row if i >= 0)}\n" for piece, row in rows)
    path.write_text("".join(lines), "utf-8")


def _until_end(ids, config):
    end = ids.index(config.eos_id) if config.eos_id in ids else len(ids)
    return [token for token in ids[:end] if token != config.pad_id]


def _by_length(batch, items, length, batch_size):
    """Process items in batches of similar length; return the results in the items' order."""
    order = sorted(range(len(items)), key=lambda i: -length(items[i]))
    results = [""] * len(items)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        for place, result in zip(places, batch([items[i] for i in places]), strict=True):
            results[place] = result
    return results


def _room():
    _rooms.append(tempfile.TemporaryDirectory())
    return _rooms[-1].name


def _model(folder):
    from keras_transformer import Translator
    from keras_transformer.weights.weight_files import weights_of

    translator = Translator.load(folder, precision="float32")
    return translator.tokenizer, translator.model.config, weights_of(translator.model)


def _contestant(translate, lines, one_by_one, ready=lambda: None):
    begin = time.perf_counter()
    translate(lines[:1])
    first = time.perf_counter() - begin
    ready()  # waits for what is compiled in the background

    def run():
        if not one_by_one:
            return translate(lines), []
        translations, latencies = [], []
        for line in lines:
            begin = time.perf_counter()
            translations += translate([line])
            latencies.append(time.perf_counter() - begin)
        return translations, latencies

    begin = time.perf_counter()
    facts = {"translations": run()[0], "first_seconds": first}
    facts["pass_seconds"] = time.perf_counter() - begin
    return lambda: {"latencies": run()[1]}, facts
