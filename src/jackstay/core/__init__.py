"""The words: values without clock, chance or input and output."""
