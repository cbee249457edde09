# Every text that people read in the tray, in notices and in the window. Groups of ids: tray-, notice-, ui-.


### The tray

tray-link-and-work = { $link } — { $work }
tray-need-and-link = { $need }. { $link }

tray-stopped = Stopped: this machine cannot be reached
tray-stopping = Stopping
tray-connecting = Connecting to { $relay }
tray-connected = Connected to { $relay }
tray-connected-here = Ready for clients on this machine
tray-connected-published = Ready for clients at { $address }
tray-reconnecting = Reconnecting to { $relay }
tray-outage = No connection to { $relay }: { $cause }
tray-recovering = Reconnected to { $relay }, checking the connection
tray-sign-in = This machine is not signed in to { $relay }
tray-incompatible = This Holdfast and { $relay } have incompatible versions
tray-some-relay = the relay
tray-own-relay = the relay on this machine

tray-running = { $count ->
    [one] { $count } call running
   *[other] { $count } calls running
}
tray-also-detached = { $count } detached
tray-detached = { $count ->
    [one] { $count } call detached
   *[other] { $count } calls detached
}
tray-held = { $count ->
    [one] { $count } result waiting
   *[other] { $count } results waiting
}
tray-seat-connecting = seat connecting
tray-seat-held = seat held

tray-start-failed = Holdfast could not start: { $cause }
tray-engine-failed = { $engine ->
    [relay] The relay on this machine failed
    [link] The link to the relay failed
    [worker] The worker failed
   *[channels] The channels failed
}
tray-question = { $client } wants to use { $tool }
tray-question-nobody = A client wants to use { $tool }
tray-questions = { $count } calls are waiting for your approval
tray-consent = { $client } wants access
tray-consents = { $count } clients want access
tray-seat-failed = Gave up the seat: { $reason }
tray-seat-failed-bare = Gave up the seat
tray-seat-frozen = The process that holds the seat is not responding

tray-open = Open status…
tray-copy-mcp = Copy MCP address
tray-start = Start
tray-start-again = Retry start
tray-stop = Stop
tray-engines = Engines
tray-relay = Relay on this machine: { $state ->
    [running] running
    [stopping] stopping
    [stopped] stopped
    [failed] failed
    [elsewhere] not used
   *[absent] not started
}
tray-link = Relay link: { $state ->
    [stopping] finishing its calls
    [stopped] stopped
    [failed] failed
    [connecting] connecting
    [connected] connected
    [reconnecting] reconnecting
    [outage] no connection
    [recovering] checking the connection
    [sign-in] sign-in needed
    [incompatible] update needed
   *[absent] not started
}
tray-worker = Worker: { $state ->
    [running] running
    [stopping] stopping
    [stopped] stopped
    [failed] failed
    [connecting] connecting
    [connected] idle
    [reconnecting] reconnecting
    [outage] no connection
    [recovering] recovering
    [sign-in] sign-in needed
    [incompatible] update needed
   *[absent] not started
}
tray-worker-busy = Worker: { $count ->
    [one] { $count } operation running
   *[other] { $count } operations running
}
tray-channels = Channels: { $state ->
    [stopping] stopping
    [stopped] stopped
    [failed] failed
    [idle] seat not taken
    [claiming] taking the seat
    [connecting] connecting
    [serving] serving
    [draining] letting go of the seat
    [standby] waiting for the seat
   *[absent] none set up
}
tray-channels-serving = Channels: serving { $channel }
tray-seat-take = Take seat
tray-seat-take-ours = Take seat (held by this app)
tray-seat-take-theirs = Take seat (held by { $host }, process { $pid })
tray-seat-take-frozen = Take seat (process { $pid } on { $host } is not responding)
tray-seat-taking = Taking seat…
tray-seat-release = Release seat
tray-seat-wait-no-more = Stop waiting for the seat
tray-seat-give-up = Stop trying
tray-drill = Drill…
tray-logs = Logs folder
tray-autostart = Start at login
tray-quit = Quit
tray-quit-after = { $count ->
    [one] Finish { $count } call and quit
   *[other] Finish { $count } calls and quit
}


### Notices

notice-outage-title = No connection to { $relay }
notice-outage-body = { $cause }. Holdfast keeps trying.
notice-outage-body-bare = Holdfast keeps trying.
notice-outage-kept = { $count ->
    [one] { $count } call keeps running; its result will be kept.
   *[other] { $count } calls keep running; their results will be kept.
}
notice-sign-in-title = This machine is not signed in to { $relay }
notice-sign-in-body = { $cause }. Open Holdfast to sign in.
notice-sign-in-body-bare = Open Holdfast to sign in.
notice-incompatible-title = Update needed
notice-incompatible-body = This Holdfast and { $relay } have incompatible versions. Update the older one.
notice-recovered-title = Connected to { $relay } again
notice-recovered-body = The connection was down for { $lasted }.
notice-recovered-saved = { $count ->
    [one] { $count } call completed.
   *[other] { $count } calls completed.
}
notice-calls-lost-title = Calls were lost
notice-calls-lost-body = { $text }.
notice-calls-lost-several = It is not known whether several calls finished.
notice-start-failed-title = Holdfast could not start
notice-relay-failed-title = The relay on this machine failed
notice-failed-body = { $text }.
notice-consent-title = { $client } wants access
notice-consent-body = It will return to { $host }. Open Holdfast and type the code shown in the browser. If you did not start this, ignore it.
notice-consents-title = { $count } clients want access
notice-consents-body = Open Holdfast to see who they are.
notice-question-title = { $client } wants to use { $tool }
notice-question-title-nobody = A client wants to use { $tool }
notice-question-body = Open Holdfast to allow or deny it.
notice-questions-title = { $count } calls are waiting for your approval
notice-questions-body = Open Holdfast to allow or deny them.
notice-seat-acquired-title = This machine has the seat
notice-seat-acquired-body = It runs the bot now.
notice-seat-acquired-channel = It runs the bot in { $channel } now.
notice-seat-superseded-title = Another process has the seat
notice-seat-failed-title = Gave up the seat
notice-seat-frozen-title = The process that holds the seat is not responding
notice-seat-frozen-body = Open Holdfast to decide whether to end that process.
notice-seat-because = { $reason }.
notice-seat-silent = No reason was given.
notice-still-running-title = Holdfast is still running
notice-still-running-body = It stays in the tray. To end it, choose Quit in the tray’s menu.


### The window: its frame and first screen

ui-nav = Sections
ui-tab-now = Now
ui-cancel = Cancel
ui-close = Close
ui-old-link-title = This link has expired
ui-old-link-text = Each link works once, and stops working when Holdfast restarts. Nothing is wrong with Holdfast itself. To open the window again, run:
ui-silent = Holdfast is not responding. Showing the state from { $age } ago; retrying.
ui-silent-long = If Holdfast was restarted, open a new link: run “holdfast open”.
ui-silent-hangs = If this page is open in several tabs, close some: browsers limit the connections per site.
ui-silent-never = Holdfast is not responding yet; retrying.
ui-dismiss = Dismiss
ui-now = Now
ui-copied = Copied
ui-copy = Copy

# The sentence at the top has two halves: whether this machine can be reached, and what waits.
ui-head = { $link }{"\u00A0"}— { $work }
ui-head-stopped = Stopped: this machine cannot be reached
ui-head-stopped-here = Stopped: this machine cannot be reached
ui-head-stopping = Stopping after the running calls
ui-head-stopping-here = Stopping after the running calls
ui-head-start-failed = Holdfast could not start
ui-head-start-failed-here = Holdfast could not start
ui-head-connecting = Connecting to { $relay }
ui-head-connecting-here = Starting
ui-head-healthy = Connected to { $relay }
ui-head-healthy-here = Ready for clients on this machine
ui-head-blip = Reconnecting to { $relay }
ui-head-blip-here = Reconnecting to the relay
ui-head-outage = Reconnecting to { $relay }
ui-head-outage-here = Reconnecting to the relay
ui-head-recovering = Reconnected to { $relay }, checking the connection
ui-head-recovering-here = Reconnected, checking the connection
ui-head-sign-in-needed = { $relay } does not know this machine any more
ui-head-sign-in-needed-here = The relay does not know this machine any more
ui-head-incompatible = { $relay } and this Holdfast have incompatible versions
ui-head-incompatible-here = The relay and this Holdfast have incompatible versions
ui-head-idle = nothing is waiting
ui-head-running = { $count ->
    [one] 1 call is running
   *[other] { $count } calls are running
}
ui-head-queued = { $count ->
    [one] 1 result is being delivered
   *[other] { $count } results are being delivered
}
ui-head-waiting = { $count ->
    [one] 1 call is waiting
   *[other] { $count } calls are waiting
}
ui-head-waiting-safe = { $count ->
    [one] 1 call is waiting, nothing is lost
   *[other] { $count } calls are waiting, nothing is lost
}
ui-head-question = { $count ->
    [one] a call is waiting for your approval
   *[other] { $count } calls are waiting for your approval
}
ui-head-consent = { $count ->
    [one] { $client } wants access
   *[other] { $count } clients want access
}
ui-head-lost = Link lost { $age } ago: { $cause }.
ui-head-lost-bare = Link lost { $age } ago.
ui-head-next = Trying again in { $left } (try { $attempt }).
ui-head-trying = Trying now (try { $attempt }).
ui-head-since = Running since { $since }, policy { $policy }.
ui-head-since-bare = Running since { $since }.
ui-head-off = Clients cannot reach this machine until you start it again.
ui-head-silent = Holdfast is not responding
ui-head-silent-what = It is not known whether this machine can be reached.
ui-start = Start
ui-stop = Stop
ui-stopping = Stopping…
ui-action-try-now = Try now
ui-action-start = Start
ui-action-restart = Restart
ui-action-enroll = Sign in
ui-action-edit-config = Settings
ui-action-read-log = Read the log

ui-facts = At a glance
ui-reach = Reachable
ui-reach-healthy = Yes
ui-reach-connecting = Connecting
ui-reach-blip = Reconnecting
ui-reach-outage = Outage
ui-reach-recovering = Recovering
ui-reach-sign-in-needed = Sign in needed
ui-reach-incompatible = Incompatible
ui-reach-stopped = No
ui-reach-grace = calls are kept for another { $left }
ui-reach-since = since { $since }
ui-reach-off = stopped
ui-reach-off-link = the link is stopped
ui-reach-silent = Unknown
ui-reach-heard = last heard { $at }
ui-calls = Calls
ui-calls-pending = pending
ui-calls-none = idle
ui-calls-detached = { $count } detached
ui-calls-held = { $count ->
    [one] 1 result held
   *[other] { $count } results held
}
ui-calls-oldest = oldest { $age }
ui-seat = Seat
ui-seat-none = No channel set up
ui-seat-none-text = no bot on this machine
ui-seat-set-up = Set up a bot
ui-seat-this = This machine
ui-seat-other = { $host }
ui-seat-free = Free
ui-seat-claiming = Taking the seat
ui-seat-connecting = Connecting
ui-seat-draining = Releasing
ui-seat-failed = Failed
ui-seat-detail = { $channel } since { $since }, { $waiting } messages waiting
ui-seat-process = process { $pid } since { $since }
ui-seat-standby = waiting for process { $pid }, holder since { $since }
ui-seat-take = Take
ui-seat-release = Release
ui-seat-stop-waiting = Stop waiting
ui-seat-take-title = Take the seat?
ui-seat-take-from = { $host } (process { $pid }) runs this bot now. It will finish what it is sending and disconnect; then this machine takes over.
ui-seat-take-free = Nobody runs this bot now. This machine will.
ui-seat-frozen = { $host } (process { $pid }) holds the seat and is not responding. Its process has to be ended first; messages it had stored are sent from here.
ui-seat-force = End it and take the seat

ui-ask-title = { $client } wants to use { $tool }
ui-ask-title-nobody = A client wants to use { $tool }
ui-ask-lapses = Denied automatically in { $left }
ui-ask-remember = Remember for this client until Holdfast quits
ui-ask-allow = Allow
ui-ask-hidden = { $count ->
    [one] { $count } character is not shown.
   *[other] { $count } characters are not shown.
}
ui-ask-deny = Deny

ui-filter = Filter
ui-filter-placeholder = Filter
ui-filter-state = State
ui-filter-all = All states
ui-state-running = running
ui-state-detached = detached
ui-state-held = result held
ui-state-delivered = delivered
ui-state-cancelled = cancelled
ui-state-lost = lost
ui-state-failed = failed
ui-call-none = No calls yet. Calls from clients appear here as they happen.
ui-call-connect = Connect a client
ui-call-none-found = No matching calls.
ui-call-more = { $count ->
    [one] Show 1 older call
   *[other] Show { $count } older calls
}
ui-call-less = Show fewer
ui-call-life-part = { $phase } { $time }
ui-call-id = Call
ui-call-error = failed: { $code }
ui-phase-running = running
ui-phase-detached = detached
ui-phase-held = result held
ui-step-received = received and started
ui-step-detached = connection lost, still running
ui-step-rebound = reconnected
ui-step-finished = finished
ui-step-sent = result sent
ui-step-delivered = delivery confirmed
ui-step-cancelled = cancelled
ui-step-lost = no longer wanted by the client
ui-key = The length of a bar grows with the square root of its duration.

ui-link = Relay link
ui-link-state = State
ui-link-since = Since
ui-link-attempts = Tries
ui-link-cause = Cause
ui-link-in = Next try in { $left }
ui-link-trying = Trying now
ui-link-by = { $relay }, { $route }
ui-link-relay = Relay
ui-link-relay-here = on this machine
ui-day-none = Last 24 hours: no outage
ui-day-none-since = No outage since { $since }
ui-day = Last 24 hours: { $count ->
    [one] 1 outage, { $time }
   *[other] { $count } outages, { $time } in all
}; { $saved ->
    [one] 1 call carried over
   *[other] { $saved } calls carried over
}, { $lost } lost
ui-day-list = List
ui-day-hide = Hide
ui-day-calls = { $saved ->
    [one] 1 call carried over
   *[other] { $saved } calls carried over
}, { $lost } lost
ui-day-mark = { $at }, { $time }
ui-day-open = { $at }, { $time } so far
ui-day-now = now
ui-day-drill = Run a drill
ui-day-before = Before this start only outages are known


### The window's panels

ui-tab-connect = Connect
ui-tab-clients = Clients
ui-tab-operations = Operations
ui-tab-channel = Channel
ui-tab-devices = Devices
ui-tab-log = Log
ui-tab-settings = Settings

ui-copy-failed = Cannot copy
ui-save = Save
ui-again = Try again
ui-revoke = Revoke
ui-forget = Forget
ui-start-relay = Start the relay

## What went wrong, by code. A code without a line here is told in the process's own sentence.

ui-error-unavailable = Holdfast is not responding.
ui-error-no_answer = Holdfast did not respond in time. Check whether it was done before you try again.
ui-error-no_relay_here = The relay runs on another machine. Manage clients, devices and tokens there, with “holdfast client”, “device” and “token”.
ui-error-not_running = The relay of this machine is stopped.
ui-error-approval_code_invalid = No request has that code. The third wrong code cancels all waiting requests.
ui-error-device_limit_reached = The account has reached its device limit. Revoke one first.
ui-error-code_limit_reached = Too many unused codes. They expire within ten minutes.
ui-error-token_limit_reached = The account has reached its token limit. Revoke one first.
ui-error-no_device = The account has no device yet.
ui-error-no_seat = This machine is not running the bot. Take the seat first.
ui-error-wrong_code = Wrong code. After five wrong codes pairing closes.

## Connect

ui-connect-address = MCP address
ui-connect-none = There is no address yet: no relay runs here and none is configured.
ui-connect-qr = Show as a QR code
ui-connect-qr-what = The MCP address as a QR code
ui-connect-qr-here = The address alone, no token. It leads to this computer only.
ui-connect-qr-anywhere = The address alone, no token.
ui-connect-now = current
ui-connect-here = This computer only
ui-connect-here-what = The relay runs inside Holdfast. Clients on this computer use it; when the computer sleeps, so does the relay.
ui-connect-anywhere = From anywhere
ui-connect-anywhere-what = The relay runs on a host that does not sleep. Calls outlast sleep, lost networks and moves of this computer.
ui-connect-anywhere-how = How to move the relay to a host that does not sleep
ui-connect-anywhere-start = On that host, start a relay:
ui-connect-anywhere-invite = There, make an account and a code:
ui-connect-anywhere-join = Here, join with that code:
ui-connect-anywhere-choose = Then give its address to Holdfast, under
ui-connect-how = Add it to a client
ui-connect-code = The page that a client opens shows a code. You type it here, under
ui-way-claude-code = Claude Code
ui-way-claude-code-do = Type this in a terminal; then type /mcp in Claude Code and choose to authenticate.
ui-way-codex = Codex
ui-way-codex-do = Type both lines in a terminal; the second opens a page in your browser.
ui-way-web = ChatGPT, Claude on the web
ui-way-web-do = Add the address as a custom connector.
ui-way-internet = They need an address on the internet. This one leads to this computer only: see “From anywhere” above.
ui-way-inspector = MCP Inspector
ui-way-inspector-do = Start it with this, choose the transport Streamable HTTP and give it the address.
ui-way-other = Another client
ui-way-other-do = A client that supports OAuth needs only the address. Others send a token (create one below) with each request:

ui-token-title = A token for scripts
ui-token-what = For a client that cannot sign in by itself.
ui-token-name = What is it for?
ui-token-name-example = Nightly build
ui-token-name-bad = Give it a name.
ui-token-role = Permissions, at most
ui-token-role-own = Everything the account may do
ui-token-device = Device
ui-token-device-default = The default device
ui-token-days = Days until it expires
ui-token-days-bad = From 1 to 366 days.
ui-token-create = Create token
ui-token-made = The token “{ $name }”:
ui-token-once = Copy it now; it is not shown again. Anyone who has it can use this machine until { $date }.
ui-token-done = Done

ui-role-reviewer = read only
ui-role-editor = read and write files
ui-role-operator = read, write, run programs
ui-role-owner = everything the policy allows
ui-role-unknown = unknown rights
ui-scope-mcp = use tools
ui-scope-operations = durable operations
ui-scope-offline-access = stay signed in

## Clients

ui-waiting-title = Access requests
ui-waiting-heard = { $count ->
    [one] 1 client wants access
   *[other] { $count } clients want access
}
ui-waiting-left = expires in { $time }
ui-waiting-where = The name is the client’s own claim. Acts as { $account }; returns to { $host }.
ui-waiting-rights = Asks to: { $rights }
ui-waiting-code = Code that its browser page shows
ui-waiting-three = Three wrong codes cancel all waiting requests.
ui-waiting-approve = Approve
ui-waiting-deny = Refuse
ui-waiting-why = If you did not start this, ignore it: it expires by itself. Never type a code that somebody sent you.
ui-waiting-done = Approved. Go back to { $client }’s page and choose Allow; it then returns to { $host }.
ui-waiting-cancelled = Three wrong codes: all waiting requests are cancelled. Start again in the client.
ui-code-bad = A code has 8 characters: letters and the digits 2 to 7.

ui-clients-title = Clients
ui-clients-none = No clients yet. How to add one:
ui-client-since = Since { $date }
ui-client-asked = not approved
ui-client-revoke = Revoke { $name }?
ui-client-revoke-what = Its calls are cancelled and its sessions end at once. To return it must request access again.
ui-client-forget = Forget { $name }?
ui-client-forget-what = It registered but was never approved. It can ask again.
ui-used = , last used { $when }
ui-used-never = , never used
ui-grant = { $device } as { $account } · { $role } · { $rights }
ui-grant-token = { $device } as { $account } · { $role }
ui-tokens-title = Tokens
ui-tokens-none = No tokens. How to make one:
ui-token-over = expired
ui-token-expires = Good until { $date }
ui-token-expired = Expired on { $date }
ui-token-revoke = Revoke the token “{ $name }”?
ui-token-revoke-what = Anything that uses it is refused from now on, and its calls are cancelled.

ui-cut-title = Cut all access
ui-cut-what = Revokes all clients and tokens, stops everything that runs for them, and disconnects from the relay.
ui-cut-what-elsewhere = Stops everything that runs here and disconnects from the relay.
ui-cut-ask = Cut all access…
ui-cut-sure = Cut all access?
ui-cut-verb = Cut all access
ui-cut-means = Every client and every token is revoked. Calls that run are killed. The link stops.
ui-cut-means-elsewhere = Calls that run are killed and the link stops. Clients and tokens belong to the relay elsewhere: they keep their access to it, and reach this machine again when the link is started.
ui-cut-back = This cannot be undone: every client must be approved again. The link stays off until you start it.
ui-cut-done = { $count ->
    [0] No client or token had access. The link is stopped.
    [one] 1 client or token lost its access. The link is stopped.
   *[other] { $count } clients and tokens lost their access. The link is stopped.
}
ui-cut-done-elsewhere = The link is stopped, so nobody reaches this machine. What clients and tokens were granted is still with the relay: revoke it there.

## Devices

ui-devices-title = Devices
ui-devices-none = No device is enrolled.
ui-devices-revoked = Revoked ({ $count })
ui-device-there = connected
ui-device-away = not connected
ui-device-default = default
ui-device-since = { $account }, since { $date }
ui-device-revoked = Revoked on { $date }
ui-device-in-use = Another computer tried to use its credential at { $when }. If that was not you, revoke this device.
ui-device-name = Name of the device
ui-device-rename = Rename
ui-device-make-default = Make default
ui-device-revoke = Revoke { $name }?
ui-device-revoke-what = Its link closes at once and its calls end. Every client and token that reaches it loses its access. To return it must be enrolled again.
ui-device-revoke-away = Every client and token that reaches it loses its access. To return it must be enrolled again.
ui-device-revoke-last = This is the only device. Clients will have nothing to reach.
ui-invite-title = Add a device
ui-invite-what = Another machine joins this relay with a code that works once.
ui-invite-here = Another machine joins this relay with a code that works once. The relay listens on this computer only, so for now no other machine can reach it.
ui-invite-code = Code
ui-invite-left = Works once, for { $time } more.
ui-invite-do = On the other machine:
ui-invite-over = That code has expired.
ui-invite-make = Make a code
ui-invite-another = Make another code

## Log

ui-log-title = Log
ui-log-open = Open folder
ui-log-level = Minimum level
ui-log-level-error = Errors
ui-log-level-warn = Warnings and above
ui-log-level-info = Information and above
ui-log-level-debug = Everything
ui-log-search = Search
ui-log-follow = Follow
ui-log-none = No matching lines.
ui-log-private = The log holds no tokens, arguments, outputs or file contents.
ui-doctor-title = Doctor
ui-doctor-what = Checks what could keep this machine from being reached: the link, the proxy, certificates, the clock, credentials, disk.
ui-doctor-run = Run checks
ui-doctor-again = Run checks again
ui-doctor-copy = Copy report
ui-doctor-asking = Checking…
ui-doctor-found = { $failed ->
    [0] { $warnings ->
        [0] Everything works.
        [one] Everything works. 1 note.
       *[other] Everything works. { $warnings } notes.
    }
    [one] 1 problem.
   *[other] { $failed } problems.
}
ui-check-ok = OK:
ui-check-warning = Note:
ui-check-failed = Problem:
ui-check-skipped = Skipped:
ui-support-title = Support bundle
ui-support-what = A text file for whoever helps you: versions, the doctor’s report, the configuration and recent log lines, without tokens, arguments and outputs.
ui-support-make = Create
ui-support-look = Review it before you share it.
ui-support-save = Save as a file

## Settings

ui-set-applied = Applied.
ui-set-restart = Saved. It takes effect after a restart.
ui-set-overruled = Saved, but overridden by a command-line option that Holdfast was started with.
ui-set-restart-now = Restart now
ui-set-invalid = The configuration file is invalid; the previous settings stay in force: { $error }
ui-set-policy = What clients may do here
ui-policy-review = Review
ui-policy-review-what = Read files of the workspace, search, look at git history.
ui-policy-edit = Edit
ui-policy-edit-what = Also write files of the workspace. No programs.
ui-policy-agent = Agent
ui-policy-agent-what = Also run programs, as you.
ui-policy-full = Full
ui-policy-full-what = Also shell command lines, files outside the workspace, your whole environment.
ui-policy-agent-warning = A program that runs can read and write whatever you can; the workspace bounds only the file tools. Holdfast is no sandbox.
ui-policy-full-warning = An approved client can do everything you can do on this machine, with your keys and passwords in reach. Holdfast is no sandbox.
ui-policy-apply = Change to { $name }
ui-policy-sure = Change to { $name }?
ui-policy-verb = Change
ui-policy-at-once = Takes effect at once, for every client.
ui-set-ask = Ask me first
ui-set-ask-what = A call of these clients waits until you allow it here; after two minutes it is denied.
ui-set-ask-everybody = Every client
ui-set-ask-tools = Ask before calls that
ui-ask-tools-runs = run programs
ui-ask-tools-writes = run programs or write files
ui-ask-tools-all = do anything, even read
ui-set-relay = Relay
ui-set-relay-here = Inside Holdfast
ui-set-relay-here-what = For clients on this computer.
ui-set-relay-elsewhere = Elsewhere
ui-set-relay-elsewhere-what = On a host that does not sleep, for clients from anywhere.
ui-set-relay-url = Its address
ui-set-relay-enroll = If this machine has not joined it yet, type this with a code of that relay:
ui-set-work = Workspace
ui-set-workspace = Folder that file tools work in
ui-set-workspace-what = Cannot be your home folder or a root folder. If empty: ~/holdfast.
ui-set-reach = Operations reach
ui-set-sync-allow-hosts = Hosts to download files from, besides the relay
ui-set-sync-allow-hosts-none = none
ui-set-forward-allow-ports = Ports of this machine
ui-set-forward-allow-ports-none = none
ui-set-reach-what = Set in the configuration file, as sync.allow_hosts and forward.allow_ports. Removals take effect at once, additions after a restart.
ui-set-habits = This machine
ui-set-autostart = Start at login
ui-set-autostart-what = Starts hidden, with the engines as they were.
ui-set-power-keep-awake = Keep awake while calls run
ui-set-power-keep-awake-what = With mains power only. Closing the lid still puts it to sleep.
ui-set-calls-keep-bodies = Remember what calls were asked and answered
ui-set-calls-keep-bodies-what = In memory only, cut short and without what looks like a secret. Shown with each call.
ui-set-notices = Notices on the desktop
ui-set-notices-outages = Outages and recoveries
ui-set-notices-calls-lost = Lost calls
ui-set-notices-consents = Clients that want access
ui-set-notices-questions = Calls that need your approval
ui-set-notices-seat = The seat
ui-set-notices-start-failed = Engines that could not start
ui-set-notices-still-running = That Holdfast keeps running when the window closes
ui-set-file = Configuration and log
ui-set-level = Log level
ui-set-file-what = All settings are in one file, which you can also edit by hand. Comments are kept.

## Drill

ui-tab-drill = Drill
ui-drill-title = Try the promise
ui-drill-what = A call goes to the relay and back to this machine. In the middle of it Holdfast cuts its own link, lets it recover, and shows what became of the call.
ui-drill-cut = Cut the link for
ui-drill-seconds = { $count } s
ui-drill-start = Start the drill
ui-drill-again = Run again
ui-drill-running = Running…
ui-drill-before = Nothing is changed on this machine: the call only waits.
ui-drill-no-link = The link is not up now, so there is nothing to cut.
ui-drill-sure = { $count ->
    [one] Cut the link while 1 call is running?
   *[other] Cut the link while { $count } calls are running?
}
ui-drill-sure-what = They are detached, keep running, and are picked up when the link is back. That is what Holdfast promises, but this tests it on real work.
ui-drill-anyway = Cut anyway
ui-drill-steps = What happened
ui-drill-waiting = Waiting…
ui-drill-took = Back { $recovered } after a cut of { $cut }; { $took } in all.
ui-verdict-delivered-once = Delivered once.
ui-verdict-reported = Reported honestly.
ui-verdict-failed = The promise was not kept.

## First steps

ui-first-title = First steps
ui-first-done = All set
ui-first-skip = Skip
ui-first-is-done = done
ui-first-reopen = Show the first steps
ui-first-reach = This machine can be reached
ui-first-reach-what = It is not connected to its relay yet. The doctor can tell you why.
ui-first-reach-do = Run checks
ui-first-client = A client is connected
ui-first-client-what = Give a client the MCP address, then type the code shown on its browser page.
ui-first-client-do = Connect a client
ui-first-drill = The drill has passed
ui-first-drill-what = Cut the link in the middle of a call and see that nothing is lost.
ui-first-drill-do = Run the drill
ui-first-channel = An agent is mirrored to a channel
ui-first-channel-what = What an agent here writes appears in a Discord or Telegram channel, and what you write there reaches it. Set up a bot, have it checked, send a test message.
ui-first-channel-do = Mirror an agent
ui-first-optional = optional

## The channel

ui-chat-set-up-title = Mirror an agent to a channel
ui-channel-what = A bot posts what an agent on this machine writes to a channel, and brings answers back.
ui-chat-bot-discord = A bot at Discord
ui-chat-discord-make = Open discord.com/developers/applications and make an application; its page “Bot” is the bot.
ui-chat-discord-token = There, press “Reset Token” and copy the token.
ui-chat-discord-intent = Further down, switch on “Message Content Intent”. Without it the bot cannot read what you write. How to invite the bot is said once it is set up.
ui-chat-bot-telegram = A bot at Telegram
ui-chat-telegram-make = Write /newbot to @BotFather and answer what it asks.
ui-chat-telegram-token = Copy the token from its answer, and add the bot to your group.
ui-channel-token = Token of the bot
ui-channel-token-what = Holdfast recognises the service from the token and stores it with your other credentials.
ui-channel-set-up = Set up
ui-chat-bot = Bot
ui-channel-bot = { $backend } bot { $bot }
ui-channel-remove = Remove
ui-channel-remove-sure = Remove the bot?
ui-channel-remove-what = The seat is released and the bot’s token is deleted here. Bindings, people and the bot’s account stay.
ui-channel-start = When Holdfast starts
ui-channel-start-if-vacant = Take the seat if it is free
ui-channel-start-take = Take the seat from whoever holds it
ui-channel-start-off = Do nothing
ui-chat-stuck = Nothing is being delivered
ui-chat-bindings = Agents and their channels
ui-chat-bindings-none = No agent has a channel yet. Give one its own:
ui-chat-bind-another = Another agent
ui-chat-bind = Mirror the agent
ui-chat-bind-change = Change { $name }
ui-chat-name = Name
ui-chat-name-what = For the agent and its channel. Letters, digits and “-”, such as “app”.
ui-chat-channel = Channel ID
ui-chat-channel-what = Discord, with developer mode on: right-click the channel, “Copy Channel ID”.
ui-chat-follow = What is mirrored
ui-chat-follow-project = The newest session in a folder
ui-chat-follow-project-what = A new session there is picked up automatically.
ui-chat-follow-transcript = One transcript
ui-chat-follow-transcript-what = Only this one.
ui-chat-project = The folder the agent works in
ui-chat-found = Transcripts on this machine
ui-chat-runs = running
ui-chat-written = written { $at }
ui-chat-transcript = Path of the transcript
ui-chat-deliver = How your messages reach the agent
ui-chat-deliver-none = Not at all: mirror only
ui-chat-deliver-command = A program for each message
ui-chat-deliver-tmux = Pasted into a tmux pane
ui-chat-deliver-mcp = Through the MCP server “holdfast channel mcp”
ui-chat-deliver-inbox = Files in a folder
ui-chat-deliver-none-what = You can change this at any time.
ui-chat-deliver-mcp-what = The agent starts “holdfast channel mcp” as one of its MCP servers.
ui-chat-deliver-inbox-what = For agents that watch a folder.
ui-chat-deliver-none-short = mirrored only
ui-chat-deliver-command-short = delivered by a program
ui-chat-deliver-tmux-short = delivered into tmux
ui-chat-deliver-mcp-short = delivered over MCP
ui-chat-deliver-inbox-short = delivered as files
ui-chat-command = Program and arguments
ui-chat-command-what = The message is its input, never an argument. {"{session}"} and {"{project}"} are filled in.
ui-chat-pane = Pane
ui-chat-pane-what = As “tmux -t” takes it.
ui-chat-mention = Only messages that mention the bot
ui-chat-mention-what = For channels in which people also talk to each other.
ui-chat-follows-project = the newest session of { $project }
ui-chat-follows-session = session { $session }
ui-chat-no-transcript = No transcript yet. A new session there is picked up automatically.
ui-chat-last = last posted { $at }
ui-chat-skipped = { $count ->
    [one] 1 entry not posted, because it was too old
   *[other] { $count } entries not posted, because they were too old or too many
}
ui-chat-unread = { $count ->
    [one] 1 line of the transcript is too long or unreadable
   *[other] { $count } lines of the transcript are too long or unreadable
}
ui-chat-gaps = { $count ->
    [one] a part of the transcript may be missing in 1 place
   *[other] a part of the transcript may be missing in { $count } places
}
ui-chat-parked = blocked by the service
ui-chat-waiting-out = { $count ->
    [one] 1 message to be posted
   *[other] { $count } messages to be posted
}
ui-chat-waiting-in = { $count ->
    [one] 1 message to be delivered
   *[other] { $count } messages to be delivered
}
ui-chat-next = next try in { $left }
ui-chat-test = Test message
ui-chat-tested = Test message posted (id { $message }).
ui-chat-change = Change
ui-chat-unbind = Remove
ui-chat-unbind-sure = Stop mirroring { $name }?
ui-chat-unbind-what = Posted messages stay. Waiting messages are discarded.
ui-chat-troubles = Messages that were not posted
ui-chat-refused = refused
ui-chat-unknown = unknown
ui-chat-retry = Try again
ui-chat-retry-unknown = Send unknown ones again
ui-chat-retry-unknown-sure = Send them again?
ui-chat-retry-unknown-what = They may already be there and would then appear twice. Look at the channel first.
ui-chat-people = People who may talk to the agents
ui-chat-people-none = Nobody yet. The bot posts but ignores replies.
ui-chat-pair = Add somebody
ui-chat-pair-how = Have them write to the bot directly, or mention it in a bound channel (@…): it replies with a code. Type it here.
ui-chat-pair-left = { $left } left
ui-chat-code = The code the bot sent them
ui-chat-admit = Allow
ui-chat-paired = { $name } may talk to the agents.
ui-chat-dismiss = Remove
ui-chat-dismiss-sure = Remove { $name }?
ui-chat-dismiss-what = Their messages and clicks will be ignored. You can add them again.
ui-chat-checks = Bot checks
ui-chat-checks-what = Whether the token is valid, and the bot can read messages, sees its channels and can post there. Nothing is changed.
ui-chat-checks-ok = The bot can read and post.
ui-chat-checks-bad = Something keeps the bot from reading or posting.
ui-chat-check = Check now
ui-chat-check-again = Check again
ui-chat-checking = Checking…
ui-chat-line-stuck = nothing can be stored
ui-chat-line-parked = { $count ->
    [one] 1 channel blocked
   *[other] { $count } channels blocked
}
ui-chat-line-refused = { $count ->
    [one] 1 message refused
   *[other] { $count } messages refused
}
ui-chat-line-unknown = { $count ->
    [one] 1 message of unknown outcome
   *[other] { $count } messages of unknown outcome
}
ui-chat-line-perhaps = { $count ->
    [one] 1 message perhaps delivered
   *[other] { $count } messages perhaps delivered
}
ui-chat-line-nobody = nobody may talk to the agents yet

## The seat, in detail

ui-seat-row-state = State
ui-seat-row-bot = Bot
ui-seat-row-holder = Holder
ui-seat-row-instance = Instance
ui-seat-row-since = Since
ui-seat-row-generation = Generation
ui-seat-row-channel = Channel
ui-seat-row-transcript = Transcript
ui-seat-row-waiting = Waiting to be sent
ui-seat-row-last-sent = Last sent
ui-seat-row-reason = Reason
ui-seat-row-next = Next try in
ui-seat-bot-of = { $bot } at { $backend }
ui-seat-holder-this = This app, on { $host } (process { $pid })
ui-seat-holder-other = { $host } (process { $pid })
ui-seat-never = Nothing yet
ui-seat-lately = What happened to the channel lately
ui-seat-state-off = Off
ui-seat-state-claiming = Taking the seat
ui-seat-state-connecting = Connecting to the chat service
ui-seat-state-serving = Runs the bot
ui-seat-state-draining = Finishing, then releasing
ui-seat-state-standby = Waiting until the seat is free
ui-seat-state-failed = Gave up

## What a call was asked and answered

ui-body-asked = Asked
ui-body-answered = Answered
ui-body-cut = {" "}(first part of { $bytes } bytes)

## Durable operations

ui-operations = Operations
ui-operations-worker = Worker
ui-operations-no-worker = No worker runs in this process. Start it, or join a relay first.
ui-operations-none = No operations yet. An operation outlives the network, the relay and this app; a client starts one with start_operation, you with:
ui-operations-closed = The disk is full since { $since }: new operations are refused until there is room. What runs goes on.
ui-operations-row-state = Connection
ui-operations-row-cause = Cause
ui-operations-row-next = Next try in
ui-operations-row-lease = Lease
ui-operations-row-running = Running
ui-operations-row-stalled = Stalled
ui-operations-row-behind = Output
ui-operations-row-results = Results
ui-operations-link-stopped = Stopped
ui-operations-link-connecting = Connecting
ui-operations-link-healthy = Connected
ui-operations-link-blip = Reconnecting
ui-operations-link-outage = No connection
ui-operations-link-recovering = Recovering
ui-operations-link-sign-in-needed = Sign in needed
ui-operations-link-incompatible = Update needed
ui-operations-lease-none = Expired. Work that must not run unsupervised is stopped; the rest goes on.
ui-operations-lease-renewed = Held, renewed by the relay
ui-operations-lease-left = Not renewed, { $left } left
ui-operations-counts = { $running } running, { $waiting } waiting
ui-operations-stalled = { $count ->
    [one] { $count } paused: no room for its output
   *[other] { $count } paused: no room for their output
}
ui-operations-behind = { $size } not yet at the relay
ui-operations-results = { $count ->
    [one] { $count } result not yet at the relay
   *[other] { $count } results not yet at the relay
}
ui-operation-state-received = queued
ui-operation-state-starting = starting
ui-operation-state-running = running
ui-operation-state-completed = done
ui-operation-state-failed = failed
ui-operation-state-cancelled = cancelled
ui-operation-state-expired = never started
ui-operation-state-unknown = outcome unknown
ui-operation-kind-exec = Command
ui-operation-kind-pty-open = Terminal
ui-operation-kind-exec-stdin = Input
ui-operation-kind-pty-input = Input
ui-operation-kind-pty-resize = Terminal size
ui-operation-kind-pty-close = Terminal closed
ui-operation-kind-file-sync = File sync
ui-operation-kind-sync-workspace = Git sync
ui-operation-kind-create-project-branch = New branch
ui-operation-kind-workspace-config = Configuration
ui-operation-kind-port-forward-connect = Port forward
ui-operation-for = for { $time }
ui-operation-exit = exit code { $code }
ui-operation-stops = ends if the relay stays away
ui-operation-stalled = Paused since { $since }: no room for its output. Nothing is lost.
ui-operation-cancel = Cancel
ui-operation-cancel-title = Cancel this operation?
ui-operation-cancel-what = If it runs, its whole process tree is ended. If it has not started, it never will.
ui-operation-dismiss = Dismiss
ui-work-running = { $count } running
ui-work-waiting = { $count } waiting
ui-work-unknown = { $count ->
    [one] { $count } with an unknown outcome
   *[other] { $count } with unknown outcomes
}
ui-work-closed = new ones are refused, the disk is full
ui-work-open = Show
