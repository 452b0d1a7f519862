"""The shipped operators."""
