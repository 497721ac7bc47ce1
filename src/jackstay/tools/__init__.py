"""The built-in tools, and how functions become tools."""
