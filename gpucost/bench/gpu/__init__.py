"""What runs inside the measuring processes: PyTorch is imported here and nowhere else."""
