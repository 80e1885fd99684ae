// node vectors.js ../../../docs/vectors/passes.json: a line for each pass, first the good ones.

import { readFileSync } from "node:fs";
import { createLocalJWKSet } from "jose";
import { Refused, check } from "./pass.js";

const vectors = JSON.parse(readFileSync(process.argv[2]));
const rules = { keys: createLocalJWKSet(vectors.jwks), room: vectors.room, now: vectors.now };
for (const { pass, presented: shown } of [...vectors.good, ...vectors.refused]) {
  try {
    await check(pass, { ...rules, shown });
    console.log("accepted");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.log(error.code);
  }
}
