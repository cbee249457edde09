//! What processes of agents ask: messages for them, replies of theirs, and prompts that a person answers in the channel.

use std::path::PathBuf;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{future, stream};
use holdfast_core::chat::MessageId;
use holdfast_core::chat::asks::Verdict;
use holdfast_core::chat::inbox::Prepared;
use holdfast_core::limits;
use holdfast_core::status::{ForwarderStatus, SeatState, SeatStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::routes::{Body, Refusal, events, read, refuse};
use crate::asked::Asked;
use crate::config::{BindingConfig, ChannelConfig};
use crate::deliver::Letter;
use crate::forwarder::{Answered, CannotAsk, Desk, DeskError, Question};
use crate::resident::Resident;

/// Where the routes are, for the places they take.
pub(super) const PATH: &str = "/api/channel/";

pub(super) fn router() -> Router<Resident> {
    Router::new()
        .route("/api/channel/listen", get(listen))
        .route("/api/channel/acknowledge", post(acknowledge))
        .route("/api/channel/say", post(say))
        .route("/api/channel/fetch", post(fetch))
        .route("/api/channel/ask", post(ask))
        .route("/api/channel/withdraw", post(withdraw))
        .route("/api/channel/follow", post(follow))
}

/// What an agent knows of itself, by which its binding is found; the first that is there and says anything counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Whereabouts {
    /// The binding's name.
    pub binding: Option<String>,
    /// The agent's session.
    pub session: Option<String>,
    /// The transcript it writes.
    pub transcript: Option<String>,
    /// The folder it works in.
    pub folder: Option<String>,
}

/// The agent has a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledge {
    /// Its binding.
    pub at: Whereabouts,
    /// [`Letter::id`].
    pub id: String,
}

/// The agent says something.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Its binding.
    pub at: Whereabouts,
    /// Of any length.
    pub text: String,
    /// The message it answers.
    #[serde(default)]
    pub reply_to: Option<MessageId>,
    /// The same key again is not said again.
    pub key: String,
}

/// The agent wants to see what was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Its binding.
    pub at: Whereabouts,
    /// How many of the newest messages.
    pub limit: usize,
}

/// An agent's hook asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskPerson {
    /// Its binding.
    pub at: Whereabouts,
    /// It was asked before, and whoever was asked went: it is waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// [`Question::request`].
    pub request: String,
    /// The tool that wants to run.
    pub tool: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it will do.
    #[serde(default)]
    pub preview: String,
    /// [`Question::left_out`].
    #[serde(default)]
    pub left_out: usize,
}

/// A hook's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum AskAnswer {
    /// A person decided.
    Answered {
        /// What.
        verdict: Verdict,
        /// Who.
        by: String,
    },
    /// Nobody did in time.
    Expired,
    /// The prompt was withdrawn.
    Withdrawn,
    /// Nobody can be asked.
    CannotAsk,
    /// The agent belongs to no channel.
    NotBound,
}

/// The prompt is of no use any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdraw {
    /// [`Question::request`].
    pub request: String,
}

/// The agent writes another transcript from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// Its binding, by its name or its folder, and that transcript.
    pub at: Whereabouts,
}

/// The messages for an agent, as they are offered; whoever listens first has them. Ends with the connection.
async fn listen(State(resident): State<Resident>, Query(at): Query<Whereabouts>) -> Result<impl IntoResponse, Refusal> {
    let binding = place(&resident, &at).await?;
    let listener = resident.desk().offers().listen(&binding);
    let listener = listener.map_err(|why| refuse(StatusCode::CONFLICT, "busy", &why))?;
    Ok(events(stream::unfold((listener, resident, at), |(mut listener, resident, at)| async move {
        loop {
            listener.ready().await;
            // The binding may be another agent's by now.
            if place(&resident, &at).await.ok()?.as_str() != &**listener.binding() {
                return None;
            }
            if let Some(offer) = listener.take() {
                return Some((offer, (listener, resident, at)));
            }
        }
    })))
}

async fn acknowledge(State(resident): State<Resident>, body: Body) -> Result<Json<Value>, Refusal> {
    let Acknowledge { at, id } = read(body)?;
    let binding = place(&resident, &at).await?;
    Ok(Json(json!({"known": resident.desk().offers().acknowledge(&binding, &id)})))
}

async fn say(State(resident): State<Resident>, body: Body) -> Result<Json<Value>, Refusal> {
    let Say { at, text, reply_to, key } = read(body)?;
    let binding = place(&resident, &at).await?;
    resident.desk().say(&binding, text, reply_to, key).await.map_err(refused)?;
    Ok(Json(json!({"done": true})))
}

async fn fetch(State(resident): State<Resident>, body: Body) -> Result<Json<Vec<Letter>>, Refusal> {
    let Fetch { at, limit } = read(body)?;
    let binding = place(&resident, &at).await?;
    let messages = resident.desk().fetch(&binding, limit).await.map_err(refused)?;
    Ok(Json(messages.iter().map(|message| Letter::of(message, &Prepared::default())).collect()))
}

/// Answers when the prompt has ended. Whoever asked being gone withdraws it.
async fn ask(State(resident): State<Resident>, body: Body) -> Result<Json<AskAnswer>, Refusal> {
    let AskPerson { at, again, request, tool, description, preview, left_out } = read(body)?;
    let Ok(binding) = place(&resident, &at).await else { return Ok(Json(AskAnswer::NotBound)) };
    let desk = resident.desk();
    // Somebody's session is nobody else's, even if both should have the same name.
    let session = at.session.map(|session| format!("{binding}/{session}"));
    if session.as_deref().is_some_and(|session| desk.grants().has(session, &tool)) {
        return Ok(Json(AskAnswer::Answered { verdict: Verdict::Session, by: String::new() }));
    }
    let opened = tokio::time::timeout(limits::ASK_ALONE, desk.opened());
    if !again && !resident.status().seat.as_ref().is_some_and(serves_soon) && opened.await.is_err() {
        return Ok(Json(AskAnswer::CannotAsk));
    }
    let mut waits = Waits { desk: desk.clone(), request: Some(request.clone()) };
    let asked = Question { request, binding, tool: tool.clone(), description, preview, left_out };
    let answer = desk.ask(asked).await;
    waits.request = None;
    if let (Ok(Answered::By(Verdict::Session, _)), Some(session)) = (&answer, &session) {
        desk.grants().give(session, &tool);
    }
    Ok(Json(match answer {
        Ok(Answered::By(verdict, by)) => AskAnswer::Answered { verdict, by },
        Ok(Answered::Expired) => AskAnswer::Expired,
        Ok(Answered::Withdrawn) => AskAnswer::Withdrawn,
        Err(CannotAsk) => AskAnswer::CannotAsk,
    }))
}

/// Whether this process speaks for the bot, or is about to.
fn serves_soon(seat: &SeatStatus) -> bool {
    match seat.state {
        SeatState::Claiming => !seat.frozen,
        SeatState::Connecting | SeatState::Serving | SeatState::Draining => true,
        SeatState::Off | SeatState::Standby | SeatState::Failed => false,
    }
}

/// A hook that waits. While this process lives, its connection only ends with it.
struct Waits {
    desk: Desk,
    request: Option<String>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let desk = self.desk.clone();
            tokio::spawn(async move { desk.withdraw(&request).await });
        }
    }
}

async fn withdraw(State(resident): State<Resident>, body: Body) -> Result<Json<Value>, Refusal> {
    let Withdraw { request } = read(body)?;
    resident.desk().withdraw(&request).await;
    Ok(Json(json!({"done": true})))
}

/// Told again, it is the same.
async fn follow(State(resident): State<Resident>, body: Body) -> Result<Json<Value>, Refusal> {
    let Follow { at } = read(body)?;
    let Some(transcript) = &at.transcript else {
        return Err(refuse(StatusCode::BAD_REQUEST, "invalid_request", "which transcript is not said"));
    };
    // What begins now nobody follows yet.
    let known = Whereabouts { session: None, transcript: None, ..at.clone() };
    let binding = place(&resident, &known).await?;
    resident.desk().bind(&binding, transcript).await.map_err(refused)?;
    Ok(Json(json!({"done": true})))
}

fn refused(error: DeskError) -> Refusal {
    let status = match error {
        DeskError::NoSeat | DeskError::Later(_) => StatusCode::SERVICE_UNAVAILABLE,
        DeskError::NotFound(_) => StatusCode::NOT_FOUND,
        DeskError::Invalid(_) | DeskError::WrongCode => StatusCode::BAD_REQUEST,
        DeskError::Parked(_) => StatusCode::CONFLICT,
    };
    refuse(status, error.code(), &error.to_string())
}

async fn place(resident: &Resident, at: &Whereabouts) -> Result<String, Refusal> {
    let config = resident.config().await.config.channel;
    let status = resident.desk().view().borrow().clone();
    let none = || {
        refuse(
            StatusCode::NOT_FOUND,
            "not_found",
            "no binding of the channel belongs to this agent; `holdfast channel bind` makes one",
        )
    };
    find(&config, &status, at, resident.desk().paths()).await.map(|binding| binding.name.clone()).ok_or_else(none)
}

/// Whether an agent has a channel by the configuration alone.
pub async fn is_bound(config: &ChannelConfig, at: &Whereabouts) -> bool {
    find(config, &ForwarderStatus::default(), at, &Asked::default()).await.is_some()
}

/// The binding of an agent: the one it names, or that of its session, its transcript, or its folder. Other bindings may be of
/// disks that do not answer.
async fn find<'a>(
    config: &'a ChannelConfig,
    status: &ForwarderStatus,
    at: &Whereabouts,
    paths: &Asked<PathBuf>,
) -> Option<&'a BindingConfig> {
    let named = |name: &str| config.bindings.iter().find(|binding| binding.name == name);
    if let Some(name) = &at.binding {
        return named(name);
    }
    if let Some(session) = at.session.as_deref() {
        let is = |other: &Option<String>| other.as_deref() == Some(session);
        let followed = || status.bindings.iter().find(|binding| is(&binding.session));
        let found = config.bindings.iter().find(|binding| is(&binding.session));
        if let Some(found) = found.or_else(|| named(&followed()?.name)) {
            return Some(found);
        }
    }
    if let Some(path) = at.transcript.as_deref() {
        let configured = config.bindings.iter().filter_map(|b| Some((b.name.as_str(), b.transcript.as_deref()?)));
        let followed = status.bindings.iter().filter_map(|b| Some((b.name.as_str(), b.transcript.as_deref()?)));
        let (path, real) = future::join(paths.real(path), reals(paths, configured.chain(followed))).await;
        let found = real.into_iter().find(|(_, other)| *other == path);
        if let Some(found) = found.and_then(|(name, _)| named(name)) {
            return Some(found);
        }
    }
    // A binding of one session or file is not that of another one in the same folder.
    let open = config.bindings.iter().filter(|binding| binding.session.is_none() && binding.transcript.is_none());
    let projects = open.filter_map(|binding| Some((binding, binding.project.as_deref()?)));
    let (folder, real) = future::join(paths.real(at.folder.as_deref()?), reals(paths, projects)).await;
    let holds = real.into_iter().filter(|(_, project)| folder.starts_with(project));
    holds.max_by_key(|(_, project)| project.components().count()).map(|(binding, _)| binding)
}

/// Paths without links, each with what it belongs to.
async fn reals<T>(paths: &Asked<PathBuf>, of: impl Iterator<Item = (T, &str)>) -> Vec<(T, PathBuf)> {
    let real = async |(of, path): (T, &str)| (of, paths.real(path).await);
    future::join_all(of.map(real)).await
}

#[cfg(test)]
mod tests {
    use holdfast_core::status::BindingStatus;

    use super::*;

    fn bindings() -> (ChannelConfig, ForwarderStatus) {
        let binding = |name: &str, project: &str| BindingConfig {
            name: name.into(),
            project: (!project.is_empty()).then(|| project.into()),
            ..BindingConfig::default()
        };
        let pinned = BindingConfig { session: Some("s-pinned".into()), ..binding("pinned", "/w/app/deep") };
        let file = BindingConfig { transcript: Some("/t/x.jsonl".into()), ..binding("file", "") };
        let config = ChannelConfig {
            bindings: vec![binding("app", "/w/app"), binding("inner", "/w/app/inner"), pinned, file],
            ..ChannelConfig::default()
        };
        let app = BindingStatus {
            name: "app".into(),
            session: Some("s-app".into()),
            transcript: Some("/t/app.jsonl".into()),
            ..BindingStatus::default()
        };
        (config, ForwarderStatus { bindings: vec![app], ..ForwarderStatus::default() })
    }

    async fn found(at: Whereabouts) -> Option<String> {
        let (config, status) = bindings();
        find(&config, &status, &at, &Asked::default()).await.map(|binding| binding.name.clone())
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[tokio::test]
    async fn a_name_is_that_binding_or_none() {
        assert_eq!(found(Whereabouts { binding: some("inner"), ..Default::default() }).await, some("inner"));
        let at = Whereabouts { binding: some("other"), folder: some("/w/app"), ..Default::default() };
        assert_eq!(found(at).await, None);
    }

    #[tokio::test]
    async fn a_session_and_a_transcript_lead_to_the_binding_that_follows_them() {
        let at = |session: &str| Whereabouts { session: some(session), ..Default::default() };
        assert_eq!(found(at("s-app")).await, some("app"));
        assert_eq!(found(at("s-pinned")).await, some("pinned"));
        assert_eq!(found(at("s-other")).await, None);
        let at = |path: &str| Whereabouts { transcript: some(path), ..Default::default() };
        assert_eq!(found(at("/t/app.jsonl")).await, some("app"));
        assert_eq!(found(at("/t/x.jsonl")).await, some("file"));
        assert_eq!(found(at("/t/other.jsonl")).await, None);
    }

    #[tokio::test]
    async fn a_folder_leads_to_the_innermost_project_that_has_it_and_never_to_a_binding_of_one_session() {
        let at = |folder: &str| Whereabouts { session: some("s-new"), folder: some(folder), ..Default::default() };
        assert_eq!(found(at("/w/app/src")).await, some("app"));
        assert_eq!(found(at("/w/app/inner/src")).await, some("inner"));
        assert_eq!(found(at("/w/app/deep")).await, some("app"));
        assert_eq!(found(at("/w/apple")).await, None);
        assert_eq!(found(Whereabouts::default()).await, None);
    }

    #[tokio::test]
    async fn a_binding_whose_disk_does_not_answer_keeps_no_other_agent_from_its_own() {
        let (mut config, status) = bindings();
        config.bindings[1].project = some("/dead");
        let (_open, hangs) = std::sync::mpsc::channel::<PathBuf>();
        let paths = Asked::default();
        paths.ask(std::path::Path::new("/dead"), move |_| hangs.recv().unwrap_or_default()).await;
        let at = Whereabouts { folder: some("/w/app/src"), ..Default::default() };
        let found = find(&config, &status, &at, &paths).await.map(|binding| binding.name.as_str());
        assert_eq!(found, Some("app"));
    }
}
