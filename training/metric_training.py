"""Train a metric of translations, such as COMET, from scored translations.

    python -m training.metric_training --train scored.tsv --test scored.test.tsv \\
        --output saved_models/metric

`keras-transformer train --task metric` does the same. The flow is in
`keras_transformer/training/metric_training.py`.
"""

from keras_transformer.training.metric_training import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
