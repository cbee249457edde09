//! Several processes of one person that share a bot, one transcript and one channel.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use holdfast_testkit::discord::{FakeDiscord, Seen};
use holdfast_testkit::home::Home;
use holdfast_testkit::process::Process;
use serde_json::{Value, json};

use super::stage::{BOT, SERVE};

/// See the module. The one binding, `app`, has an agent that takes messages from a folder.
pub struct Crew {
    pub discord: FakeDiscord,
    pub channel: u64,
    pub ann: u64,
    pub members: Vec<Member>,
    folder: tempfile::TempDir,
    said: usize,
}

pub struct Member {
    pub home: Home,
    pub process: Process,
}

impl Crew {
    /// So many processes, none of which has the seat.
    pub async fn of(members: usize) -> Crew {
        let discord = FakeDiscord::start().await;
        discord.limit(None);
        let (channel, ann) = (discord.channel(), discord.person("Ann"));
        let folder = tempfile::tempdir().expect("a folder");
        let mut crew = Crew { discord, channel, ann, members: Vec::new(), folder, said: 0 };
        // A transcript that is there is followed from its end on.
        crew.says(1);
        let homes = std::iter::successors(Some(Home::new()), |first| Some(Home::beside(first))).take(members);
        for (n, home) in homes.collect::<Vec<_>>().into_iter().enumerate() {
            crew.configure(&home, n);
            let process = home.start(&SERVE).await;
            crew.members.push(Member { home, process });
        }
        crew
    }

    fn configure(&self, home: &Home, n: usize) {
        let (Crew { discord, channel, ann, .. }, caller) = (self, format!("m{n}"));
        let (url, gateway) = (discord.url(&caller), discord.gateway_url(&caller));
        home.write_config(&format!(
            "[channel]\nbackend = \"discord\"\nbot = \"{BOT}\"\non_start = \"off\"\nbase_url = \"{url}\"\n\
             gateway_url = \"{gateway}\"\npeople = [\"{ann}\"]\n[[channel.binding]]\nname = \"app\"\n\
             channel = \"{channel}\"\ntranscript = \"{}\"\ndeliver = \"inbox\"\n",
            self.transcript().display()
        ));
        let secrets = json!({format!("channel@discord:{BOT}"): discord.bot(BOT)});
        let path = home.data().join("secrets.json");
        std::fs::write(&path, secrets.to_string()).expect("secrets.json");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    }

    pub fn transcript(&self) -> PathBuf {
        self.folder.path().join("agent.jsonl")
    }

    /// The agent says so many numbered things. The numbers go on from call to call.
    pub fn says(&mut self, times: usize) {
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(self.transcript()).expect("the transcript");
        for _ in 0..times {
            let text = format!("[{}]", self.said);
            let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
            let line = json!({"type": "assistant", "sessionId": "s1", "message": message});
            file.write_all(format!("{line}\n").as_bytes()).expect("written");
            self.said += 1;
        }
    }

    /// A member takes the seat and follows the transcript.
    pub async fn takes(&self, n: usize) {
        let taken = self.members[n].home.json(&["seat", "take", "--json"]).await;
        assert_eq!(taken["state"], "serving", "{taken}");
        self.follows(n).await;
    }

    pub async fn follows(&self, n: usize) {
        self.until(n, "its transcript", |status| status["channels"]["bindings"][0]["transcript"].is_string()).await;
    }

    /// Waits until a member's status is such.
    pub async fn until(&self, n: usize, what: &str, found: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let status = self.members[n].home.json(&["status", "--json"]).await;
                if found(&status) {
                    return status;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(super::stage::PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("no {what}: {}", self.members[n].process.log()))
    }

    /// kill -9 of a member, and a new process in its place.
    pub async fn dies_and_comes_again(&mut self, n: usize) {
        self.members[n].process.kill_9().await;
        self.members[n].process = self.members[n].home.start(&SERVE).await;
    }

    /// The numbers of what was said since the transcript is followed.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        1..self.said
    }

    /// Waits until what was said last was posted.
    pub async fn last_is_told(&self) {
        let channel = self.channel;
        let last = format!("[{}]", self.said - 1);
        self.discord.until(&last, |seen| seen.texts(channel).iter().any(|text| text.contains(&last))).await;
    }

    /// Waits until everything that was said since the beginning was posted, and that nothing was twice and all in order.
    pub async fn is_told(&self) {
        let expected: Vec<usize> = self.numbers().collect();
        let channel = self.channel;
        self.last_is_told().await;
        let seen = self.discord.seen();
        assert_eq!(seen.twice(), Vec::<&str>::new());
        assert_eq!(numbers(&seen, channel), expected);
    }
}

/// The numbers in what the bot posted, in order.
pub fn numbers(seen: &Seen, channel: u64) -> Vec<usize> {
    let texts = seen.texts(channel).join(" ");
    texts.split('[').skip(1).filter_map(|rest| rest.split_once(']')?.0.parse().ok()).collect()
}
