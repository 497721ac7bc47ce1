"""What does Hermes load by entry point? Beside jackstay, so that a broken one can be answered for."""
