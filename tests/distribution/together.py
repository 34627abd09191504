"""A program: one of several processes, which train tiny models together."""

import json
import sys
from pathlib import Path

from keras_transformer.distribution import distribute
from tests.distribution.training import trained

for number, (family, layout, options) in enumerate(json.loads(sys.argv[1])):
    spread = distribute(**layout)
    folder = Path(sys.argv[2], str(number))
    _, history = trained(family, spread.part, folder, **options)
    if spread.part[0] == 0:
        folder.joinpath("history.json").write_text(json.dumps(history))
