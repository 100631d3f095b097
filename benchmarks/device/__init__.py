"""Scripts that measure kernels, collectives, training steps and decode steps on real GPUs, with public PyTorch only."""
