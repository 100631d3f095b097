"""The engine of serving: offers meet the physics of serving, and both meet a demand."""
