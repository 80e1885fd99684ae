#!/usr/bin/env python3
"""Writes the test vectors of ticket ids and draws: a second implementation of both.

It follows docs/ticket-id.md and docs/draw.md and shares nothing with the Rust code, not even
the AES: Python 3 alone runs it. The Rust tests read the files and compare, so a slip in either
implementation, or in the documents, shows.

    python3 docs/vectors/make.py            write ticket-id.json and draw.json beside this file
    python3 docs/vectors/make.py --check    compare with what is there; exit 1 if it differs
"""

import hashlib
import json
import math
import pathlib
import sys

# ---- AES-128 (FIPS 197), plain and slow -------------------------------------------------------


def double(a):
    return (a << 1) ^ (0x11B if a & 0x80 else 0)


def multiply(a, b):
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = double(a), b >> 1
    return product


def make_sbox():
    def rotated(x, by):
        return ((x << by) | (x >> (8 - by))) & 0xFF

    box = []
    for x in range(256):
        inverse = next((y for y in range(256) if multiply(x, y) == 1), 0)
        box.append(inverse ^ rotated(inverse, 1) ^ rotated(inverse, 2)
                   ^ rotated(inverse, 3) ^ rotated(inverse, 4) ^ 0x63)
    return box


SBOX = make_sbox()
DOUBLE = [double(a) for a in range(256)]


def round_keys(key):
    words = [list(key[i:i + 4]) for i in range(0, 16, 4)]
    constant = 1
    while len(words) < 44:
        word = list(words[-1])
        if len(words) % 4 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= constant
            constant = double(constant)
        words.append([a ^ b for a, b in zip(words[-4], word)])
    return [sum(words[i:i + 4], []) for i in range(0, 44, 4)]


def encrypt(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number in range(1, 11):
        # Substitute and shift rows: byte i of the state is row i % 4 of column i // 4.
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 10:
            mixed = []
            for c in range(0, 16, 4):
                column = state[c:c + 4]
                whole = column[0] ^ column[1] ^ column[2] ^ column[3]
                for r in range(4):
                    mixed.append(column[r] ^ whole ^ DOUBLE[column[r] ^ column[(r + 1) % 4]])
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[number])]
    return bytes(state)


# The example of FIPS 197, appendix B: if this AES is wrong, say so before anything is written.
assert encrypt(round_keys(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")),
               bytes.fromhex("3243f6a8885a308d313198a2e0370734")
               ).hex() == "3925841d02dc09fbdc118597196a0b32"


def sha256(label, *fields):
    return hashlib.sha256(label.encode() + b"\0" + b"".join(fields)).digest()


# ---- Ticket ids (docs/ticket-id.md) -----------------------------------------------------------

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def id_key(secret):
    return sha256("waitroom/v1/id-key", secret)[:16]


def printed(block):
    h = block.hex()
    return "-".join([h[:8], h[8:12], h[12:16], h[16:20], h[20:]])


def ticket_id(secret, lane, epoch, number, version=1, check=0):
    plain = version << 124 | lane << 116 | epoch << 92 | number << 52 | check
    return printed(encrypt(round_keys(id_key(secret)), plain.to_bytes(16, "big")))


def support_code(text):
    bits = int(text.replace("-", ""), 16) >> (128 - 35)
    symbols = [bits >> shift & 31 for shift in range(30, -1, -5)]
    # The check symbol makes the sum of symbol times x^(7 - place) zero, in GF(32), x^5 = x^2 + 1.
    check = 0
    for place, symbol in enumerate(symbols):
        for _ in range(7 - place):
            symbol = (symbol << 1) ^ (0b100101 if symbol & 16 else 0)
        check ^= symbol
    code = "".join(ALPHABET[s] for s in symbols + [check])
    return code[:4] + "-" + code[4:]


def ticket_id_vectors():
    secret, other = bytes(range(32)), bytes(range(1, 33))
    facts = [
        (0, 1, 0), (0, 1, 1), (1, 1, 0), (0, 2, 0), (7, 3, 123456), (255, 1, 0),
        (0, 2**24 - 1, 0), (0, 1, 2**40 - 1), (255, 2**24 - 1, 2**40 - 1), (0, 0, 0),
        (42, 65536, 20_000_000), (128, 8388608, 549755813888),
    ]
    good = []
    for room, room_secret in enumerate([secret, other]):
        for lane, epoch, number in facts if room == 0 else facts[:2]:
            text = ticket_id(room_secret, lane, epoch, number)
            good.append({"secret": room_secret.hex(), "lane": lane, "epoch": epoch,
                         "number": number, "id": text, "support_code": support_code(text)})
    first = good[0]["id"]
    flipped = printed((int(first.replace("-", ""), 16) ^ 1).to_bytes(16, "big"))
    refused = [
        ("an id of another room", ticket_id(other, 0, 1, 0)),
        ("the last bit flipped", flipped),
        ("version 0", ticket_id(secret, 0, 1, 0, version=0)),
        ("version 2", ticket_id(secret, 0, 1, 0, version=2)),
        ("version 15", ticket_id(secret, 0, 1, 0, version=15)),
        ("the lowest check bit set", ticket_id(secret, 0, 1, 0, check=1)),
        ("the highest check bit set", ticket_id(secret, 0, 1, 0, check=2**51)),
        ("all check bits set", ticket_id(secret, 0, 1, 0, check=2**52 - 1)),
        ("all zeros", printed(bytes(16))),
        ("all ones", printed(b"\xff" * 16)),
    ]
    malformed = [
        ("nothing", ""),
        ("one digit short", first[:-1]),
        ("one digit long", first + "0"),
        ("no hyphens", first.replace("-", "")),
        ("braces", "{" + first + "}"),
        ("the prefix of a URN", "urn:uuid:" + first),
        ("a space before", " " + first[1:]),
        ("a line end after", first[:-1] + "\n"),
        ("a hyphen one place late", first[:8] + first[9] + "-" + first[10:]),
        ("an underscore for a hyphen", first[:8] + "_" + first[9:]),
        ("a letter beyond f", "g" + first[1:]),
        ("a sign", "+" + first[1:]),
        ("a digit that is not ASCII, 36 bytes", "\u0661" + first[2:]),
    ]
    # These two hold the digits that people write as letters.
    zeros, ones = good[3]["support_code"], good[4]["support_code"]
    assert "0" in zeros and "1" in ones
    spellings = [(code, text) for code in [zeros, ones]
                 for text in [code, code.lower(), code.replace("-", ""), " - ".join(code)]]
    spellings += [(zeros, zeros.replace("0", "O")), (zeros, zeros.replace("0", "o"))]
    spellings += [(ones, ones.replace("1", letter)) for letter in "IiLl"]
    code = good[0]["support_code"]
    bad_codes = [
        ("too short", "length", code[:-1]),
        ("too long", "length", code + "0"),
        ("nothing", "length", ""),
        ("U is not in the alphabet", "letter", "U" + code[1:]),
        ("an asterisk", "letter", code[:-1] + "*"),
        ("one symbol changed", "misread", ("1" if code[0] == "0" else "0") + code[1:]),
        ("first two symbols swapped", "misread", code[1] + code[0] + code[2:]),
        ("last two symbols swapped", "misread", code[:-2] + code[-1] + code[-2]),
    ]
    return {
        "format": "waitroom-ticket-id-1",
        "key": {"secret": secret.hex(), "id_key": id_key(secret).hex()},
        "good": good,
        "refused": [{"why": why, "secret": secret.hex(), "id": text} for why, text in refused],
        "malformed": [{"why": why, "text": text} for why, text in malformed],
        "support_code_spellings": [{"code": code, "text": text} for code, text in spellings],
        "support_code_bad": [{"why": why, "error": error, "text": text}
                             for why, error, text in bad_codes],
    }


# ---- Draws (docs/draw.md) ---------------------------------------------------------------------

TABLE_MAX = 1024
ROUNDS = 10


class Permutation:
    def __init__(self, key, n):
        self.keys, self.n = round_keys(key), n
        if n <= TABLE_MAX:
            self.table = list(range(n))
            for j in range(n - 1, 0, -1):
                other = self.pick(0, j, j + 1)
                self.table[j], self.table[other] = self.table[other], self.table[j]
        else:
            self.table = None
            self.rows = math.isqrt(n - 1) + 1
            self.columns = -(-n // self.rows)

    def pick(self, number, value, m):
        block = bytes([number]) + value.to_bytes(7, "big") + self.n.to_bytes(8, "big")
        return int.from_bytes(encrypt(self.keys, block)[:8], "big") * m >> 64

    def forward(self, i):
        if self.table is not None:
            return self.table[i]
        while True:
            row, column = divmod(i, self.columns)
            for number in range(1, ROUNDS + 1):
                if number % 2:
                    row = (row + self.pick(number, column, self.rows)) % self.rows
                else:
                    column = (column + self.pick(number, row, self.columns)) % self.columns
            i = row * self.columns + column
            if i < self.n:
                return i


def commitment(seed):
    return sha256("waitroom/v1/draw/commitment", seed)


def final_key(seed, counts, chain_hash, beacon):
    fields = [seed, len(counts).to_bytes(2, "big")]
    for lane, count in counts:
        fields += [bytes([lane]), count.to_bytes(8, "big")]
    fields.append(chain_hash)
    if beacon is None:
        fields.append(b"\x00")
    else:
        fields += [b"\x01", len(beacon).to_bytes(8, "big"), beacon]
    return sha256("waitroom/v1/draw/final", *fields)


def lane_key(final, lane):
    return sha256("waitroom/v1/draw/lane", final, bytes([lane]))[:16]


def window_key(seed, lane, start):
    return sha256("waitroom/v1/window", seed, bytes([lane]), start.to_bytes(8, "big"))[:16]


def proof(room, counts, seed, chain_hash, beacon_round, beacon_value):
    return {
        "format": "waitroom-draw-1",
        "room": room,
        "commitment": commitment(seed).hex(),
        "beacon_round": beacon_round,
        "counts": [{"lane": lane, "count": count} for lane, count in counts],
        "chain_hash": chain_hash.hex(),
        "seed": seed.hex(),
        "beacon_value": None if beacon_value is None else beacon_value.hex(),
        "final_key": final_key(seed, counts, chain_hash, beacon_value).hex(),
    }


def draw_vectors():
    seed = bytes(range(32))
    chain = hashlib.sha256(b"the log of the example").digest()
    beacon = hashlib.sha256(b"what the beacon said").digest()
    key = hashlib.sha256(b"the key of the example").digest()[:16]

    keys = []
    for counts, value in [
        ([], None), ([(0, 0)], None), ([(0, 5)], None), ([(0, 5)], b""), ([(0, 5)], beacon),
        ([(0, 5), (1, 0)], beacon), ([(0, 20_000_000), (1, 1_500), (255, 3)], beacon),
        ([(lane, lane) for lane in range(256)], b"\x00"), ([(0, 2**40)], beacon),
    ]:
        keys.append({"seed": seed.hex(), "chain_hash": chain.hex(),
                     "counts": [{"lane": lane, "count": count} for lane, count in counts],
                     "beacon": None if value is None else value.hex(),
                     "final_key": final_key(seed, counts, chain, value).hex()})
    final = final_key(seed, [(0, 5)], chain, beacon)

    permutations = []
    for n in [0, 1, 2, 3, 4, 5, 10, 64, 65, 100, 1024]:
        order = Permutation(key, n)
        permutations.append({"key": key.hex(), "n": n,
                             "all": [order.forward(i) for i in range(n)]})
    # 1,025 walks often, 1,600 is a square and never walks, 1,640 = 41 * 40 neither.
    for n in [1025, 1600, 1640, 4096, 1_000_000, 20_000_000, 2**32 + 1, 2**40 - 1, 2**40]:
        order = Permutation(key, n)
        some = sorted({0, 1, 2, 3, n // 3, n // 2, n - 2, n - 1}
                      | set(range(0, n, max(1, n // 40))))
        permutations.append({"key": key.hex(), "n": n,
                             "some": [[i, order.forward(i)] for i in some]})

    good = []
    for name, counts, beacon_round, value in [
        ("a beacon named and used", [(0, 10), (1, 2000)], "drand/quicknet/13335", beacon),
        ("no beacon", [(0, 10)], None, None),
        ("a beacon named, and an operator went on without it", [(0, 10)],
         "drand/quicknet/13335", None),
        ("nobody came", [], None, None),
        ("an empty lane and a full one", [(3, 0), (200, 3)], None, None),
        ("twenty million", [(0, 20_000_000)], "drand/quicknet/13335", beacon),
    ]:
        document = proof("spring-sale", counts, seed, chain, beacon_round, value)
        orders = []
        for lane, count in counts:
            order = Permutation(lane_key(bytes.fromhex(document["final_key"]), lane), count)
            for i in sorted({i for i in [0, 1, 2, 5, 9, count - 1] if 0 <= i < count}):
                orders.append({"lane": lane, "number": i, "order": order.forward(i)})
            orders.append({"lane": lane, "number": count, "order": None})
        orders.append({"lane": 77, "number": 0, "order": None})
        assurance = ("verifiable" if value is not None else
                     "committed" if beacon_round is None else "beacon_waived")
        good.append({"name": name, "proof": document, "assurance": assurance, "orders": orders})

    base = good[0]["proof"]

    def changed(**changes):
        return {**base, **changes}

    def without(name):
        return {k: v for k, v in base.items() if k != name}

    other_seed = bytes(range(1, 33))
    flipped = bytes([beacon[0] ^ 1]) + beacon[1:]
    unannounced = proof("spring-sale", [(0, 10)], seed, chain, None, beacon)
    empty = proof("spring-sale", [(0, 10)], seed, chain, "drand/quicknet/13335", b"")
    too_many = proof("spring-sale", [(0, 2**40 + 1)], seed, chain, None, None)
    twice = proof("spring-sale", [(0, 10), (0, 10)], seed, chain, None, None)
    falling = proof("spring-sale", [(1, 10), (0, 10)], seed, chain, None, None)
    bad = [
        ("another seed than committed to", "seed_mismatch",
         {**proof("spring-sale", [(0, 10)], other_seed, chain, None, None),
          "commitment": base["commitment"]}),
        ("another commitment", "seed_mismatch", changed(commitment="00" * 32)),
        ("a plain SHA-256 for a commitment", "seed_mismatch",
         changed(commitment=hashlib.sha256(seed).hexdigest())),
        ("one person more", "final_key_mismatch",
         changed(counts=[{"lane": 0, "count": 11}, {"lane": 1, "count": 2000}])),
        ("people moved to another lane", "final_key_mismatch",
         changed(counts=[{"lane": 0, "count": 10}, {"lane": 2, "count": 2000}])),
        ("a lane left out", "final_key_mismatch", changed(counts=base["counts"][:1])),
        ("another log", "final_key_mismatch", changed(chain_hash="11" * 32)),
        ("a bit of the beacon flipped", "final_key_mismatch",
         changed(beacon_value=flipped.hex())),
        ("the beacon kept from the reader", "final_key_mismatch", changed(beacon_value=None)),
        ("a final key of their own", "final_key_mismatch", changed(final_key="22" * 32)),
        ("a beacon that was not named before", "beacon_unannounced", unannounced),
        ("an empty beacon value", "beacon_empty", empty),
        ("more people than numbers", "too_many", too_many),
        ("a lane named twice", "lanes_out_of_order", twice),
        ("lanes in falling order", "lanes_out_of_order", falling),
        ("an unknown format", "unreadable", changed(format="waitroom-draw-2")),
        ("a field too many", "unreadable", changed(extra=1)),
        ("no seed", "unreadable", without("seed")),
        ("no counts", "unreadable", without("counts")),
        ("a seed one byte short", "unreadable", changed(seed=base["seed"][:-2])),
        ("a seed one byte long", "unreadable", changed(seed=base["seed"] + "00")),
        ("half a byte", "unreadable", changed(seed=base["seed"][:-1])),
        ("upper case", "unreadable", changed(seed=base["seed"].upper())),
        ("0x before the digits", "unreadable", changed(beacon_value="0x" + beacon.hex())),
        ("a negative count", "unreadable", changed(counts=[{"lane": 0, "count": -1}])),
        ("half a person", "unreadable", changed(counts=[{"lane": 0, "count": 1.5}])),
        ("a lane beyond 255", "unreadable", changed(counts=[{"lane": 256, "count": 1}])),
        ("no object at all", "unreadable", []),
    ]

    window_seed = bytes(range(16))
    return {
        "format": "waitroom-draw-vectors-1",
        "commitments": [{"seed": s.hex(), "commitment": commitment(s).hex()}
                        for s in [seed, other_seed, bytes(32)]],
        "final_keys": keys,
        "lane_keys": [{"final_key": final.hex(), "lane": lane,
                       "lane_key": lane_key(final, lane).hex()} for lane in [0, 1, 255]],
        "window_keys": [{"seed": window_seed.hex(), "lane": lane, "start": start,
                         "window_key": window_key(window_seed, lane, start).hex()}
                        for lane, start in [(0, 0), (0, 100), (1, 0), (255, 2**40 - 1)]],
        "permutations": permutations,
        "proofs_good": good,
        "proofs_bad": [{"name": name, "error": error, "proof": document}
                       for name, error, document in bad],
    }


# ---- Writing ----------------------------------------------------------------------------------


def rendered(vectors):
    """One vector a line, so that a change shows as what it is in a diff."""
    lines = []
    for name, value in vectors.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            lines.append(f'  "{name}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{name}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    here = pathlib.Path(__file__).parent
    differing = []
    for name, vectors in [("ticket-id.json", ticket_id_vectors()), ("draw.json", draw_vectors())]:
        text = rendered(vectors)
        if "--check" not in sys.argv[1:]:
            (here / name).write_text(text)
        elif (here / name).read_text() != text:
            differing.append(name)
    if differing:
        sys.exit(f"differs from what this script makes: {', '.join(differing)}")


if __name__ == "__main__":
    main()
