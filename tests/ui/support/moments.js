// What a window shows follows what happened, but not in the same moment, and on a busy machine much later.

/** How long anything is waited for: a limit for what never comes, not a promise. */
export const PATIENCE_MS = 60_000;

/** Looks again until nothing is thrown, and gives what was seen; its last complaint if that never comes. */
export async function eventually(look) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** For a text that stands there only for a moment: watches from now on. Call what it gives to wait until the text was there. */
export async function glimpse(page, text) {
  await page.evaluate((text) => {
    globalThis.glimpsed = false;
    const observer = new MutationObserver(() => {
      if (!document.body.textContent.includes(text)) return;
      observer.disconnect();
      globalThis.glimpsed = true;
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  }, text);
  return () => page.waitForFunction(() => globalThis.glimpsed);
}
