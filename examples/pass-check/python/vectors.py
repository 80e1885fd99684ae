"""python3 vectors.py ../../../docs/vectors/passes.json: a line for each pass, first the good ones."""

import json
import sys

from waitroom_pass import Refused, check, keys_of

with open(sys.argv[1]) as file:
    vectors = json.load(file)
rules = {"keys": keys_of(vectors["jwks"]), "room": vectors["room"], "now": vectors["now"]}
for case in vectors["good"] + vectors["refused"]:
    try:
        check(case["pass"], shown=case.get("presented"), **rules)
        print("accepted")
    except Refused as refused:
        print(refused.code)
