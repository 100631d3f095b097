"""Money: rates, terms, cash flows, ownership. It never sees a FLOP."""
