"""Tune a translator or a language model to preferences, or train a reward model of them.

    python -m training.preference_tuning --start-from saved_models/multi30k --train pairs.jsonl \\
        --output saved_models/tuned

`keras-transformer train --task preferences` does the same. The flow is in
`keras_transformer/training/preference_tuning.py`.
"""

from keras_transformer.training.preference_tuning import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
