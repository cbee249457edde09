// The shell's side of the bridge, as the desktop shell has it, played in the page itself.

/** Runs in the page before its own scripts. `snapshots` are told one per stream that is opened. */
export function playShell({ snapshots, steps }) {
  Object.freeze(Object.prototype);
  const callbacks = new Map();
  const channels = new Map();
  const shell = { said: [], sent: new Map() };
  const push = (path, piece) => {
    const channel = channels.get(path);
    const index = shell.sent.get(channel) ?? 0;
    shell.sent.set(channel, index + 1);
    callbacks.get(channel)({ index, message: piece });
  };
  const line = (path, item) => push(path, { line: `data:${JSON.stringify(item)}` });
  const commands = {
    request: () => ({ status: 409, body: { code: 'busy', message: 'another stop is under way' } }),
    copy: () => null,
    unstream: () => null,
    stream({ path, channel }) {
      channels.set(path, channel.id);
      if (path === '/api/status/stream') line(path, snapshots.length > 1 ? snapshots.shift() : snapshots[0]);
      if (path.startsWith('/api/timeline')) for (const step of steps) line(path, step);
      return channel.id;
    },
  };
  globalThis.isTauri = true;
  globalThis.shell = Object.assign(shell, { push });
  globalThis.__TAURI_INTERNALS__ = {
    transformCallback(callback) {
      callbacks.set(callbacks.size, callback);
      return callbacks.size - 1;
    },
    unregisterCallback: (id) => callbacks.delete(id),
    async invoke(command, args) {
      shell.said.push([command, JSON.parse(JSON.stringify(args))]);
      return commands[command](args);
    },
  };
}
