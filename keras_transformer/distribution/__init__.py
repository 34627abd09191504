"""Training on several devices and processes: ranks, connections, layouts of weights."""

from keras_transformer.distribution.devices import Spread, distribute, gather

__all__ = ["Spread", "distribute", "gather"]
