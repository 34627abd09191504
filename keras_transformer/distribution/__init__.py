"""Training on several devices and in several processes: who is there, and what lies where."""

from keras_transformer.distribution.devices import Spread, distribute, gather

__all__ = ["Spread", "distribute", "gather"]
