// The console in a real browser against a real server: `node tests.mjs [part of a name]`.
//
// Lives here: one server, one site and one Chromium for all tests, and what no test may leave
// behind: an error in the page, or a breach of its policy. Each test makes the rooms it needs.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { KEY, openBrowser, openPage, signIn, startServer, startSite } from "./site.mjs";

const stage = {};
const wanted = process.argv[2] ?? "";

before(async () => {
  stage.server = await startServer();
  stage.site = await startSite(stage.server);
  stage.browser = await openBrowser();
});

after(async () => {
  await stage.browser?.close();
  stage.site?.stop();
  await stage.server?.stop();
});

/** A promise, and a fresh tab to keep it in; `key` signs in before. */
function promise(name, { key = KEY, page: options = {} }, keep) {
  if (!name.includes(wanted)) return;
  test(name, { timeout: 120_000 }, async () => {
    const page = await openPage(stage.browser, options);
    try {
      if (key) await signIn(page, stage.site, key);
      await keep({ ...stage, page });
      assert.deepEqual(await page.evaluate(() => globalThis.breaches), [], "the policy of the page holds");
      assert.deepEqual(page.wrongs, [], "no error in the page");
    } catch (error) {
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name.replaceAll(/\W+/g, "-")}.png` });
      throw error;
    } finally {
      await page.context().close();
    }
  });
}

for (const part of ["signing-in", "controls", "settings", "tickets", "keys-and-audit", "trouble", "origin", "access"]) {
  const { tell } = await import(`./tests/${part}.mjs`);
  tell(promise);
}
