"""Physics: seconds, bytes and FLOP of training and serving. It never sees a price."""
