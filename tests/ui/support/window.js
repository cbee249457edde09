// Debian's Chromium with the window in it.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

import { chromium } from 'playwright-core';

import { PATIENCE_MS } from './moments.js';

const BROWSER = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);

export const openBrowser = () => chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'], timeout: 3 * PATIENCE_MS });

/** A page of its own session, whose date stays `at` if it is given. What the page complains about is kept in `page.complaints`. */
export async function openPage(browser, url, { at, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 760, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.complaints.push(message.text());
  });
  page.setDefaultTimeout(PATIENCE_MS);
  if (at !== undefined) await page.clock.setFixedTime(at);
  await page.goto(url);
  return page;
}

/** What axe finds when every change of colour has ended, one line each. Runs outside the page's policy, as an extension would. */
export async function axe(page) {
  await page.waitForFunction(() =>
    document.getAnimations().every(({ playState, effect }) => playState !== 'running' || effect.getTiming().iterations === Infinity),
  );
  await page.evaluate(`${await readFile(AXE, 'utf8')}; 0`);
  const { violations } = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })');
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

/** By how many pixels the page is wider than its window. */
export const overflow = (page) => page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
