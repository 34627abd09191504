"""Train a text classifier, a small BERT or a pretrained encoder.

    python -m training.text_classification --train train.tsv --validation dev.tsv --test test.tsv

`keras-transformer train --task classify` does the same. The flow is in
`keras_transformer/training/text_classification.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.text_classification import train

if __name__ == "__main__":
    main(train)
