//! What a service is, and the files that describe it to systemd and launchd.

use std::path::{Path, PathBuf};

use crate::args::{Relay, Serve};
use crate::failure::Failure;

#[cfg(any(all(unix, not(target_os = "macos")), test))]
/// A unit to start from; its `ExecStart` and `Environment` lines are replaced.
const SERVE_UNIT: &str = include_str!("../../../../deploy/holdfast.service");
#[cfg(any(all(unix, not(target_os = "macos")), test))]
const RELAY_UNIT: &str = include_str!("../../../../deploy/holdfast-relay.service");

/// Below it a port needs a capability that the relay's user does not have.
const FIRST_FREE_PORT: u16 = 1024;

#[cfg(unix)]
/// First line of what we wrote, by which we know it again.
pub const OURS: &str = "# Written by `holdfast service install`; `holdfast service remove` takes it away.";

/// A program with its arguments, to be started by the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// It listens on a port that the system keeps for root.
    low_port: bool,
}

impl Start {
    /// `holdfast serve` with these options and folders.
    pub fn serve(program: PathBuf, options: Serve, config: &Path, data: &Path) -> Result<Start, Failure> {
        let Serve { workspace, listen, relay } = options;
        let mut start = Start { program, arguments: vec!["serve".into()], low_port: false };
        start.path("--workspace", workspace.as_deref())?;
        start.option("--listen", listen);
        start.option("--relay", relay);
        start.path("--config-dir", Some(config))?;
        start.path("--data-dir", Some(data))?;
        Ok(start)
    }

    /// `holdfast relay` with these options.
    pub fn relay(program: PathBuf, options: Relay) -> Result<Start, Failure> {
        let Relay { listen, public_url, tls_cert, tls_key, behind_proxy } = options;
        let low_port = listen.is_some_and(|address| address.port() < FIRST_FREE_PORT);
        let mut start = Start { program, arguments: vec!["relay".into()], low_port };
        start.option("--listen", listen);
        start.option("--public-url", public_url);
        start.path("--tls-cert", tls_cert.as_deref())?;
        start.path("--tls-key", tls_key.as_deref())?;
        for network in behind_proxy {
            start.option("--behind-proxy", Some(network));
        }
        Ok(start)
    }

    fn option(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.arguments.extend([name.to_owned(), value.to_string()]);
        }
    }

    /// A service starts in another folder, so a path has to be whole.
    fn path(&mut self, name: &str, path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let whole = std::path::absolute(path)?;
        let text = whole.to_str().filter(|text| !text.contains(char::is_control));
        self.option(name, Some(text.ok_or_else(|| unusable(path))?));
        Ok(())
    }

    #[cfg(unix)]
    fn words(&self) -> Result<Vec<&str>, Failure> {
        let program = self.program.to_str().ok_or_else(|| unusable(&self.program))?;
        Ok(std::iter::once(program).chain(self.arguments.iter().map(String::as_str)).collect())
    }

    #[cfg(any(all(unix, not(target_os = "macos")), test))]
    /// The unit of a person's `holdfast serve`.
    pub fn serve_unit(&self) -> Result<String, Failure> {
        self.unit(SERVE_UNIT, "")
    }

    #[cfg(any(all(unix, not(target_os = "macos")), test))]
    /// The system's unit of `holdfast relay`; its folders are the unit's own.
    pub fn relay_unit(&self) -> Result<String, Failure> {
        self.unit(RELAY_UNIT, " --data-dir %S/holdfast-relay --config-dir %E/holdfast-relay")
    }

    #[cfg(any(all(unix, not(target_os = "macos")), test))]
    fn unit(&self, like: &str, folders: &str) -> Result<String, Failure> {
        let words: Vec<String> = self.words()?.into_iter().map(systemd_word).collect();
        let start = format!("ExecStart={}{folders}", words.join(" "));
        // The comments above the first section and those marked (*) tell how to write the file by hand.
        let body = like.lines().skip_while(|line| !line.starts_with('['));
        let kept = body.filter(|line| !line.starts_with("Environment=") && !line.starts_with("# (*)"));
        let lines = kept.flat_map(|line| match line {
            line if line.starts_with("ExecStart=") => vec![start.as_str()],
            "CapabilityBoundingSet=" if self.low_port => {
                vec!["CapabilityBoundingSet=CAP_NET_BIND_SERVICE", "AmbientCapabilities=CAP_NET_BIND_SERVICE"]
            }
            line => vec![line],
        });
        Ok(std::iter::once(OURS).chain(lines).flat_map(|line| [line, "\n"]).collect())
    }

    /// The agent of a person's `holdfast serve` for launchd.
    #[cfg(any(target_os = "macos", test))]
    pub fn agent(&self, label: &str) -> Result<String, Failure> {
        let escaped = |word: &str| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let words: String = self.words()?.iter().map(|w| format!("\t\t<string>{}</string>\n", escaped(w))).collect();
        Ok(format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <!-- {} -->\n<plist version=\"1.0\">\n<dict>\n\
             \t<key>Label</key>\n\t<string>{label}</string>\n\
             \t<key>ProgramArguments</key>\n\t<array>\n{words}\t</array>\n\
             \t<key>RunAtLoad</key>\n\t<true/>\n\
             \t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n\
             \t<key>ExitTimeOut</key>\n\t<integer>45</integer>\n</dict>\n</plist>\n",
            OURS.trim_start_matches("# ")
        ))
    }
}

fn unusable(path: &Path) -> Failure {
    Failure::plain(format!("{}: a service needs a path of plain text", path.display()))
}

#[cfg(any(all(unix, not(target_os = "macos")), test))]
/// A word as systemd reads it back: quoted, and nothing in it expanded.
fn systemd_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' | '$' => quoted.extend([c, c]),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(workspace: &str) -> Start {
        let options = Serve { workspace: Some(workspace.into()), listen: None, relay: None };
        Start::serve("/opt/holdfast".into(), options, Path::new("/c"), Path::new("/d")).unwrap()
    }

    #[test]
    fn the_units_are_those_of_deploy_with_another_start() {
        let text = serve("/home/ann/my 100% $HOME \"work\"").serve_unit().unwrap();
        let start = "ExecStart=/opt/holdfast serve --workspace \"/home/ann/my 100%% $$HOME \\\"work\\\"\" --config-dir /c --data-dir /d\n";
        assert!(text.starts_with(&format!("{OURS}\n[Unit]\n")) && text.contains(start), "{text}");
        assert!(text.contains("KillMode=process\n") && text.ends_with("WantedBy=default.target\n"), "{text}");
        let options = Relay {
            listen: Some("127.0.0.1:8787".parse().unwrap()),
            public_url: Some("https://relay.example".parse().unwrap()),
            tls_cert: None,
            tls_key: None,
            behind_proxy: vec!["10.0.0.0/8".into(), "fd00::/8".into()],
        };
        let text = Start::relay("/usr/bin/holdfast".into(), options).unwrap().relay_unit().unwrap();
        let start = "ExecStart=/usr/bin/holdfast relay --listen 127.0.0.1:8787 --public-url https://relay.example/ \
                     --behind-proxy 10.0.0.0/8 --behind-proxy fd00::/8 --data-dir %S/holdfast-relay --config-dir %E/holdfast-relay\n";
        assert!(text.contains(start), "{text}");
        assert!(text.contains("User=holdfast-relay\n") && !text.contains("Environment=") && !text.contains("(*)"));
        assert!(text.contains("\nCapabilityBoundingSet=\n") && !text.contains("AmbientCapabilities="), "{text}");
    }

    #[test]
    fn a_relay_on_a_port_of_root_gets_that_one_capability() {
        let options = Relay {
            listen: Some("0.0.0.0:443".parse().unwrap()),
            public_url: Some("https://relay.example".parse().unwrap()),
            tls_cert: Some("/etc/holdfast/cert.pem".into()),
            tls_key: Some("/etc/holdfast/key.pem".into()),
            behind_proxy: vec![],
        };
        let text = Start::relay("/usr/bin/holdfast".into(), options).unwrap().relay_unit().unwrap();
        let both = "\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n";
        assert!(text.contains(both), "{text}");
    }

    #[test]
    fn a_path_that_a_unit_cannot_hold_is_refused() {
        let options = Serve { workspace: Some("/a\nExecStartPre=/bin/x".into()), listen: None, relay: None };
        assert!(Start::serve("/h".into(), options, Path::new("/c"), Path::new("/d")).is_err());
    }

    #[test]
    fn an_agent_names_each_word_by_itself() {
        let text = serve("/R&D").agent("dev.holdfast.serve").unwrap();
        let words: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("\t\t<string>")).collect();
        let expected = ["/opt/holdfast", "serve", "--workspace", "/R&amp;D", "--config-dir", "/c", "--data-dir", "/d"];
        assert_eq!(words, expected.map(|w| format!("{w}</string>")));
    }
}
