"""The NumPy backend: loop programs as readable Python modules that import NumPy alone."""

from convdsl.backends.numpy.backend import NumpyBackend

__all__ = ["NumpyBackend"]
