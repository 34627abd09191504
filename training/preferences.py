"""Tune a translator or a language model to preferences, or train a reward model of them.

    python -m training.preferences --start-from saved_models/multi30k --train pairs.jsonl \\
        --output saved_models/tuned

`keras-transformer train --task preferences` does the same. The flow is
`keras_transformer/training/preferences.py`: data, model, `compile`, `fit`, measures.
"""

from keras_transformer.training.preferences import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
