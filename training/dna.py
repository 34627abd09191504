"""Train a small BERT that recognises splice junctions in DNA.

    python -m training.dna --sequences splice.data.gz --output saved_models/dna

`keras-transformer train --task dna` does the same. The flow is in
`keras_transformer/training/dna.py`.
"""

from keras_transformer.training.dna import train
from keras_transformer.training.runs import main

if __name__ == "__main__":
    main(train)
