// The panels behind the tabs, in the order in which they stand.

import type { Component } from 'svelte';

import Channel from './Channel.svelte';
import Clients from './Clients.svelte';
import Connect from './Connect.svelte';
import Devices from './Devices.svelte';
import Drill from './Drill.svelte';
import Log from './Log.svelte';
import Operations from './Operations.svelte';
import Settings from './Settings.svelte';

export interface Tab {
  /** In the address after `#/`. */
  id: string;
  /** Id of the tab's text in `locale/en.ftl`. */
  title: string;
  panel: Component;
  /** Reached from elsewhere than the row of tabs. */
  quiet?: true;
}

export const tabs: Tab[] = [
  { id: 'connect', title: 'ui-tab-connect', panel: Connect },
  { id: 'operations', title: 'ui-tab-operations', panel: Operations },
  { id: 'channel', title: 'ui-tab-channel', panel: Channel },
  { id: 'clients', title: 'ui-tab-clients', panel: Clients },
  { id: 'devices', title: 'ui-tab-devices', panel: Devices },
  { id: 'drill', title: 'ui-tab-drill', panel: Drill, quiet: true },
  { id: 'log', title: 'ui-tab-log', panel: Log },
  { id: 'settings', title: 'ui-tab-settings', panel: Settings },
];
