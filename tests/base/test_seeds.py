"""Fixed vectors of the hashes (law 9), an independent big-integer twin, and uniformity."""

import math

import numpy as np
import pytest
from examples import given, st
from tree_reference import lane_hashes, mix32_array

from srs_ooc.base.seeds import (
    Purpose,
    below,
    derive,
    derive_array,
    key_of,
    mix64,
    mix64_array,
    scale_below,
)

WORD64 = st.integers(0, 2**64 - 1)
WORD32 = st.integers(0, 2**32 - 1)


def twin_mix64(x: int) -> int:
    x %= 2**64
    x = (x ^ x // 2**30) * 13787848793156543929 % 2**64
    x = (x ^ x // 2**27) * 10723151780598845931 % 2**64
    return x ^ x // 2**31


def twin_mix32(x: int) -> int:
    x = (x ^ x // 2**16) * 2246822507 % 2**32
    x = (x ^ x // 2**13) * 3266489909 % 2**32
    return x ^ x // 2**16


def twin_derive(key: int, word: int) -> int:
    golden = 11400714819323198485
    return twin_mix64((key + twin_mix64((word + golden) % 2**64)) % 2**64)


def twin_key_of(*words: int) -> int:
    key = 0
    for word in words:
        key = twin_derive(key, word)
    return key


def twin_lane_hash(feature_hash: int, node_key: int, purpose: int) -> int:
    key = twin_derive(node_key, purpose)
    return twin_mix32(((feature_hash ^ key % 2**32) + key // 2**32) % 2**32)


# The second and third are the first outputs of SplitMix64 seeded with 0.
MIX64 = {
    0x0: 0x0,
    0x9E3779B97F4A7C15: 0xE220A8397B1DCDAF,
    0x3C6EF372FE94F82A: 0x6E789E6AA1B965F4,
    0x1: 0x5692161D100B05E5,
    0xFFFFFFFFFFFFFFFF: 0xB4D055FCF2CBBD7B,
}
MIX32 = {0x0: 0x0, 0x1: 0x514E28B7, 0x2: 0x30F4C306, 0xFFFFFFFF: 0x81F16F39, 0xDEADBEEF: 0xDE5C6A9}
DERIVED = {
    (0, 0): 0x48218226FF3CD4BF,
    (0, 1): 0xDCE423FC82C0D5B8,
    (1, 0): 0xEA8568D2E45FD6CB,
    (2**64 - 1, 2**64 - 1): 0xE8BA9F99CA933538,
}
KEYS = {(): 0x0, (0,): 0x48218226FF3CD4BF, (12, 0, 7): 0x2C3AF956CB23FDA3}
KEYS |= {(1, 2, 3, 4): 0x65A844719B8A89C0}
LANES = {
    Purpose.TIE: [0x96850DC8, 0x3602AC64, 0xB3D4169C],
    Purpose.THRESHOLD: [0x790BDF53, 0xBBBE3C7A, 0x4334C0C7],
}


@pytest.mark.parametrize(
    ("mix", "vectors", "dtype"), [(mix64_array, MIX64, "u8"), (mix32_array, MIX32, "u4")]
)
def test_vectors_of_mixing(mix, vectors, dtype) -> None:
    assert mix(np.array(list(vectors), dtype)).tolist() == list(vectors.values())
    assert dtype == "u4" or [mix64(word) for word in vectors] == list(vectors.values())


def test_derive_and_key_vectors() -> None:
    assert [derive(*words) for words in DERIVED] == list(DERIVED.values())
    assert [key_of(*words) for words in KEYS] == list(KEYS.values())


@pytest.mark.parametrize("purpose", LANES)
def test_lane_vectors(purpose: Purpose) -> None:
    features = np.array([0, 1, 2**32 - 1], dtype=np.uint32)
    assert lane_hashes(features, 0x0123456789ABCDEF, purpose).tolist() == LANES[purpose]


def test_below_vectors() -> None:
    found = [below(key_of(1), counter, 1000) for counter in range(6)]
    assert found == [87, 878, 556, 783, 647, 231]


def test_purposes_never_change() -> None:
    assert len(Purpose) == len(Purpose.__members__)  # no two are the same
    assert (Purpose.SEQUENCE, Purpose.TIE, Purpose.STORE_ORDER) == (1, 7, 11)
    assert (Purpose.CATEGORIES, Purpose.BOOTSTRAP) == (21, 22)
    assert (Purpose.WEIGHTED, Purpose.SKETCH) == (25, 26)


@given(WORD64)
def test_mix64_equals_its_twin(word: int) -> None:
    assert mix64(word) == twin_mix64(word)
    assert mix64_array(np.array([word], dtype=np.uint64)).tolist() == [twin_mix64(word)]


@given(WORD64, st.lists(WORD64, min_size=1, max_size=5))
def test_derive_equals_its_twin(key: int, words: list[int]) -> None:
    expected = [twin_derive(key, word) for word in words]
    assert [derive(key, word) for word in words] == expected
    assert derive_array(key, np.array(words, dtype=np.uint64)).tolist() == expected
    assert key_of(key, *words) == twin_key_of(key, *words)


@given(st.lists(WORD32, min_size=1, max_size=5), WORD64, st.sampled_from(Purpose))
def test_lanes_equal_their_twin(features: list[int], node_key: int, purpose: Purpose) -> None:
    hashes = lane_hashes(np.array(features, dtype=np.uint32), node_key, purpose)
    assert hashes.tolist() == [twin_lane_hash(f, node_key, purpose) for f in features]


@given(st.lists(WORD64, min_size=1, max_size=5), st.integers(1, 2**32 - 1))
def test_scale_below_is_the_high_word_of_the_product(words: list[int], bound: int) -> None:
    scaled = scale_below(np.array(words, dtype=np.uint64), bound)
    assert scaled.tolist() == [(word * bound) >> 64 for word in words]


@given(WORD64, WORD64, st.integers(1, 2**32 - 1))
def test_below_is_scale_below_of_the_derived_key(key: int, counter: int, bound: int) -> None:
    derived = derive_array(key, np.array([counter], dtype=np.uint64))
    assert below(key, counter, bound) == scale_below(derived, bound)[0] < bound


def chi_square_z(counts: np.ndarray) -> float:
    """Standard score of a chi-square against equal shares (Wilson and Hilferty)."""
    free = len(counts) - 1
    expected = counts.sum() / len(counts)
    ratio = float(((counts - expected) ** 2 / expected).sum()) / free
    return (ratio ** (1 / 3) - (1 - 2 / (9 * free))) / math.sqrt(2 / (9 * free))


@pytest.mark.parametrize("bound", [2, 7, 1000])
@pytest.mark.parametrize("key", [0, 1, key_of(Purpose.SEQUENCE, 5)])
def test_counters_are_spread_evenly(key: int, bound: int) -> None:
    numbers = scale_below(derive_array(key, np.arange(200_000)), bound)
    assert abs(chi_square_z(np.bincount(numbers.astype(np.intp), minlength=bound))) < 4


def test_neighbouring_keys_are_unrelated() -> None:
    counters = np.arange(50_000)
    low = [scale_below(derive_array(key_of(seed), counters), 16) for seed in (7, 8)]
    pairs = (low[0] * np.uint64(16) + low[1]).astype(np.intp)
    assert abs(chi_square_z(np.bincount(pairs, minlength=256))) < 4


@pytest.mark.parametrize("shift", [0, 16, 28])
def test_lanes_are_spread_evenly(shift: int) -> None:
    features = (derive_array(3, np.arange(100_000)) >> np.uint64(32)).astype(np.uint32)
    hashes = lane_hashes(features, key_of(1, 2), Purpose.CANDIDATE)
    nibbles = ((hashes >> np.uint32(shift)) & np.uint32(15)).astype(np.intp)
    assert abs(chi_square_z(np.bincount(nibbles, minlength=16))) < 4


def test_an_uneven_spread_is_seen() -> None:
    assert chi_square_z(np.array([1200, 1000, 1000, 1000, 800])) > 4
