"""What maintainers run beside the product: never part of the wheel."""
