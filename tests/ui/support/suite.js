// One browser per file of tests; pages and homes that end with their test.

import { after, afterEach, before } from 'node:test';

import { playShell } from './bridge.js';
import { Home } from './home.js';
import { Scripted } from './scripted.js';
import { openBrowser, openPage } from './window.js';

export function suite() {
  let browser;
  const endings = [];
  before(async () => {
    browser = await openBrowser();
  });
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end();
  });
  after(() => browser?.close());

  const opened = async (url, options) => {
    const page = await openPage(browser, url, options);
    endings.push(() => page.context().close());
    return page;
  };
  return {
    /** The real Holdfast with its window: `{home, page}`. */
    async holdfast(options, pageOptions) {
      const home = await Home.serve(options);
      endings.push(() => home.remove());
      return { home, page: await opened(await home.url(), pageOptions) };
    },
    /** A scripted one with its window: `{holdfast, page}`; with `at` among the options of the page, the page's date stays that. */
    async scripted(snapshot, steps, pageOptions) {
      const holdfast = await Scripted.start(snapshot, steps);
      endings.push(() => holdfast.silence());
      return { holdfast, page: await opened(holdfast.url(), pageOptions) };
    },
    /** The window inside the desktop application: `{page, said, push}`; what a command of the shell was told, and a piece of a stream. */
    async bridged(snapshot, steps) {
      const calmer = { ...snapshot, seq: snapshot.seq + 1, calls: { ...snapshot.calls, pending: 0, oldest_ms: null } };
      const files = await Scripted.start(snapshot);
      endings.push(() => files.silence());
      const page = await opened('about:blank');
      await page.addInitScript(playShell, { snapshots: [snapshot, calmer], steps });
      await page.goto(`http://127.0.0.1:${files.port}/`);
      const said = (command) => page.evaluate((name) => shell.said.filter(([said]) => said === name).map(([, args]) => args), command);
      const push = (path, piece) => page.evaluate(([path, piece]) => shell.push(path, piece), [path, piece]);
      return { page, said, push };
    },
    opened,
  };
}
