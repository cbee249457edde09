//! The dispatcher: finds the tool, asks the policy gate, takes a place, runs the work, and hands over its end.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::ask::AskRule;
use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::CallId;
use holdfast_core::limits;
use holdfast_core::policy::{Availability, Policy, Role};
use holdfast_core::tools::{self, Place, Refusal, Tool};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ask::Told;
use super::bodies::CallBody;
use super::call::{Call, Owner, stopped};
use super::env::Env;
use super::{Advertised, CallSink, CancelReason, Executor, Extra, Outcome, ProbeSink, Run};

/// What an executor works with.
#[derive(Clone)]
pub struct ExecOptions {
    /// The folder clients work in.
    pub workspace: PathBuf,
    /// Holdfast's data folder, which this process holds: `calls/`, `results/`, `home/` in it are the executor's.
    pub data_dir: PathBuf,
    /// Other folders of Holdfast (configuration, state) that no file tool may touch. The data folder always is one.
    pub private: Vec<PathBuf>,
    /// The device's policy.
    pub policy: Policy,
    /// Which calls ask the person at this machine first.
    pub ask: AskRule,
    /// Where the questions that wait are told.
    pub questions: Told,
    /// Tools of benches and tests.
    pub extra: Vec<Extra>,
    /// What `diagnose_runtime` shows of the link and the engines, as an object of groups; `relay` is one.
    pub diagnose: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
}

impl ExecOptions {
    /// The options of an executor without extras that asks nobody and whose `diagnose_runtime` knows no link.
    pub fn new(workspace: PathBuf, data_dir: PathBuf, policy: Policy) -> ExecOptions {
        ExecOptions {
            workspace,
            data_dir,
            private: Vec::new(),
            policy,
            ask: AskRule::default(),
            questions: Arc::new(|_| ()),
            extra: Vec::new(),
            diagnose: Arc::new(|| serde_json::json!({})),
        }
    }
}

/// Why an executor cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The workspace is no folder that can be read.
    #[error("workspace: {0}")]
    Workspace(std::io::Error),
    /// The executor's own folders cannot be made or emptied.
    #[error("data folder: {0}")]
    Data(std::io::Error),
}

/// Runs calls on this machine.
pub struct LocalExecutor {
    env: Arc<Env>,
    policy: Arc<RwLock<Policy>>,
    extra: Vec<Extra>,
    places: Arc<Mutex<Places>>,
    tasks: TaskTracker,
    runtime: Handle,
}

/// Calls that hold a place, and whether more may come.
#[derive(Default)]
struct Places {
    closed: bool,
    running: HashMap<CallId, Running>,
    busy: watch::Sender<bool>,
}

impl Places {
    /// Tells whoever waits for the first call to come or the last one to go.
    fn tell(&self) {
        let now = !self.running.is_empty();
        self.busy.send_if_modified(|busy| std::mem::replace(busy, now) != now);
    }
}

struct Running {
    control: bool,
    stop: CancellationToken,
    why: Arc<OnceLock<CancelReason>>,
}

/// One taken place; given back on drop, so that no way out of a task keeps it.
struct Taken {
    places: Arc<Mutex<Places>>,
    id: CallId,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.running.remove(&self.id);
        places.tell();
    }
}

enum Work {
    Own(&'static Tool),
    Extra(Extra),
}

/// Whether the device's policy and the account's role let work of a class be done, and under which policy.
fn admit(class: Availability, role: Role, device: &RwLock<Policy>) -> Result<Policy, ToolError> {
    let device = device.read().clone();
    tools::allowed(class, role, &device).map_err(|refusal| match refusal {
        Refusal::Policy => ToolError::new(Code::PolicyDenied, "the policy of this device does not allow this tool"),
        Refusal::Role => ToolError::new(Code::AuthorizationDenied, "tool is not allowed for this account role"),
    })?;
    Ok(device.intersect(&Policy::of(role.profile(), "default")))
}

impl LocalExecutor {
    /// Makes the executor's folders, ends what a killed predecessor left running, and starts. Needs a tokio runtime.
    pub fn open(options: ExecOptions) -> Result<Arc<LocalExecutor>, OpenError> {
        let places = Arc::new(Mutex::new(Places::default()));
        let counted = Arc::clone(&places);
        let policy = options.policy.clone();
        let extra = options.extra.clone();
        let env = Env::open(options, Box::new(move || counted.lock().running.len()))?;
        Ok(Arc::new(LocalExecutor {
            env: Arc::new(env),
            policy: Arc::new(RwLock::new(policy)),
            extra,
            places,
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
        }))
    }

    /// Puts another policy in force for calls that start from now on. Tell the link, so that `hello` says it too.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write() = policy;
    }

    /// Puts another rule in force about which calls ask first. What was remembered is forgotten.
    pub fn set_ask(&self, rule: AskRule) {
        self.env.asking.set_rule(rule);
    }

    /// Answers a question; `false` when it does not wait any more.
    pub fn answer(&self, question: &str, allow: bool, remember: bool) -> bool {
        self.env.asking.answer(question, allow, remember)
    }

    /// Keeps what calls are asked and answered from now on, or forgets it all.
    pub fn keep_bodies(&self, on: bool) {
        self.env.bodies.keep(on);
    }

    /// What a call was asked and answered, if that was kept and still is.
    pub fn body(&self, call: &str) -> Option<CallBody> {
        self.env.bodies.get(call)
    }

    /// [`admit`] for work that is no call.
    pub(super) fn admits(&self, class: Availability, role: Role) -> Result<Policy, ToolError> {
        admit(class, role, &self.policy)
    }

    /// What device and role allow together now, for work that is no call.
    pub(crate) fn policy_for(&self, role: Role) -> Policy {
        self.policy.read().intersect(&Policy::of(role.profile(), "default"))
    }

    /// What tools work with, for work that is no call.
    pub(crate) fn env(&self) -> &Arc<Env> {
        &self.env
    }

    /// How many calls hold a place now.
    pub fn running(&self) -> usize {
        self.places.lock().running.len()
    }

    /// Whether any call holds a place, as it changes.
    pub fn busy(&self) -> watch::Receiver<bool> {
        self.places.lock().busy.subscribe()
    }

    fn find(&self, name: &str) -> Result<Work, ToolError> {
        match (tools::find(name), self.extra.iter().find(|extra| extra.tool.name == name)) {
            (Some(tool), _) if tool.place != Place::Relay => Ok(Work::Own(tool)),
            (_, Some(extra)) => Ok(Work::Extra(extra.clone())),
            _ => Err(ToolError::new(Code::NotFound, "this device has no such tool")),
        }
    }

    fn take(&self, id: &CallId, control: bool) -> Result<(Taken, Running), ToolError> {
        let mut places = self.places.lock();
        if places.closed {
            return Err(ToolError::nothing_done(Code::Unavailable, "this device is stopping"));
        }
        if places.running.contains_key(id) {
            return Err(ToolError::new(Code::Conflict, "this call is already running"));
        }
        let free = if control {
            places.running.len() < limits::DAEMON_CALLS_MAX
        } else {
            let ordinary = places.running.values().filter(|r| !r.control).count();
            ordinary < limits::DAEMON_CALLS_MAX - limits::CONTROL_RESERVE
                && places.running.len() < limits::DAEMON_CALLS_MAX
        };
        if !free {
            return Err(ToolError::nothing_done(Code::Busy, "every place on this device is taken"));
        }
        let running = || Running { control, stop: CancellationToken::new(), why: Arc::default() };
        let kept = running();
        let ours = Running { control, stop: kept.stop.clone(), why: Arc::clone(&kept.why) };
        places.running.insert(id.clone(), kept);
        places.tell();
        Ok((Taken { places: Arc::clone(&self.places), id: id.clone() }, ours))
    }
}

impl Executor for LocalExecutor {
    fn start(&self, run: Run, sink: CallSink) {
        let role = run.authorization.role;
        let admitted = self.find(&run.tool).and_then(|work| {
            let tool = match &work {
                Work::Own(tool) => **tool,
                Work::Extra(extra) => extra.tool,
            };
            admit(tool.class, role, &self.policy)?;
            let (taken, running) = self.take(&run.id, tool.control)?;
            Ok((work, tool, taken, running))
        });
        let (work, tool, taken, running) = match admitted {
            Ok(admitted) => admitted,
            Err(refused) => return sink.finish(Err(refused)),
        };
        let (env, device) = (Arc::clone(&self.env), Arc::clone(&self.policy));
        let owner = Owner::of(&run.authorization);
        let progress = run.progress.then(|| sink.reporter()).flatten();
        let Running { stop, why, .. } = running;
        let given = run.budget;
        env.bodies.began(&run);
        let task = async move {
            let work = async {
                let waited = env.asking.pass(&tool, &run, &stop, progress.as_ref()).await?;
                let budget = given.saturating_sub(waited);
                // Another policy may be in force since the question was asked.
                let policy = admit(tool.class, role, &device)?;
                match work {
                    Work::Own(tool) => {
                        let owner = owner.clone();
                        let call = Call { owner, policy, arguments: run.arguments, stop, progress, budget };
                        super::route::run(&env, tool.name, call).await
                    }
                    Work::Extra(extra) => {
                        tokio::select! {
                            outcome = (extra.run)(run.arguments) => outcome,
                            () = stop.cancelled() => Err(stopped()),
                        }
                    }
                }
            };
            let panicked = |_| Err(ToolError::new(Code::InternalError, "the tool failed unexpectedly"));
            let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked);
            let outcome = say_why(outcome, why.get().copied(), &tool, given);
            env.bodies.ended(&taken.id, &outcome);
            let outcome = env.results.fit(&owner, outcome).await;
            drop(taken);
            sink.finish(outcome);
        };
        self.tasks.spawn_on(task, &self.runtime);
    }

    fn cancel(&self, id: &CallId, why: CancelReason) {
        if let Some(running) = self.places.lock().running.get(id) {
            // The first reason stands.
            let _ = running.why.set(why);
            running.stop.cancel();
        }
    }

    fn probe(&self, sink: ProbeSink) {
        if self.places.lock().closed {
            return;
        }
        // A probe needs no place, but everything else a call needs: the runtime, and a thread that may block.
        self.tasks.spawn_on(
            async move {
                if tokio::task::spawn_blocking(|| ()).await.is_ok() {
                    sink.proven();
                }
            },
            &self.runtime,
        );
    }

    fn advertised(&self) -> Advertised {
        let policy = self.policy.read();
        let own = tools::advertised(&policy).map(|tool| tool.name);
        let extra = self.extra.iter().filter(|extra| policy.allows(extra.tool.class)).map(|extra| extra.tool.name);
        Advertised {
            tools: own.chain(extra).map(str::to_owned).collect(),
            policy: serde_json::to_value(&*policy).unwrap_or_default(),
        }
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        {
            let mut places = self.places.lock();
            places.closed = true;
            for running in places.running.values() {
                let _ = running.why.set(CancelReason::Shutdown);
                running.stop.cancel();
            }
        }
        self.tasks.close();
        let (env, tasks) = (Arc::clone(&self.env), self.tasks.clone());
        Box::pin(async move {
            env.trees.close().await;
            tasks.wait().await;
        })
    }
}

/// Gives work that was stopped the word for the reason. Work that was done by then keeps its result.
fn say_why(outcome: Outcome, why: Option<CancelReason>, tool: &Tool, budget: Duration) -> Outcome {
    let mut error = match outcome {
        Err(error) if error.code == Code::Cancelled => error,
        other => return other,
    };
    if why == Some(CancelReason::Timeout) {
        error.code = Code::Timeout;
        error.message = format!("{} did not end within {} s and was stopped", tool.name, budget.as_secs());
        error.retryable = tool.read_only();
    } else {
        error.message = "the call was stopped".into();
    }
    Err(error)
}
