//! Bounds of what is said at a chat service.

use std::time::Duration;

use super::{IntoValue, Limit, millis, secs};

limits! {
    ["Chat"]
    CHUNK_MIN: usize = 100, "UTF-16 units", "The shortest message a long text is cut into; below it code blocks could not be framed.";
    CHUNK_INFO_MAX: usize = 32, "graphemes", "First line of a code block that is repeated where a cut opens it again; well below CHUNK_MIN.";
    CHUNK_DISCORD: usize = 2000, "UTF-16 units", "A Discord message; Discord counts code points, of which there are never more.";
    CHANNEL_CLICKS: usize = 256, "clicks", "Clicks and commands that can still be answered; Discord takes answers for 15 min.";
    CHAT_ID_MAX: usize = 64, "bytes", "Id of a channel, message or person; services use at most 32.";
    BINDINGS: usize = 32, "bindings", "Bindings of one bot; half of OUTBOX_LANES, so that threads find a place.";
    BINDING_NAME_MAX: usize = 40, "characters", "Name of a binding; it becomes the name of a folder.";
    CHANNEL_NAME_MAX: usize = 120, "characters", "Name of a channel as it is shown; Discord's have at most 100.";
    CHANNEL_PEOPLE: usize = 200, "people", "People who may talk to the agents.";

    ["Outbox"]
    OUTBOX_NONCE_WINDOW: Duration = secs(2 * 60), "time", "How long after its first attempt a message with an unknown outcome is sent again with the same nonce; services remember nonces for a few minutes.";
    OUTBOX_WATCH: Duration = secs(120), "time", "A send that takes longer has the client reset.";
    OUTBOX_WATCH_END: Duration = secs(15), "time", "A send that has not ended this long after the reset counts as unknown.";
    OUTBOX_RETRY_MIN: Duration = secs(1), "time", "First wait before a message or commit is tried again; doubles, and half of it is jitter.";
    OUTBOX_RETRY_MAX: Duration = secs(60), "time", "Longest wait before a message is tried again.";
    OUTBOX_COMMIT_RETRY: Duration = secs(1), "time", "Wait before a failed commit is made again.";
    OUTBOX_CURSOR_LAG: Duration = millis(1500), "time", "How long a transcript's cursor that moved over nothing to say may wait for a commit; what it moved over would be read again.";
    OUTBOX_AGE: Duration = secs(30 * 60), "time", "An entry that is older is not sent but counted in one line.";
    OUTBOX_ENTRIES: usize = 200, "messages", "Messages of whole entries that wait for one channel; what is in older ones is counted in one line. A burst is a number of messages: entries that were joined into one count once.";
    OUTBOX_JOINED: Duration = secs(5 * 60), "time", "What was written later than this after a message's beginning is not joined to it while it waits; a sixth of OUTBOX_AGE, by which they would be left out together.";
    OUTBOX_CHUNKS: usize = 20, "messages", "Messages of one entry; the rest of it is counted in the last.";
    OUTBOX_RECORDS: usize = 1000, "messages", "Messages that wait for one channel; less than OUTBOX_ENTRIES of OUTBOX_CHUNKS each.";
    OUTBOX_LANES: usize = 64, "channels", "Channels of one bot; the one that was idle for longest is forgotten for a new one.";
    OUTBOX_BACKLOG: usize = 4000, "changes", "Changes that wait for one commit; above, no entries are taken.";
    OUTBOX_DRAIN_STARTS: Duration = secs(2), "time", "How long at hand-over further messages are begun; what is under way then has until SEAT_DRAIN.";
    OUTBOX_COMPARED: usize = 500, "messages", "Messages of a channel that are looked through for one that may have been sent.";
    OUTBOX_SKEW: Duration = secs(120), "time", "How far the service's clock may differ from ours where no message is known to ask from.";
    OUTBOX_TROUBLES: usize = 100, "messages", "Parked and unknown messages that are shown; all are kept for OUTBOX_KEPT.";
    OUTBOX_EXCERPT: usize = 80, "characters", "What is shown of a message that was refused or is unknown.";
    OUTBOX_KEPT: Duration = secs(7 * 86_400), "time", "How long ended messages are kept against being sent twice, and for people.";
    OUTBOX_KEPT_MAX: u64 = 20_000, "messages", "Ended messages that are kept.";
    OUTBOX_PRUNE: Duration = secs(3600), "time", "How often ended messages that had their time are removed.";

    ["Inbox"]
    INBOX_WAITING: usize = 200, "messages", "Messages that wait for one binding; whoever writes more is told.";
    INBOX_CHANNELS: usize = 256, "channels", "Channels and threads of which it is known what was seen; the oldest is forgotten.";
    INBOX_THREADS: usize = 100, "threads", "Threads with news in which nobody wrote before that are fetched after a gap, the newest first.";
    INBOX_DIRECT: usize = 20, "people", "People whose conversation with the bot alone is looked for at a time, so that nothing there is missed before they first write; services mistrust bots that open many.";
    INBOX_TEXT_MAX: usize = 16 << 10, "bytes", "Text of one message; services allow at most 4096 characters.";
    INBOX_ATTACHMENTS: usize = 10, "files", "Files of one message.";
    INBOX_NAME_MAX: usize = 64, "characters", "Name of a person or a file.";
    INBOX_HELD: usize = 500, "messages", "Messages of a channel that wait while missed ones are fetched; more are fetched as well.";
    INBOX_BACKLOG: usize = 1000, "messages", "Messages that wait for a store that takes nothing, of all channels; more are fetched once it does.";
    INBOX_FETCH_RETRY: Duration = secs(5), "time", "Wait before missed messages are asked for again.";
    INBOX_COMMAND_AGE: Duration = secs(120), "time", "A command that is older is not carried out: it was meant for what ran then.";
    ATTACHMENT_MAX: u64 = 25 << 20, "bytes", "A file of a message that is fetched.";
    INBOX_ATTACHMENT_WAIT: Duration = secs(180), "time", "How long a message waits for its files; others pass it meanwhile.";
    INBOX_TRIES: u32 = 3, "tries", "How often an agent's program is started for a message with which it fails; then its sender decides.";
    INBOX_RETRY_MIN: Duration = secs(2), "time", "First wait before a failed delivery is tried again; doubles.";
    INBOX_RETRY_MAX: Duration = secs(60), "time", "Longest wait before a failed delivery is tried again.";
    INBOX_PERHAPS: usize = 100, "messages", "Messages that are perhaps delivered and can be sent again; the oldest is forgotten.";
    INBOX_KEPT: Duration = secs(30 * 86_400), "time", "How long messages that are done are kept against being taken twice.";
    PAIR_LIFE: Duration = secs(600), "time", "How long pairing is open, and so how long a code counts.";
    PAIR_TRIES: u32 = 5, "codes", "Wrong codes before pairing closes.";
    PAIR_PEOPLE: usize = 3, "people", "People who get a code while pairing is open; each gets one.";
    PAIR_CODE: usize = 6, "characters", "A code, of 31 characters: 1 in 887 million for each of PAIR_TRIES.";

    ["Discord"]
    DISCORD_CONNECT: Duration = secs(30), "time", "From asking for the gateway until the bot is ready; as much more for each failure before.";
    DISCORD_CONNECT_MAX: Duration = secs(90), "time", "The longest of these.";
    DISCORD_LOST: Duration = secs(90), "time", "How long a connection that ended is sought again before the seat begins anew.";
    DISCORD_FALLS: u32 = 6, "connections", "Connections in a row that end before the bot is ready; then the seat begins anew, after a pause.";
    DISCORD_EVENTS: usize = 256, "events", "Events of the gateway that wait to be understood; above, it is not read.";
    DISCORD_PERMIT: Duration = secs(5), "time", "How long a request waits for Discord's limits; if it would be longer, whoever asked waits.";
    DISCORD_REFUSED: u32 = 2000, "answers", "Refusals (401, 403, 429) within DISCORD_REFUSED_WINDOW after which nothing is asked; at 10 000 Discord bans the address.";
    DISCORD_REFUSED_WINDOW: Duration = secs(600), "time", "The stretch in which DISCORD_REFUSED are counted; Discord counts over the same.";
    DISCORD_PLACES: usize = 4096, "channels", "Channels and threads of which it is known where they belong; others are asked for.";
    DISCORD_UNDER_WAY: usize = 32, "requests", "Acknowledgements under way; a further one is not given, and the person sees that it failed.";
    DISCORD_ANSWER: Duration = secs(5), "time", "How long a command waits for an answer to its sender alone before it says to look in the channel.";
    DISCORD_UNPLACED: usize = 256, "messages", "Messages whose channel is being looked up; above, the gateway is not read.";
    DISCORD_PLACE_RETRY: Duration = secs(1), "time", "First wait before a channel that could not be looked up is looked up again; doubles.";
    DISCORD_PLACE_RETRY_MAX: Duration = secs(30), "time", "The longest of these.";

    ["Telegram"]
    TELEGRAM_LIVE: Duration = secs(90), "time", "After a poll that left nothing behind: what the next one brings within this time was heard as it was said, whatever calendars show; more than CHANNEL_POLL with its answer, less than INBOX_COMMAND_AGE.";

    ["Prompts"]
    ASK_LIFE: Duration = secs(600), "time", "How long a prompt waits for a click.";
    ASK_PLACE: Duration = secs(10), "time", "How long a prompt waits for a seat and for its message to be there before the terminal decides.";
    ASK_ALONE: Duration = secs(1), "time", "How long a prompt waits where no Holdfast runs, or one that does nothing about its seat; less than ASK_PLACE.";
    ASK_PREVIEW_MAX: usize = 800, "characters", "What is shown of what a tool is about to do: its beginning, its end, and how much lies between them.";
    ASK_DESCRIPTION_MAX: usize = 300, "characters", "What is shown of what an agent says that a tool is for.";
    ASK_REQUEST_MAX: usize = 48, "bytes", "Name of a prompt; with what stands around it, it fits the 64 bytes that services give a button.";
    ASKS: usize = 100, "prompts", "Prompts that wait.";
    ASKS_KEPT: usize = 200, "prompts", "Prompts that are over and whose clicks are answered with what became of them.";
    TYPING_AGAIN: Duration = secs(8), "time", "How often typing is shown again; services show it for up to 10 s.";
    TYPING_AFTER_WORDS: Duration = secs(1), "time", "How long after its last words an agent that works on is shown typing; what it says within costs no such request.";
    TYPING_FOR: Duration = secs(600), "time", "How long typing is shown without a sign of work; many times TYPING_AGAIN.";
    SIGNS_WAITING: usize = 256, "signs", "Typing and reactions that wait their turn; above, none is begun, and what was begun is still taken away.";
    SIGNS_CHANNELS: usize = 64, "channels", "Channels in which typing and reactions are kept.";

    ["Forwarder"]
    FORWARDER_EVENTS: usize = 256, "events", "What was heard from the chat service and is not taken in yet; more waits at the service.";
    FORWARDER_REQUESTS: usize = 32, "requests", "What API and commands ask and is not taken in yet; more waits at the caller.";
    FORWARDER_FETCHED: usize = 100, "messages", "Messages that an agent gets for one question what was written last.";
    FORWARDER_CURSORS: usize = 500, "transcripts", "Transcripts of which it is kept how far they were said.";
    FORWARDER_IDLE: Duration = secs(5), "time", "The forwarder never sleeps longer than this, so that after a sleep of the machine it is not late for longer.";
    FORWARDER_TURN: Duration = secs(60), "time", "What a transcript says of its agent's work counts if it was written no longer ago.";
    FORWARDER_LOOK: Duration = secs(5), "time", "How often a newer session of a project is looked for.";
    FORWARDER_REPLAY: u64 = 16 << 20, "bytes", "The transcript of a new session is said from its beginning on if it is no larger.";
    FORWARDER_SENT: usize = 500, "messages", "Messages that were sent last, by which our bot's are told from those of others.";
    FORWARDER_STRANGER: Duration = secs(10), "time", "How long a message of our bot may be there before this process knows that it sent it.";
    FORWARDER_EDITS: usize = 3, "tries", "How often it is tried to say under a prompt what became of it.";
    FORWARDER_FINISH: Duration = millis(1500), "time", "How long at hand-over transcripts are read to their ends; what is not read by then is the next holder's.";
    FORWARDER_LEAVE: Duration = millis(3700), "time", "How long a hand-over waits for deliveries that are under way; less than SEAT_DRAIN.";
    FORWARDER_KEY_MAX: usize = 128, "bytes", "What an agent names its words by, so that they are not said twice.";
    FORWARDER_ANSWERS: usize = 64, "answers", "Answers to clicks and commands that are under way; whoever clicks meanwhile sees that it failed.";
    FORWARDER_SAYS: usize = 64, "messages", "What agents say through a tool and is not stored yet; whoever says more is told to try again.";
    FORWARDER_CUT: Duration = secs(10), "time", "How long the seat waits for a forwarder that it ends; whatever is stuck by then finds that the seat is not its own any more.";
    FORWARDER_TEST: Duration = secs(20), "time", "How long a test message is waited for.";

    ["Deliveries"]
    COMMAND_LIFE: Duration = secs(2 * 3600), "awake time", "How long an agent's program may work on one message; other messages wait meanwhile.";
    TMUX_TIME: Duration = secs(5), "awake time", "One command to tmux.";
    TMUX_ENTER: Duration = millis(300), "time", "From pasting a text to pressing Enter: programs that tell pasting from typing by its speed take an earlier one for a part of the text.";
    PANE_MAX: usize = 128, "bytes", "Name of a pane or a key of tmux.";
    AGENT_COMES: Duration = secs(10), "time", "How long a message waits for its agent to listen before the sender is told; an agent whose Holdfast began anew is back in less.";
    AGENT_TAKES: Duration = secs(30), "time", "How long an agent that listens may take to say that it has a message; then it is offered to the next that listens.";
    AGENT_LISTENERS: usize = 8, "processes", "Processes that listen for one binding; one has it, the others stand by.";
    INBOX_TAKEN: Duration = secs(60), "time", "How long a file waits in an agent's folder before the sender is told.";
    INBOX_POLL: Duration = secs(1), "time", "How often an agent's folder with a file in it is looked at when nothing told of a change.";
    FILES_KEPT: Duration = secs(30 * 86_400), "time", "How long files of messages are kept.";
    FILES_ROOM: u64 = 2 << 30, "bytes", "Files of messages that are kept; the oldest go first.";
    FILES_SWEEP: Duration = secs(3600), "time", "How often files that had their time are looked for, at the most.";
    FETCH_TRIES: u32 = 3, "tries", "A file or a transcription that fails for the network's sake.";
    FETCH_RETRY: Duration = millis(300), "time", "Wait before the second of FETCH_TRIES; twice that before the third.";
    VOICE_TIME: Duration = secs(120), "awake time", "Writing down what one voice message says; less than INBOX_ATTACHMENT_WAIT.";
    API_AGENTS: usize = 64, "requests", "Requests of agents that the loopback API serves at once beside API_REQUESTS: processes that listen, and prompts that wait.";
    GRANTS: usize = 1000, "tools", "Tools of sessions that need no further question; the oldest is asked about again.";
    AGENT_WAITS: Duration = secs(15), "time", "How long a tool that an agent calls waits for a Holdfast with the seat; more than a restart takes.";
    AGENT_WRITTEN: usize = 256, "messages", "Messages of which a process of an agent knows that it wrote them; many times the one that is offered.";
    HOOK_INPUT: usize = 16 << 20, "bytes", "What a hook is told; a file that is to be written stands in it as a whole.";
    HOOK_TRIES: u32 = 3, "tries", "How often a hook tells which transcript its agent writes from now on, where whoever serves cannot take it in yet.";
    HOOK_RETRY: Duration = millis(150), "time", "Wait before the second of HOOK_TRIES; twice that before the third.";
    HOOK_TIME: Duration = secs(5), "time", "How long a hook waits for what it is told; agents write it at once.";
    AGENT_AGAIN: Duration = secs(1), "time", "How often a process of an agent looks for a running Holdfast.";

    ["Transcripts"]
    TRANSCRIPT_POLL: Duration = secs(2), "time", "How often a transcript is looked at when nothing told of a change.";
    TRANSCRIPT_READ: usize = 2 << 20, "bytes", "One read of a transcript.";
    TRANSCRIPT_LINE_MAX: usize = 8 << 20, "bytes", "One line; agents write lines of 5 MiB where they were shown a file. A longer one is skipped and counted.";
    TRANSCRIPT_VALUES_MAX: usize = 100_000, "values", "JSON values of one line; one of them takes up to 100 bytes of memory however short it is.";
    TRANSCRIPT_TORN_TRIES: usize = 64, "places", "Where in a line that cannot be read another one is sought that its torn beginning stands before.";
    TRANSCRIPT_TRIES: u32 = 30, "reads", "Failed reads of a file that was replaced, one per TRANSCRIPT_POLL, before the next one is begun.";
    TRANSCRIPT_FILES: usize = 4, "files", "Files that took a transcript's place before the first was read to its end, and as many at a time of those that came and went between two looks.";
    TRANSCRIPT_BESIDE: usize = 1000, "files", "Files beside a transcript among which the one that stood in its place is looked for.";
    TRANSCRIPT_LINKS: usize = 40, "links", "Links that lead to a transcript that is not there yet, one after another.";
    TRANSCRIPT_HEAD: usize = 1024, "bytes", "Beginning of a file by which it is known again.";
    TRANSCRIPT_BACK: usize = 64 << 10, "bytes", "One read backwards for the beginning of the last line.";
    TRANSCRIPT_TEXT_MAX: usize = 256 << 10, "bytes", "What one line may say; more than OUTBOX_CHUNKS messages hold.";
    TOOL_SUMMARY_MAX: usize = 50, "characters", "What a tool was given, beside its name.";
    TOOL_BLOCK_MAX: usize = 500, "characters", "What a tool was given, below its name.";
    TOOL_BLOCK_LINES: usize = 5, "lines", "Lines of that; the others are counted.";
    TOOL_PROMPT_MAX: usize = 200, "characters", "What another agent was asked, below its name.";
    DIFF_LINES: usize = 15, "lines", "What is shown of a change; the others are counted.";
    DIFF_MAX: usize = 1500, "characters", "What is shown of a change of long lines; fits one message.";
    DISCOVERY_NAMES: usize = 5000, "names", "Names of one folder that are looked at when transcripts are looked for.";
    DISCOVERY_FOLDERS: usize = 200, "folders", "Folders of projects, or of days, that are looked into.";
    DISCOVERY_RECORDS: usize = 100, "records", "Notes of running agents about themselves that are read, the newest first.";
    DISCOVERY_FILES: usize = 50, "files", "Transcripts of one agent whose beginning is read, the newest first.";
    DISCOVERY_HEAD: u64 = 256 << 10, "bytes", "Beginning of a transcript in which its session is looked for; Codex writes its instructions into the first line.";
    DISCOVERY_FOUND: usize = 50, "transcripts", "Transcripts that are shown.";
    DISCOVERY_PARENTS: usize = 6, "processes", "Processes above the one that asks.";
    DISCOVERY_SKEW: Duration = secs(120), "time", "How much later than its record was written a process may have begun and still be the one that wrote it.";
    DISCOVERY_FRESH: Duration = secs(30), "time", "Of transcripts without a living session, those written within this time of the newest are all candidates.";
}
