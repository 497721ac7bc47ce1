"""How a run's context is kept within the model's window."""
