"""Codes that need little noise, against brute force and published weight distributions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash import Cash, MLDecoder, PolarCode, SCLDecoder
from ldpcash.beyond.codes import (
    as_polar,
    best_information_set,
    code_for_privacy,
    merit,
    merit_limit,
    quadratic_code,
    with_checks,
)


def span(rows):
    words = np.zeros((1, rows.shape[1]), dtype=np.uint8)
    for row in rows:
        words = np.concatenate([words, words ^ row])
    return {tuple(word) for word in words.tolist()}


class TestAsPolar:
    @given(st.integers(0, 5), st.integers(1, 6), st.integers(0, 2**32))
    def test_has_the_words_that_the_rows_span(self, m, rows, seed):
        generator = np.random.default_rng(seed).integers(0, 2, (rows, 2**m), dtype=np.uint8)
        generator[0, -1] = 1
        code = as_polar(generator)
        assert {tuple(word) for word in code.codebook().tolist()} == span(generator)
        assert 2**code.k == len(span(generator))

    def test_a_polar_code_stays_itself(self):
        code = PolarCode.construct(64, 8)
        assert as_polar(code.encode(np.eye(8, dtype=np.uint8))) == code

    def test_one_row(self):
        assert as_polar([1, 1]) == PolarCode(2, [1])

    def test_refuses_zeros(self):
        with pytest.raises(ValueError, match="generator = all zeros"):
            as_polar([[0, 0]])
        with pytest.raises(ValueError, match="only 0 and 1"):
            as_polar([[0, 2]])
        with pytest.raises(ValueError, match="n = 3: the length must be a power of two"):
            as_polar([[0, 1, 1]])


class TestQuadraticCodes:
    def test_the_code_of_the_paper_s_size(self):
        """Kasami: 2**5 +- 2**2 from every linear function."""
        code = quadratic_code(64, 8)
        assert code.weight_distribution() == {0: 1, 28: 108, 32: 63, 36: 84}
        assert code.sensitivity == 1.5
        assert merit(code) == 7 / 9

    def test_weights(self, subtests):
        """n / 2 and n / 2 +- 2**(m/2 - 1) for even m, +- 2**((m-1)/2) for odd."""
        for m in range(2, 13):
            with subtests.test(m=m):
                n, k = 2**m, m + m // 2
                code = quadratic_code(n, k)
                assert (code.n, code.k) == (n, k)
                off = 2 ** (m // 2 - 1) if m % 2 == 0 else 2 ** ((m - 1) // 2)
                assert set(code.weight_distribution()) == {0, n // 2 - off, n // 2, n // 2 + off}

    def test_are_nested(self):
        small, large = quadratic_code(64, 7).codebook(), quadratic_code(64, 9).codebook()
        assert {*map(tuple, small.tolist())} <= {*map(tuple, large.tolist())}

    def test_more_forms_have_a_lower_rank(self):
        """Delsarte and Goethals: rank 4 and 6 at m = 6, so weights 32, 32 +- 4 and 32 +- 8."""
        assert set(quadratic_code(64, 15).weight_distribution()) == {0, 24, 28, 32, 36, 40}

    def test_all_forms_are_the_second_order_reed_muller_code(self):
        """But for the all-one word: w of 16 words of weight w in RM(2, 4) have a one at a place."""
        words = quadratic_code(16, 10).weight_distribution()
        assert words == {0: 1, 4: 105, 6: 448 - 168, 8: 435, 10: 168, 12: 35}

    @pytest.mark.parametrize("k", [5, 22])
    def test_dimension(self, k):
        with pytest.raises(ValueError, match=r"k = .* from 6 to 21"):
            quadratic_code(64, k)

    @pytest.mark.parametrize("seed", [1, 2])
    def test_a_list_of_32_is_ml(self, seed):
        code = quadratic_code(64, 8)
        rng = np.random.default_rng(seed)
        items = rng.integers(0, 2, (20_000, 8), dtype=np.uint8)
        llr = 1 - 2.0 * code.encode(items) + 1.8 * rng.standard_normal((20_000, 64))
        best = MLDecoder(code).decode(llr)
        np.testing.assert_array_equal(SCLDecoder(code, 32).decode(llr), best)
        few = int((SCLDecoder(code, 8).decode(llr) != best).any(axis=1).sum())
        assert 0 < few < 400  # a list of 8 is nearly there


class TestChecks:
    @pytest.mark.parametrize(("checks", "polynomial"), [(6, 0x61), (11, 0xE21), (16, 0x11021)])
    def test_are_the_remainder_of_long_division(self, checks, polynomial):
        plain = PolarCode.construct(128, 20 + checks)
        code = with_checks(plain, checks)
        assert code.info.tolist() == plain.info[:20].tolist()
        rng = np.random.default_rng(1)
        for item in rng.integers(0, 2, (50, 20), dtype=np.uint8):
            number = int("".join(map(str, item)), 2) << checks
            for shift in range(19, -1, -1):
                if number >> (shift + checks) & 1:
                    number ^= polynomial << shift
            remainder = [int(bit) for bit in f"{number:0{checks}b}"]
            np.testing.assert_array_equal(code.encode(item), plain.encode([*item, *remainder]))

    def test_lower_the_sensitivity(self):
        code = with_checks(PolarCode.construct(64, 14), 6)
        assert code.sensitivity < 2

    def test_are_never_returned_wrong(self):
        """Whatever is received, the decoded item's own word is a word of the code."""
        code = with_checks(PolarCode.construct(64, 20), 6)
        llr = np.random.default_rng(2).standard_normal((100, 64))
        bits, metrics = SCLDecoder(code, 4).decode_list(llr)
        disagreement = np.where(code.encode(bits) == 1, llr[:, None], -llr[:, None])
        np.testing.assert_allclose(np.maximum(disagreement, 0).sum(axis=-1), metrics)

    def test_arguments(self):
        with pytest.raises(ValueError, match=r"checks = 7: choose one of 6, 11, 16"):
            with_checks(PolarCode.construct(64, 20), 7)
        with pytest.raises(ValueError, match="needs more than 6 bits"):
            with_checks(PolarCode.construct(64, 6), 6)
        with pytest.raises(ValueError, match="none dynamic"):
            with_checks(quadratic_code(64, 8), 6)


class TestMerit:
    def test_limit_holds_for_random_codes(self):
        rng = np.random.default_rng(3)
        for _ in range(300):
            n, k = 2 ** int(rng.integers(2, 7)), int(rng.integers(1, 7))
            generator = rng.integers(0, 2, (k, n), dtype=np.uint8)
            if generator.any():
                code = as_polar(generator)
                assert merit(code) <= merit_limit(n, code.k) + 1e-12

    def test_limit_is_reached_by_simplex_codes(self, subtests):
        for m in range(2, 9):
            with subtests.test(m=m):
                assert merit_limit(2**m, m) == merit(code_for_privacy(2**m, m)) == 1

    def test_a_single_word(self):
        assert merit(PolarCode(1, [0])) == 1


class TestBestInformationSet:
    def test_no_set_is_better(self, subtests):
        for n, k in [(2, 1), (8, 3), (8, 4), (8, 5), (16, 4), (16, 5), (16, 6)]:
            with subtests.test(n=n, k=k):
                best = max(merit(PolarCode(n, rows)) for rows in combinations(range(n), k))
                assert merit(best_information_set(n, k)) == best

    def test_wants_a_length(self):
        with pytest.raises(ValueError, match="n = 12: the length must be a power of two"):
            best_information_set(12, 4)

    @pytest.mark.parametrize(("n", "k"), [(128, 3), (8, 9)])
    def test_arguments(self, n, k):
        with pytest.raises(ValueError, match="needs a whole number"):
            best_information_set(n, k)


class TestCodeForPrivacy:
    @pytest.mark.parametrize("n", [8, 64, 128, 256])
    def test_better_than_reliability_alone(self, n, subtests):
        for k in range(1, min(n, 18) + 1):
            with subtests.test(k=k):
                code = code_for_privacy(n, k)
                assert (code.n, code.k) == (n, k)
                assert merit(code) >= merit(PolarCode.construct(n, k))

    def test_longer_is_never_worse(self, subtests):
        for k in (3, 8, 12, 14, 16, 20):
            with subtests.test(k=k):
                merits = [merit(code_for_privacy(2**m, k)) for m in range(5, 12)]
                assert merits == sorted(merits)

    @pytest.mark.parametrize("k", [8, 12, 15, 18, 24])
    def test_a_list_of_32_decodes_it(self, k):
        """Fewer errors than the construction by reliability, at any length. The rates differ by a
        factor of two or more, with hundreds of errors: false alarms far below 1e-6."""
        strength = {8: 8.0, 12: 9.0, 15: 10.0, 18: 11.0, 24: 12.5}[k]
        for n in (64, 256, 1024) if k < 20 else (256, 1024):
            errors = []
            for code in (code_for_privacy(n, k), PolarCode.construct(n, k)):
                rng = np.random.default_rng(k)
                items = rng.integers(0, 2, (1500, k), dtype=np.uint8)
                signals = (1 - 2.0 * code.encode(items)) / np.sqrt(n)
                llr = signals * strength / code.sensitivity + rng.standard_normal((1500, n))
                wrong = SCLDecoder(code, 32).decode(llr) != items
                errors.append(int(wrong.any(axis=1).sum()))
            assert errors[0] < errors[1]

    def test_of_equal_merit_the_one_with_fewer_lightest_words(self):
        """Gold's code of length 128, and not the bent one of length 64 written twice."""
        assert merit(code_for_privacy(128, 8)) == merit(code_for_privacy(64, 8))
        assert code_for_privacy(128, 8) == quadratic_code(128, 8)
        assert code_for_privacy(512, 8).weight_distribution() == {0: 1, 256: 255}

    def test_whole_numbers_of_any_kind(self):
        assert code_for_privacy(64, 8.0) == code_for_privacy(64, 8)
        assert quadratic_code(64, 8.0) == quadratic_code(64, 8)
        assert best_information_set(8, 3.0) == best_information_set(8, 3)

    def test_many_bits(self):
        code = code_for_privacy(1024, 32)  # of RM(2, 10), without the all-one word
        assert code.sensitivity == 3**0.5
        code = code_for_privacy(2048, 128)
        assert len(code.dynamic) == 11
        assert 1.9 < code.sensitivity < 2
        assert code_for_privacy(64, 60).k == 60  # no room for a CRC

    @pytest.mark.parametrize(("n", "k"), [(64, 65), (64, 0), (48, 4)])
    def test_arguments(self, n, k):
        with pytest.raises(ValueError, match=r"^[nk] = "):
            code_for_privacy(n, k)

    def test_the_all_one_row_is_used_where_it_keeps_lighter_rows_out(self):
        assert code_for_privacy(8, 4).weight_distribution() == {0: 1, 4: 14, 8: 1}
        assert code_for_privacy(8, 8).k == 8

    def test_fifty_times_fewer_errors_than_the_paper_s_code(self):
        """At f = 0.7, N = 1000, epsilon = 1.5. The rates are about 0.0424 and 0.0006, 70 to 1, so
        falling below 50 to 1 by chance takes more than five standard deviations: 2e-8."""
        wrong = []
        for code in (PolarCode.construct(64, 8), code_for_privacy(64, 8)):
            rng = np.random.Generator(np.random.SFC64(1))
            items = rng.integers(0, 2, (600_000, 8), dtype=np.uint8)
            cash = Cash(code, 1.5, decoder=SCLDecoder(code, 16))
            bits = cash.estimate(cash.mean_reports(items, 0.7, 1000, rng)).bits
            wrong.append(int((bits != items).any(axis=1).sum()))
        assert wrong[0] > 50 * wrong[1]
