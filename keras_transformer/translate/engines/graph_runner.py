"""Translate lines of stdin with the exported graphs in FOLDER, by default that of this file.

    python translate.py [FOLDER] < english.txt > german.txt

Requires only numpy, sentencepiece, and onnxruntime for ONNX or ai-edge-litert for LiteRT; copy and
change this file as needed. Texts are translated one by one, with the beam search of Wu et al. 2016:
it ends when `beam_size` hypotheses are finished and the best of them scores at least as high as
every unfinished hypothesis. Search options in `translator.json` override the defaults below.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

NEVER = -1e9  # log-probability of tokens that must not follow
OPTIONS = {
    "beam_size": 4,  # hypotheses kept at each step
    "num_hypotheses": None,  # wanted hypotheses; the search ends when none better can follow
    "length_penalty": 0.6,  # alpha of Wu et al. 2016; higher values favour longer texts
    "max_extra_length": 50,  # a translation has at most this many tokens more than its source
    "max_length": None,  # maximum tokens of a translation; None: see max_extra_length
    "max_length_factor": None,  # maximum tokens as a multiple of the source's, as in Marian
    "scoring": "wu",  # or "transformers" or "marian": length penalty and end as in that program
    "early_stopping": False,  # whether to end when beam_size hypotheses are finished
    "forced_eos": True,  # whether a text at its maximum length must end with EOS
}


class OnnxGraphs:
    """The graphs of an encoder and a decoder step, run by onnxruntime.

    Args:
        folder: Folder with `encoder.onnx` and `decoder.onnx`.
        threads: Threads per operation; 0: onnxruntime's default.
    """

    def __init__(self, folder: Path, threads: int):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(str(folder / f"{x}.onnx"), options)
            for x in ("encoder", "decoder")
        )
        self.has_position = any(x.name == "position" for x in self.decoder.get_inputs())

    def encode(self, source_ids: Any) -> dict[str, Any]:
        """Return the outputs of the encoder for source ids (1, S), by name."""
        names = [x.name for x in self.encoder.get_outputs()]
        outputs = self.encoder.run(None, {"source_ids": source_ids})
        return dict(zip(names, outputs, strict=True))

    def empty(self, rows: int, length: int) -> dict[str, Any]:
        """Return caches of no tokens: keys and values (rows, N, 0, H), or states of zeros."""
        past = {}
        for entry in self.decoder.get_inputs():
            if entry.name.startswith("past_"):
                sizes = [size if isinstance(size, int) else 0 for size in entry.shape[1:]]
                past[entry.name] = np.zeros((rows, *sizes), "float32")
        return past

    def step(self, tokens: Any, position: int, memory: dict[str, Any], past: dict[str, Any]) -> Any:
        """Return the logits (rows, V) after tokens (rows,), and the new caches."""
        inputs = {"token_ids": tokens[:, None], **memory, **past}
        if self.has_position:
            inputs["position"] = np.array(position)
        names = ["logits", *(name.replace("past", "present") for name in past)]
        logits, *present = self.decoder.run(names, inputs)
        return logits, dict(zip(past, present, strict=True))


class LiteRTGraphs:
    """The graphs of an encoder and a decoder step, run by LiteRT: two signatures of one file.

    Args:
        folder: Folder with `model.tflite`.
        threads: Threads per operation; 0: one.
    """

    def __init__(self, folder: Path, threads: int):
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(str(folder / "model.tflite"), num_threads=threads or None)
        self.encoder, self.decoder = map(interpreter.get_signature_runner, ("encode", "decode"))

    def encode(self, source_ids: Any) -> dict[str, Any]:
        """Return the outputs of the encoder for source ids (1, S), by name."""
        return self.encoder(source_ids=source_ids.astype("int32"))

    def empty(self, rows: int, length: int) -> dict[str, Any]:
        """Return caches of zeros: keys and values (rows, N, length, H), or states (rows, 1, D)."""
        past = {}
        for name, entry in self.decoder.get_input_details().items():
            if name.startswith("past_"):
                sizes = [length if size < 0 else size for size in entry["shape_signature"][1:]]
                past[name] = np.zeros((rows, *sizes), "float32")
        return past

    def step(self, tokens: Any, position: int, memory: dict[str, Any], past: dict[str, Any]) -> Any:
        """Return the logits (rows, V) after tokens (rows,), and the new caches."""
        ids = tokens[:, None].astype("int32")
        outputs = self.decoder(token_ids=ids, position=np.int32(position), **memory, **past)
        present = {name: outputs[name.replace("past", "present")] for name in past}
        return outputs["logits"], present


class GraphTranslator:
    """A translator that runs exported graphs.

    Args:
        folder: Folder with `encoder.onnx` and `decoder.onnx`, or `model.tflite`; and
            `translator.json`, `source.spm` and `target.spm`.
        threads: Threads per operation; 0: the runtime's default.
    """

    def __init__(self, folder: str | Path, threads: int = 0):
        folder = Path(folder)
        kind = LiteRTGraphs if (folder / "model.tflite").is_file() else OnnxGraphs
        self.graphs = kind(folder, threads)
        self.facts = json.loads((folder / "translator.json").read_text("utf-8"))
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(str(folder / f"{x}.spm"))
            for x in ("source", "target")
        )
        self.source_ids = {piece: i for i, piece in enumerate(self.facts["source_pieces"])}

    def translate(self, text: str, **options: Any) -> str:
        """Return the best translation of a text, or "" if the text has no tokens.

        Args:
            text: The source text; it is cut to the model's `max_length` tokens.
            options: Search options by name, see `OPTIONS`; those not given keep their defaults.
        """
        return self.nbest(text, **options)[0][0]

    def nbest(self, text: str, **options: Any) -> list[tuple[str, float]]:
        """Return the translations that the search finds, with their scores, best first.

        The arguments are those of `translate`. The result for a text without tokens is
        [("", 0.0)].
        """
        options = {**OPTIONS, **self.facts.get("search", {}), **options}
        facts = self.facts
        before, after = facts["source_frame"]
        unknown = facts["unk_id"]
        # Symbols such as ">>fra<<" are tokens themselves: split the text at them.
        symbols = facts["symbols"]
        parts = re.split(f"({symbols})", text, flags=re.DOTALL) if symbols else [text]
        pieces: list[str] = []
        for i, part in enumerate(parts):
            pieces += [part] if i % 2 else self.source.encode(part, out_type=str)
        ids = [self.source_ids.get(piece, unknown) for piece in pieces]
        if not ids:
            return [("", 0.0)]
        ids = ids[: facts["max_length"] - len(before) - len(after)]
        ids = [*before, *ids, *after]
        factor, extra = options["max_length_factor"], options["max_extra_length"]
        longest = options["max_length"] or (len(ids) * factor if factor else len(ids) + extra)
        limit = min(longest, facts["max_length"] - 1)
        first = facts["target_frame"][0]
        hypotheses = beam_search(self.graphs, np.array([ids]), limit, first, facts, options)
        return [(self._text(ids), float(score)) for score, ids in hypotheses]

    def _text(self, ids):
        skipped = set(self.facts["skipped_ids"])
        pieces = [self.facts["target_pieces"][i] for i in ids if i not in skipped]
        return self.target.decode_pieces(pieces).replace("\N{LOWER ONE EIGHTH BLOCK}", " ").strip()


def beam_search(
    graphs: Any, source_ids: Any, limit: int, first: Any, facts: Any, options: Any
) -> list[tuple[float, list[int]]]:
    """Search for translations of one text; return pairs of a score and ids, best first.

    Args:
        graphs: The graphs of the model.
        source_ids: (1, S).
        limit: Maximum tokens of a translation.
        first: Ids of the tokens that a translation must begin with.
        facts: At least `bos_id`, `eos_id` and `never_ids`.
        options: Values of all `OPTIONS`.
    """
    beam_size, wanted = options["beam_size"], options["num_hypotheses"] or options["beam_size"]
    as_transformers, forced_eos = options["scoring"] == "transformers", options["forced_eos"]
    shrinks = options["scoring"] == "marian"
    ends = np.atleast_1d(facts["eos_id"])  # one EOS token, or several
    memory = graphs.encode(source_ids)
    memory = {x: np.repeat(y, beam_size, axis=0) for x, y in memory.items()}
    past = graphs.empty(beam_size, limit)
    tokens = np.full(beam_size, facts["bos_id"])
    totals = np.where(np.arange(beam_size) == 0, 0.0, NEVER)  # start with one beam
    rows: list[list[int]] = [[] for _ in range(beam_size)]
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, limit + 1):
        logits, past = graphs.step(tokens, length - 1, memory, past)
        logs = log_softmax(logits)
        logs[:, facts["never_ids"]] = NEVER
        forced = first[length - 1 : length]
        forced = ends if length == limit and forced_eos else forced
        if len(forced):
            if as_transformers:  # forced tokens have probability 1
                logs[:] = 0.0
            logs[:, ~np.isin(np.arange(logs.shape[1]), forced)] = NEVER
        scores = (totals[:, None] + logs).ravel()
        count = min((1 + len(ends)) * beam_size, scores.size)
        best = np.sort(np.argpartition(scores, -count)[-count:])
        best = best[np.argsort(-scores[best], kind="stable")]
        if shrinks:  # each finished hypothesis narrows the beam by one
            scores[best[beam_size - len(finished) :]] = NEVER
        beams, chosen = best // logs.shape[1], best % logs.shape[1]
        penalty = _penalty(length, options)
        is_end = np.isin(chosen, ends)
        for place in range(beam_size):
            if (is_end[place] or length == limit) and scores[best[place]] > NEVER / 2:
                last = [] if is_end[place] else [int(chosen[place])]
                finished.append((scores[best[place]] / penalty, rows[beams[place]] + last))
        finished = sorted(finished, key=lambda x: -x[0])[:beam_size]
        going_on = np.flatnonzero(~is_end)[:beam_size]
        if length == limit or len(going_on) < beam_size:
            break
        beams, tokens, totals = beams[going_on], chosen[going_on], scores[best[going_on]]
        decisive = finished[-1 if as_transformers else 0][0] if finished else NEVER
        ends_here = options["early_stopping"] or shrinks or decisive >= totals[0] / penalty
        if len(finished) == beam_size and ends_here:
            break
        # No unfinished hypothesis can score higher than if all its further tokens were certain.
        highest = totals[0] / _penalty(limit, options)
        if len(finished) >= wanted and not shrinks and finished[wanted - 1][0] >= highest:
            break
        rows = [[*rows[beam], int(token)] for beam, token in zip(beams, tokens, strict=True)]
        past = {name: value[beams] for name, value in past.items()}
    return finished


def _penalty(length, options):
    base = (5 + length) / 6 if options["scoring"] == "wu" else length
    return base ** options["length_penalty"]


def log_softmax(logits: Any) -> Any:
    """Return the log-probabilities of logits (..., V)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


if __name__ == "__main__":
    translator = GraphTranslator(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    for line in sys.stdin:
        print(translator.translate(line.rstrip("\n")), flush=True)
