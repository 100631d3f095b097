"""What every question shares: facts met by supply, terms, places and pools."""
