//! A lock on idle sleep, from the system: an assertion on macOS, an execution state on Windows. The latter belongs to a
//! thread, so each lock has one.

use std::sync::mpsc;

use tokio::sync::oneshot;

/// Where locks come from.
#[derive(Debug, Clone, Default)]
pub struct Locks;

/// While it lives, the machine does not fall asleep by itself.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "its thread ends when it is dropped")] mpsc::Sender<()>);

impl Locks {
    /// Takes one.
    pub async fn hold(&self) -> Result<Lock, String> {
        let (lock, dropped) = mpsc::channel();
        let (told, taken) = oneshot::channel();
        let thread = std::thread::Builder::new().name("keep-awake".into());
        let hold = move || {
            let taken = keepawake::Builder::default().idle(true).reason("calls run").app_name("Holdfast").create();
            let _ = told.send(taken.as_ref().map(|_| ()).map_err(ToString::to_string));
            // An error means that the lock is gone, which is what is waited for.
            let _: Result<(), _> = dropped.recv();
        };
        thread.spawn(hold).map_err(|e| e.to_string())?;
        taken.await.map_err(|e| e.to_string())?.map(|()| Lock(lock))
    }
}
