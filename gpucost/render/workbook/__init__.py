"""The workbook: inputs, live formulas and what follows from them. One module per sheet or group of sheets."""
