// The panels behind the tabs, in the order in which they stand.

import type { Component } from 'svelte';

import Clients from './Clients.svelte';
import Connect from './Connect.svelte';
import Devices from './Devices.svelte';
import Log from './Log.svelte';

export interface Tab {
  /** In the address after `#/`. */
  id: string;
  /** Id of the tab's text in `locale/en.ftl`. */
  title: string;
  panel: Component;
}

export const tabs: Tab[] = [
  { id: 'connect', title: 'ui-tab-connect', panel: Connect },
  { id: 'clients', title: 'ui-tab-clients', panel: Clients },
  { id: 'devices', title: 'ui-tab-devices', panel: Devices },
  { id: 'log', title: 'ui-tab-log', panel: Log },
];
