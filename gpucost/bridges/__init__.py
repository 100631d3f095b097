"""From one figure to another: the difference of two answers, split into effects that add up to it exactly."""
