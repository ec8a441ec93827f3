"""Points: plain parameters, checked at once, and options that a protocol itself declares."""

import json
import math
import pickle

import numpy as np
import pytest

from ldpcash import PROTOCOLS, Cash, Point, PolarCode, Prot, SCLDecoder, parameters_of, sweep
from ldpcash.simulation.points import option_names

BIORTHOGONAL = (31, 47, 55, 59, 61, 62, 63)


def point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000, **others):
    return Point(protocol=protocol, epsilon=epsilon, frequency=frequency, clients=clients, **others)


class TestPoint:
    def test_says_all_of_what_it_stands_for(self):
        cash, prot = point(), point("Prot")
        assert (cash.decoder, cash.list_size, cash.exact, cash.delta) == ("SCL", 8, False, 1e-4)
        assert cash.options == {"delta": 1e-4}
        assert (prot.decoder, prot.list_size, prot.exact) == ("ML", None, None)
        assert (prot.empty, prot.decision, prot.frequency_from) == ("uniform", "hard", "mean")
        assert prot.options.keys() == {"empty", "decision", "frequency_from"}

    @pytest.mark.parametrize(
        "same",
        [
            {"decoder": "SCL"},
            {"list_size": 8},
            {"method": "pw", "delta": 1e-4, "exact": False},
            {"epsilon": np.float32(2), "clients": np.int64(1000), "delta": np.float64(1e-4)},
            {"clients": 1e3, "n": np.uint8(64), "list_size": np.int8(8)},
        ],
    )
    def test_is_the_same_with_its_defaults_given(self, same):
        assert point(**same) == point()
        assert point(**same).key == point().key

    @pytest.mark.parametrize(
        ("one", "same"),
        [
            ({"method": "ga", "design_sigma": 1}, {"method": "ga", "design_sigma": 1.0}),
            ({"method": "ga", "design_sigma": np.float32(1)}, {"method": "ga"}),
            ({"frequency": -0.0}, {"frequency": 0}),
            ({"k": 7, "info": np.array(BIORTHOGONAL)}, {"k": 7, "info": list(BIORTHOGONAL)}),
            ({"k": 7, "info": BIORTHOGONAL[::-1]}, {"k": 7, "info": BIORTHOGONAL}),
            ({"k": 1, "info": [3], "dynamic": {}}, {"k": 1, "info": [3]}),
            (
                {"k": 1, "info": [3], "dynamic": {9: [3]}},
                {"k": 1, "info": [3], "dynamic": [(9, [3])]},
            ),
        ],
    )
    def test_equal_points_have_one_key(self, one, same):
        assert point(**one) == point(**same)
        assert point(**one).key == point(**same).key

    @pytest.mark.parametrize(
        "other",
        [
            {"epsilon": 2.0000001},
            {"frequency": 0.7},
            {"clients": 999},
            {"n": 128},
            {"k": 7},
            {"method": "rm"},
            {"decoder": "ML"},
            {"list_size": 4},
            {"exact": True},
            {"delta": 1e-5},
            {"protocol": "Prot"},
        ],
    )
    def test_has_a_key_of_its_own(self, other):
        assert point(**other).key != point().key

    def test_a_code_s_parameters_build_it_again(self):
        code = PolarCode(8, [3, 5, 6], {7: [3, 6]})
        assert point(**parameters_of(code)).build().code == code

    def test_its_key_does_not_change_when_options_are_added(self):
        """Streams hang on it, and so does every figure: only parameters that are set may count."""
        given = {k: v for k, v in point().parameters.items() if v is not None}
        assert set(given) == {
            *("protocol", "epsilon", "frequency", "clients", "n", "k", "method"),
            *("decoder", "list_size", "exact", "delta"),
        }
        assert point().key == "9bde0fbc7f1250246e8d4e3da31a62ae"

    def test_builds_its_protocol(self):
        built = point("Prot", decoder="SCL", list_size=4, decision="soft", empty="positive").build()
        assert isinstance(built, Prot)
        assert isinstance(built.decoder, SCLDecoder)
        assert (built.decoder.list_size, built.decision, built.empty) == (4, "soft", "positive")
        assert isinstance(point().build(), Cash)
        code = point(k=7, info=BIORTHOGONAL).build().code
        assert code.info.tolist() == list(BIORTHOGONAL)
        code = point(method="ga", design_sigma=1.5, n=256).build().code
        assert np.array_equal(code.info, PolarCode.construct(256, 8, "ga", 1.5).info)

    def test_travels(self):
        there = pickle.loads(pickle.dumps(point()))
        assert there == point()
        assert there.key == point().key
        assert json.loads(json.dumps(point().parameters))["epsilon"] == 2.0

    def test_its_true_frequency_is_that_of_whole_clients(self):
        assert point(frequency=1 / 3, clients=100).true_frequency == 0.33

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"protocol": "Cache"}, "protocol = 'Cache': choose one of Cash, Prot"),
            ({"epsilon": 0.0}, "epsilon = 0.0: needs"),
            ({"epsilon": math.nan}, "epsilon = nan: needs"),
            ({"delta": 1.0}, "delta = 1.0: needs"),
            ({"frequency": 1.5}, "frequency = 1.5: needs a number from 0 to 1"),
            ({"clients": 0}, "clients = 0: needs a whole number from 1"),
            ({"clients": 10.5}, "clients = 10.5: needs a whole number from 1"),
            ({"clients": math.inf}, "clients = inf: needs a whole number from 1"),
            ({"clients": "many"}, "clients = 'many': needs a whole number from 1"),
            ({"clients": 10**19}, "clients = 10000000000000000000: needs a whole number from 1 to"),
            ({"epsilon": "2"}, "epsilon = '2': needs a number"),
            ({"epsilon": True}, "epsilon = True: needs a number"),
            ({"frequency": None}, "frequency = None: needs a number"),
            ({"delta": "small"}, "delta = 'small': needs a number"),
            ({"design_sigma": "1"}, "design_sigma = '1': needs a number"),
            ({"exact": "no"}, "exact = 'no': needs True or False"),
            ({"info": 5}, "info = 5: needs k whole numbers"),
            ({"decoder": ["SCL"]}, r"decoder = \['SCL'\]: choose one of SCL, ML"),
            ({"decoder": ""}, "decoder = '': choose one of SCL, ML"),
            ({"method": ""}, "method = ''"),
            ({"n": 60}, "n = 60: the length must be a power of two"),
            ({"k": 65}, "k = 65: needs a whole number from 1 to 64"),
            ({"info": BIORTHOGONAL}, r"info = \(31, .*\): needs k = 8 indices"),
            ({"info": BIORTHOGONAL, "k": 7, "method": "pw"}, "method = 'pw': give it or info"),
            ({"method": "magic"}, "method = 'magic'"),
            ({"dynamic": {63: [31]}}, "dynamic = .*: give info with it"),
            ({"k": 1, "info": [31], "dynamic": 5}, "dynamic = 5"),
            ({"k": 1, "info": [31], "dynamic": {30: [31]}}, "dynamic = .*: 31 comes after 30"),
            ({"decoder": "BP"}, "decoder = 'BP': choose one of SCL, ML"),
            ({"decoder": "ML", "list_size": 4}, "list_size = 4: MLDecoder has no such option"),
            ({"list_size": 0}, "list_size = 0: needs a whole number from 1"),
            ({"empty": "uniform"}, "empty = 'uniform': Cash has no such option"),
            ({"protocol": "Prot", "delta": 1e-4}, "delta = 0.0001: Prot has no such option"),
            ({"protocol": "Prot", "empty": "zero"}, "empty = 'zero': choose one of"),
            ({"k": 20, "decoder": "ML"}, r"code = \(64, 20\): an ML decoder holds all codewords"),
        ],
    )
    def test_a_wrong_parameter_is_named_at_once(self, wrong, sentence):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            point(**wrong)


class Own(Cash):
    """A protocol with options of its own, one that has to be given and one that has a default."""

    def __init__(self, code, epsilon, decoder=None, *, shrink, trust=0.5):
        super().__init__(code, epsilon, decoder=decoder)
        self.trust = 100 * trust  # what it keeps under that name is its own affair
        self.sigma *= shrink


class NoDelta(Cash):
    """It takes less than the class that it is derived from."""

    def __init__(self, code, epsilon, decoder=None):
        super().__init__(code, epsilon, 1e-5, decoder)


class Anything(Cash):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)


class TestOptions:
    @pytest.fixture(autouse=True)
    def entered(self, monkeypatch):
        for kind in (Own, NoDelta, Anything):
            monkeypatch.setitem(PROTOCOLS, kind.__name__, kind)

    def test_are_those_of_the_protocol_s_signature(self):
        here = point("Own", shrink=np.float32(0.5))
        assert here.options == {"shrink": 0.5, "trust": 0.5}
        assert (here.shrink, here.trust) == (0.5, 0.5)
        assert here.build().sigma == 0.5 * Cash(PolarCode.construct(64, 8), 2.0).sigma
        assert option_names()[:4] == ["delta", "empty", "decision", "frequency_from"]
        assert option_names()[-2:] == ["shrink", "trust"]

    def test_that_cannot_be_are_said_at_construction(self, monkeypatch):
        class Unknown(SCLDecoder):
            pass

        class OwnDecoder(Cash):
            def __init__(self, code, epsilon, decoder=None):
                super().__init__(code, epsilon, decoder=decoder or Unknown(code))

        class NoDecoder(Cash):
            def __init__(self, code, epsilon):
                super().__init__(code, epsilon)

        class Clash(Cash):
            def __init__(self, code, epsilon, decoder=None, clients=5):
                super().__init__(code, epsilon, decoder=decoder)

        for kind, message in (
            (OwnDecoder, "decoder of 'OwnDecoder' = .*Unknown"),
            (NoDecoder, "protocol = 'NoDecoder': cannot be built"),
            (Clash, "Clash has an option 'clients': a point has that already"),
        ):
            monkeypatch.setitem(PROTOCOLS, kind.__name__, kind)
            with pytest.raises(ValueError, match=message):
                point(kind.__name__)
        with pytest.raises(ValueError, match=r"protocol = 'Anything': cannot be built.*delt"):
            point("Anything", delt=1e-3)

    def test_do_not_change(self):
        here = point("Own", shrink=0.5)
        here.options["shrink"] = 1.0
        assert here.shrink == 0.5

    def test_tell_points_apart_and_travel(self):
        one, other = point("Own", shrink=0.5), point("Own", shrink=0.5, trust=0.25)
        assert one.key != other.key
        assert one == point("Own", shrink=0.5, trust=0.5)
        assert pickle.loads(pickle.dumps(other)) == other
        assert hash(other) == hash(pickle.loads(pickle.dumps(other)))

    def test_a_whole_number_where_a_float_is_expected_is_one(self):
        assert point("Own", shrink=1, trust=1).key == point("Own", shrink=1, trust=1.0).key

    def test_one_that_takes_anything_is_given_what_is_given(self):
        assert point("Anything", delta=1e-3).options == {"delta": 1e-3}
        assert point("Anything").options == {}

    def test_a_protocol_that_takes_less_than_its_base_runs(self, tmp_path):
        [row] = sweep([point("NoDelta")], seed=1, max_trials=1024, workers=1, store=tmp_path)
        assert row.point.options == {}
        assert "delta" not in row.point.parameters
        assert row.errors > 0

    def test_reach_the_trials(self, tmp_path):
        points = [point("Own", epsilon=1.0, shrink=shrink) for shrink in (1.0, 0.5)]
        loud, quiet = sweep(points, seed=1, max_trials=2048, workers=1, store=tmp_path)
        assert quiet.errors < loud.errors / 2

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({}, "shrink is missing: Own needs it"),
            ({"shrink": 1.0, "delta": 1e-4}, "delta = 0.0001: Own has no such option"),
            ({"shrink": 1.0, "trust": "much"}, "trust = 'much': needs a number"),
            ({"shrink": {1: 2}}, "shrink = .*: needs a number, a string, or a list of these"),
            ({"shrink": [1.0, object()]}, "shrink = .*: needs a number, a string, or a list"),
        ],
    )
    def test_a_wrong_one_is_named_at_once(self, wrong, sentence):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            point("Own", **wrong)

    def test_a_point_does_not_change(self):
        with pytest.raises(AttributeError, match="epsilon: a point does not change"):
            point().epsilon = 3.0
        with pytest.raises(AttributeError, match="has no 'empty'"):
            point().empty  # noqa: B018 - reading it is the test
        assert repr(point()).startswith("Point(protocol='Cash', epsilon=2.0, ")
