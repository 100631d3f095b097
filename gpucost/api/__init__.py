"""The library's face: functions that answer a question and results that render themselves. No arithmetic here."""
