"""Train a small encoder, or a pretrained one, on pairs of texts: similar vectors, similar meaning.

    python -m training.text_embedding --train en-de.tsv --train en-fr.tsv \\
        --validation dev.tsv --output saved_models/embedder

`keras-transformer train --task embed` does the same. The flow is in
`keras_transformer/training/text_embedding.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.text_embedding import train

if __name__ == "__main__":
    main(train)
