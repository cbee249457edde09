# Every text that people read in the tray, in notices and in the window. Groups of ids: tray-, notice-, ui-.


### The window: its frame and first screen

ui-nav = Parts of the window
ui-tab-now = Now
ui-cancel = Cancel
ui-close = Close
ui-opening = Asking Holdfast how it is …
ui-old-link-title = This page was opened with an old link
