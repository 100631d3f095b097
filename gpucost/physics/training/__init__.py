"""The physics of training: steps, memory, layouts."""
