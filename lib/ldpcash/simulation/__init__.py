"""Monte Carlo: protocols run in large numbers, with nothing lost and nothing left to chance.

`points` are settings in plain parameters, `trials` simulates chunks of them, and `sweeps` goes on
until each has seen enough errors, on any executor. `version` says which code a stored result hangs
on, and `progress` how far a sweep has come.
"""
