// Which tab is shown, from the part of the address after `#/`; empty for the first screen.

class Route {
  #tab = $state(read());

  constructor() {
    addEventListener('hashchange', () => {
      this.#tab = read();
    });
  }

  get tab(): string {
    return this.#tab;
  }

  go(tab: string): void {
    location.hash = `#/${tab}`;
  }
}

function read(): string {
  return location.hash.startsWith('#/') ? location.hash.slice(2) : '';
}

export const route = new Route();
