"""The version, written once: the packaging reads it from here without importing convdsl."""

__version__ = "0.1.0"
