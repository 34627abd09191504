"""Train a small speech model that transcribes spoken digits.

    python -m training.speech_recognition --data-folder data --output saved_models/digits

`keras-transformer train --task transcribe` does the same. The flow is in
`keras_transformer/training/speech_recognition.py`.
"""

from keras_transformer.training.runs import main
from keras_transformer.training.speech_recognition import train

if __name__ == "__main__":
    main(train)
