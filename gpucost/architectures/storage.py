from gpucost.types import Architecture
def stored(made, config, text, fields): return made
def beside(made, file): return made
