"""Train a tagger of words, a small BERT or a pretrained encoder.

    python -m training.token_classification --train train.conll --test test.conll \\
        --output saved_models/tagger

`keras-transformer train --task tag` does the same. The flow is in
`keras_transformer/training/token_classification.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.token_classification import train

if __name__ == "__main__":
    main(train)
