"""Random numbers as pure functions: of a key and a position, or of the bits that a generator drew.

The native kernels do the same operations in the same order (``_native/random/``), so both give the
same bits.
"""

import threading
from typing import Any

import numpy as np

WORDS = 13  # of the state of NumPy's Philox
_COINS = 0x636f696e73  # the second word of the key of ``coins``
_VARIATES = 0x76617269617465  # that of draws of which each element takes as many words as it happens to need


def state_words(state: dict[str, Any]) -> np.ndarray:
    """The state of NumPy's Philox as words: key, counter, buffer, its position, the spare half of a word."""
    words = np.empty(WORDS, np.uint64)
    words[:2], words[2:6], words[6:10] = state["state"]["key"], state["state"]["counter"], state["buffer"]
    words[10:] = state["buffer_pos"], state["has_uint32"], state["uinteger"]
    return words


def first_words(key: int, more: int) -> np.ndarray:
    """The state of a new Philox with this key."""
    words = np.zeros(WORDS, np.uint64)
    words[0], words[1], words[10] = key, more, 4
    return words


def state_of(words: np.ndarray) -> Any:
    """The state of NumPy's Philox from its words."""
    return {"bit_generator": "Philox", "state": {"key": words[:2], "counter": words[2:6]},
            "buffer": words[6:10], "buffer_pos": int(words[10]), "has_uint32": int(words[11]),
            "uinteger": int(words[12])}


# -- masks that are not kept -------------------------------------------------------------------------


class _Scratch(threading.local):
    bits: Any = None  # made when asked for: NumPy is quicker to import without its random numbers

    def at(self, key: int, *counter: int, purpose: int = _COINS) -> "np.random.Philox":
        """The source of numbers that follow ``counter``."""
        words = np.zeros(WORDS, np.uint64)
        words[:2] = key, purpose
        words[2:2 + len(counter)] = counter
        words[10] = 4
        return self.from_state(words)

    def from_state(self, words: np.ndarray) -> "np.random.Philox":
        """The source of numbers whose state these words are."""
        if self.bits is None:
            self.bits = np.random.Philox(key=0)
        self.bits.state = state_of(words)
        return self.bits


_scratch = _Scratch()
from_state = _scratch.from_state


def coins(key: int, n: int, p: float) -> np.ndarray:
    """n bools, each False with probability p: a pure function of the key, so they need not be kept.

    16 bits each: below p * 2**16 it is False. Where they are its integral part, a number in [0, 1) of the
    element's own, found by its position, is compared with the rest, so the probability is exact.
    """
    whole = int(p * 65536)
    rest = p * 65536 - whole
    bits = _scratch.at(key).random_raw((n + 3) // 4).astype("<u8", copy=False).view("<u2")[:n]
    kept = bits >= whole
    if rest:
        for i in np.flatnonzero(bits == whole).tolist():
            kept[i] = (_scratch.at(key, i, 1).random_raw() >> 11) * 2.0 ** -53 >= rest
    return kept


# -- words that elements have of their own -----------------------------------------------------------


def block_of_all(key: int, n: int, block: int = 0) -> np.ndarray:
    """The words (n, 4) of a block of each of n elements."""
    last = (1 << 64) - 1
    before = (last, block - 1) if block else (last,) * 4  # counters go up before they are used
    return _scratch.at(key, *before, purpose=_VARIATES).random_raw(4 * n).reshape(n, 4)


_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B


def block_of(key: int, elements: np.ndarray, block: int) -> np.ndarray:
    """The words (n, 4) of a block of some elements."""
    keys, words = [key, _VARIATES], [elements.astype(np.uint64), *np.zeros((3, len(elements)), np.uint64)]
    words[1] += np.uint64(block)
    for _ in range(10):
        (low, low_2), (high, high_2) = zip(*[_product(w, m) for w, m in zip(words[::2], _MULTIPLIERS)])
        words = [high_2 ^ words[1] ^ np.uint64(keys[0]), low_2, high ^ words[3] ^ np.uint64(keys[1]), low]
        keys = [(k + step) % (1 << 64) for k, step in zip(keys, _STEPS)]
    return np.stack(words, 1)


def _product(a: np.ndarray, b: int) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper half of a product of words."""
    half, rest = np.uint64(32), np.uint64((1 << 32) - 1)
    a1, a0, b1, b0 = a >> half, a & rest, np.uint64(b >> 32), np.uint64(b & (1 << 32) - 1)
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & rest)
    return a * np.uint64(b), a1 * b1 + (middle >> half) + (other >> half)


def integers(key: int, n: int, low: int, size: int) -> np.ndarray:
    """n int64 numbers uniform in [low, low + size), size up to 2**64; beyond int64 they go on from its start.

    The upper half of a word times size (of half a word where the size has no more bits), but for the few
    words that would give some numbers once more than others (D. Lemire, "Fast random integer generation in an
    interval", 2019), in whose place an element takes others of its own.
    """
    if size < 1 << 32:
        halves = block_of_all(key, (n + 7) // 8).astype("<u8", copy=False).view("<u4").reshape(-1)[:n]
        product = halves * np.uint64(size)
        above, wrong = product >> np.uint64(32), product.astype(np.uint32) < np.uint32((1 << 32) % size)
    else:
        above, wrong = _above(block_of_all(key, (n + 3) // 4).reshape(-1)[:n], size)
    again, block = np.flatnonzero(wrong), 1
    while len(again):
        above[again], wrong = _above(block_of(key, again, block)[:, 0], size)
        again, block = again[wrong], block + 1
    above += np.uint64(low % (1 << 64))
    return above.view(np.int64)


def _above(words: np.ndarray, size: int) -> tuple[np.ndarray, Any]:
    if size == 1 << 64:
        return words.copy(), np.zeros(len(words), bool)
    rest, above = _product(words, size)
    return above, rest < np.uint64((1 << 64) % size)


def permutation(key: int, n: int) -> np.ndarray:
    """The numbers 0 to n - 1, int64, in the order of n words."""
    order: np.ndarray = block_of_all(key, (n + 3) // 4).reshape(-1)[:n].argsort(kind="stable")
    return order.astype(np.int64, copy=False)


# -- normal numbers ----------------------------------------------------------------------------------

# numerators and denominators for the middle, further out, and past 5; lowest power first
_NARROW = (
    ((3.3871327179, 50.434271938, 159.29113202, 59.109374720),
     (1.0, 17.895169469, 78.757757664, 67.187563600)),
    ((1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103), (1.0, 0.73700164250, 0.12021132975)))
_WIDE = (
    ((3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
      4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3),
     (1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
      2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
      5.2264952788528545610e+3)),
    ((1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
      1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
      7.74545014278341407640e-4),
     (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
      1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
      1.05075007164441684324e-9)),
    ((6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
      2.01033439929228813265e-7),
     (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
      7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
      2.04426310338993978564e-15)))
_BLOCK = 16384  # numbers that are worked on at a time, so that they stay in the cache


def normal_of(bits: np.ndarray) -> np.ndarray:
    """Standard normal numbers of uniform uint32 (as float32) or uint64 (as float64), one of each.

    The inverse of the distribution function, by M. Wichura, "Algorithm AS 241: the percentage points of the
    normal distribution", 1988; only of operations that are rounded correctly everywhere.
    """
    out = np.empty(bits.shape, f"f{bits.itemsize}")
    for i in range(0, bits.size, _BLOCK):
        out[i:i + _BLOCK] = _normal_of(bits[i:i + _BLOCK].view(f"i{bits.itemsize}"), out.dtype.type)
    return out


def _normal_of(drawn: np.ndarray, kind: Any) -> np.ndarray:
    middle, outer, *far = _NARROW if drawn.itemsize == 4 else _WIDE
    one = 0.5 ** (8 * drawn.itemsize)
    upper = drawn >> (8 * drawn.itemsize - 1)  # -1 above the median, else 0
    tail = drawn ^ upper  # how far from the end
    limits = np.iinfo(drawn.dtype)
    q = (limits.max - tail).astype(kind)
    q += 0.5
    q *= one
    z = _ratio(0.180625 - q * q, middle, q)
    at = np.flatnonzero(q > 0.425)
    p = tail[at].astype(kind)
    p += 0.5
    p *= one
    r = np.sqrt(-logarithm(p))
    z[at] = _ratio(r - 1.6, outer)
    for tables in far:
        past = np.flatnonzero(r > 5)
        z[at[past]] = _ratio(r[past] - 5, tables)
    z.view(drawn.dtype)[...] ^= ~upper & limits.min
    return z


def _ratio(x: np.ndarray, tables: tuple, factor: Any = None) -> np.ndarray:
    top, bottom = (polynomial(x, c) for c in tables)
    if factor is not None:
        top *= factor
    top /= bottom
    return top


def polynomial(x: np.ndarray, coefficients: Any) -> np.ndarray:
    """Of two coefficients at least, lowest power first."""
    y = x * coefficients[-1]
    y += coefficients[-2]
    for c in coefficients[-3::-1]:
        y *= x
        y += c
    return y


def logarithm(x: np.ndarray) -> np.ndarray:
    """Of normal numbers above 0: 2 atanh((m - 1) / (m + 1)) where x = 2**e * m."""
    fraction, terms, root_half = (23, 5, 0x3F3504F3) if x.itemsize == 4 else (52, 11, 0x3FE6A09E667F3BCD)
    raw = x.view(f"i{x.itemsize}")
    e = (raw - root_half) >> fraction
    m = (raw - (e << fraction)).view(x.dtype)
    s = (m - 1) / (m + 1)
    y = polynomial(s * s, [_inverse(2 * k + 1, x.dtype) for k in range(terms)])
    return e.astype(x.dtype) * 0.693147180559945309417 + (s + s) * y


def _inverse(n: int, kind: np.dtype) -> Any:
    return kind.type(1) / kind.type(n)
