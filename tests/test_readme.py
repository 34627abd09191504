"""The README's own script, run as it stands."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_a_users_own_functional_model_trains():
    (script,) = re.findall(
        r"<!-- not run: it trains: .*? -->\n```python\n(.*?)```", README, re.DOTALL
    )
    lines = [line for line in script.splitlines() if line.strip()]
    assert len(lines) <= 25
    scope = {}
    exec(compile(script, "README.md", "exec"), scope)
    losses = scope["history"].history["loss"]
    assert losses[-1] < losses[0]
    assert scope["model"].count_params() > 0
