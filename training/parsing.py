"""Train a constituency parser, a small Transformer from words to trees.

    python -m training.parsing --treebank treebank.zip --output saved_models/parser

`keras-transformer train --task parse` does the same. The flow is in
`keras_transformer/training/parsing.py`.
"""

from keras_transformer.training.parsing import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
