"""What everyone needs and nobody owns: checks of arguments, array helpers, workers and files.

`checks` turns arguments into plain numbers or says what is wrong with them. `arrays` has bits,
batches and sums in a fixed order, `bisection` finds where a condition begins to hold, and
`randomness` draws words from the operating system or from a generator. `workers` are processes, and
`store` keeps files that are whole or not there. Nothing here knows of codes or of privacy.
"""
