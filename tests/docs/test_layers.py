"""The complete script of `docs/layers.md`: it trains."""

import re

from .shell import ROOT


def test_a_functional_model_of_our_layers_trains():
    page = (ROOT / "docs/layers.md").read_text("utf-8")
    (script,) = re.findall(r"<!-- not run: it trains: .*?\n```python\n(.*?)```", page, re.DOTALL)
    lines = [line for line in script.splitlines() if line.strip()]
    assert len(lines) <= 25
    scope = {}
    exec(compile(script, "layers.md", "exec"), scope)
    losses = scope["history"].history["loss"]
    assert losses[-1] < losses[0]
    assert scope["model"].count_params() > 0
