"""Train a small model that speaks digits, judged by a recognizer.

    python -m training.speech_synthesis --data-folder data --recognizer saved_models/digits

`keras-transformer train --task speak` does the same. The flow is
`keras_transformer/training/speech_synthesis.py`: data, model, `compile`, `fit`, measures.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.speech_synthesis import train

if __name__ == "__main__":
    main(train)
