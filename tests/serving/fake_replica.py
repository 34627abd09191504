"""A replica without models or Keras, which starts in milliseconds; its translations are capitals.

Some texts are orders: "die" ends the process, "die once" if it was not obeyed before, "wait" waits
for the file `go`, "bad" is refused, "fail" raises an error, "facts" tells of the process.
"""

import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

spec = importlib.util.spec_from_file_location("replica", sys.argv[1])
replica = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replica)


def obeyed(text, folder):
    if text == "die" or (text == "die once" and not (folder / "died").exists()):
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if text == "wait":
        (folder / f"waits-{os.getpid()}").touch()
        while not (folder / "go").exists():
            time.sleep(0.005)
    if text == "bad":
        raise ValueError("a bad text")
    if text == "fail":
        raise KeyError("a bug")
    if text == "facts":
        device = os.environ.get("CUDA_VISIBLE_DEVICES")
        return json.dumps([os.getpid(), device, sorted(os.sched_getaffinity(0))])
    return text.upper()


def load(specifications, device, options):
    print("a library prints this")
    folder = Path(*specifications)
    version = (folder / "version").read_text()
    if version == "broken":
        raise ValueError("the models are broken")
    if version == "slow" and device == "0":
        time.sleep(60)
    facts = dict(
        name="fake",
        version=["1", 1.0, []],
        folder=str(folder),
        pairs=[[["en", "de"], ["en", "de"]]],
        default=["en", "de"],
        max_length=None,
        can_attend=False,
        estimated=None,
        can_score=False,
        takes_terms=False,
        takes_style=False,
    )

    def compute(name, number, pair, method, texts, num_hypotheses, tokens_per_batch):
        assert (name, number, pair, method) == ("fake", "1", ["en", "de"], "search")
        return [[obeyed(text, folder), version][:num_hypotheses] for text in texts]

    return [facts], compute


replica.serve(load)
