"""A worker: reads the lines of a shard, translates or scores them, and writes the output.

`python -m keras_transformer.corpora.worker` is a process of the local executor: it reads the job
and then shards as JSON lines from stdin and answers each with a line on stdout. It ends when its
stdin is closed, which also happens if the driver is killed.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from keras_transformer.backend import BACKEND, count_gpus, keep_compilations
from keras_transformer.corpora.results import Results
from keras_transformer.corpora.shards import Shard, ShardReader
from keras_transformer.data.lines import one_line
from keras_transformer.system.child import serve
from keras_transformer.system.failures import BAD_INPUT, FULL, in_one_line
from keras_transformer.translate.translator import Translator

TRIES = 3  # maximum attempts at a shard, each by a new process after a failure


class Worker:
    """A worker: processes shards of a job with a model, which it loads at the first shard.

    Args:
        job: Values of a `job.Job`.
    """

    def __init__(self, job: dict[str, Any]):
        self.job = job
        self.results = Results(job["output"], job["suffix"], job["run"])
        self._reader = ShardReader()
        self._translator: Translator | None = None

    def do(self, shard: Shard) -> dict[str, Any]:
        """Write the output of a shard, or give the shard up; return the answer.

        A shard is given up if its input is bad, or after `TRIES` attempts.

        Returns:
            The shard's `number` and `lines`; if there were warnings, their number as `warnings` and
            the first as `warning`; for a shard that was given up, its `error`; if no shard can
            succeed, the error as `stop`, with its `errno` or None.

        Raises:
            Exception: If the attempt failed, but another may succeed. End the process then, because
                its state is unknown, and send the shard to a new one.
        """
        answer: dict[str, Any] = {"number": shard.number, "lines": shard.lines}
        try:
            return answer | self._attempt(shard)
        except OSError as error:
            if error.errno not in FULL:
                raise
            self.results.forget(shard)
            return answer | _stop(error)

    def _attempt(self, shard):
        """Attempt a shard; return what `do` returns besides the shard's number and lines."""
        if self.results.is_done(shard):  # a process wrote it, and died before it answered
            return {}
        try:  # an attempt that cannot be noted ends the job: else it could be repeated forever
            if self.results.attempts(shard) >= TRIES:
                return {"error": self.results.set_apart(shard)}
            self.results.begin(shard)
            if self._translator is None:
                if self.job.get("gpus") and not count_gpus():
                    raise ValueError(f"gpus must be 0: {BACKEND} sees none in a worker process")
                self._translator = Translator.load(self.job["model"], **self.job["loading"])
        except BAD_INPUT as error:
            return _stop(error)
        except Exception as error:
            self._failed(shard, error)
            raise
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                records = self._reader.records(shard)
                lines = METHODS[self.job["method"]](self._translator, records, self.job["options"])
                self.results.write(shard, lines)
        except ValueError as error:  # the input is bad: another attempt would fail, too
            self.results.failed(shard, in_one_line(error))
            return {"error": self.results.set_apart(shard)}
        except Exception as error:
            if getattr(error, "errno", None) not in FULL:
                self._failed(shard, error)
            raise
        return {"warnings": len(caught), "warning": str(caught[0].message)} if caught else {}

    def _failed(self, shard, error):
        self.results.failed(shard, f"{type(error).__name__}: {in_one_line(error)}")


def translated(translator: Translator, records: Sequence, options: dict[str, Any]) -> list[str]:
    """Return the best translation of each text, as one line."""
    return [one_line(x) for x in translator.translate([text for (text,) in records], **options)]


def ranked(translator: Translator, records: Sequence, options: dict[str, Any]) -> list[str]:
    """Return the n-best list of each text, as JSON."""
    nbest_lists = translator.nbest([text for (text,) in records], **options)
    return [
        _json([{"text": x.text, "score": round(x.score, 4)} for x in hypotheses])
        for hypotheses in nbest_lists
    ]


def scored(translator: Translator, records: Sequence, options: dict[str, Any]) -> list[str]:
    """Return log-probability and lengths of each pair, as JSON.

    The lengths count the tokens and their EOS. A pair longer than the model's `max_length` has the
    log-probability null, or raises ValueError if the option `strict` is set.
    """
    tokenizer, limit = translator.tokenizer, translator.config.max_length
    strict = options.pop("strict") if "strict" in (options := dict(options)) else False
    sources, targets = ([pair[side] for pair in records] for side in (0, 1))
    ids = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    frames = tokenizer.source_frame, tokenizer.target_frame
    mask = [strict or max(len(x), len(y)) <= limit for x, y in zip(*ids, strict=True)]
    kept = [[x for x, fit in zip(side, mask, strict=True) if fit] for side in (sources, targets)]
    scores = iter(translator.score(*kept, **options))
    lines = []
    for fit, *tokens in zip(mask, *ids, strict=True):
        lengths = [len(x) - len(frame.before) for x, frame in zip(tokens, frames, strict=True)]
        score = round(next(scores), 4) if fit else None
        names = ("log_probability", "source_tokens", "target_tokens")
        lines.append(_json(dict(zip(names, (score, *lengths), strict=True))))
    return lines


METHODS = {"translate": translated, "nbest": ranked, "score": scored}


def _stop(error):
    number, path = getattr(error, "errno", None), getattr(error, "filename", None)
    problem = error.strerror if number else in_one_line(error)
    return {"stop": f"{problem}: {path}" if path else problem, "errno": number}


def _json(value):
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Answer the driver's requests, which come as lines on stdin."""
    keep_compilations()
    worker = None

    def answer(asked):
        nonlocal worker
        if worker is None:
            worker = Worker(asked)
            return {"ready": True}
        try:
            return worker.do(Shard.of(asked))
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    serve(answer)


if __name__ == "__main__":
    main()
