"""Training on several devices and in several processes: processes, places, layouts."""

from keras_transformer.distribution.devices import Spread, distribute, gather

__all__ = ["Spread", "distribute", "gather"]
