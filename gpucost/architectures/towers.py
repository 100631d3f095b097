def with_towers(made, config, text): return made
