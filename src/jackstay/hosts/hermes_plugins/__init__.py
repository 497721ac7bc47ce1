"""What does Hermes load? Entry points as modules; a linked directory is a copy of `linked.py`."""
