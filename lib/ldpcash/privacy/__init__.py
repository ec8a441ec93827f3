"""How much noise a promise of privacy costs, and how that noise is drawn.

`calibration` has the analytic Gaussian mechanism and randomized response. `grid` puts Gaussian
noise on a grid, so that floating point gives nothing away, and `discrete` draws it exactly.
`answers` is the randomizer for clients of whom most hold nothing.
"""
