"""What property tests draw their examples from."""

from hypothesis import strategies as st

from ldpcash import PolarCode


@st.composite
def codes(draw, max_m=7, max_k=128):
    """Any code, with any dynamic frozen bits."""
    n = 2 ** draw(st.integers(0, max_m))
    k = draw(st.integers(1, min(n, max_k)))
    order = draw(st.permutations(range(n)))
    info, frozen = order[:k], order[k:]
    dynamic = {}
    for index in frozen[: draw(st.integers(0, len(frozen)))]:
        sources = [source for source in info if source < index]
        if sources:
            dynamic[index] = sources[: draw(st.integers(1, len(sources)))]
    return PolarCode(n, info, dynamic)
