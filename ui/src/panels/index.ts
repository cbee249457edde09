// The panels behind the tabs, in the order in which they stand.

import type { Component } from 'svelte';

export interface Tab {
  /** In the address after `#/`. */
  id: string;
  /** Id of the tab's text in `locale/en.ftl`. */
  title: string;
  panel: Component;
}

export const tabs: Tab[] = [];
