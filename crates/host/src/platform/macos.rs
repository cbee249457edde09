//! See the module above. The declarations are those of IOKit/pwr_mgt/IOPMLib.h and dispatch/queue.h.

use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Power;

#[link(name = "IOKit", kind = "framework")]
unsafe extern "C" {
    fn IORegisterForSystemPower(
        context: *mut c_void,
        port: *mut *mut c_void,
        callback: unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void),
        notifier: *mut u32,
    ) -> u32;
    fn IONotificationPortSetDispatchQueue(port: *mut c_void, queue: *mut c_void);
    fn IOAllowPowerChange(connection: u32, notification: isize) -> i32;
}

unsafe extern "C" {
    fn dispatch_get_global_queue(quality: isize, flags: usize) -> *mut c_void;
}

const CAN_SLEEP: u32 = 0xe000_0270;
const WILL_SLEEP: u32 = 0xe000_0280;
const HAS_POWERED_ON: u32 = 0xe000_0300;

static TELL: OnceLock<fn(Power)> = OnceLock::new();
/// To the power system; zero until it is open.
static CONNECTION: AtomicU32 = AtomicU32::new(0);

/// Calls `tell`, on a thread of the system, when it sleeps and when it wakes; from now until the process ends.
pub(crate) fn on_power(tell: fn(Power)) -> io::Result<()> {
    if TELL.set(tell).is_err() {
        return Ok(());
    }
    let (mut port, mut notifier) = (ptr::null_mut(), 0);
    // SAFETY: both are places for what the call returns; the callback is there as long as the process and uses no context.
    let connection = unsafe { IORegisterForSystemPower(ptr::null_mut(), &raw mut port, changed, &raw mut notifier) };
    if connection == 0 || port.is_null() {
        return Err(io::Error::other("the power system takes no listener"));
    }
    CONNECTION.store(connection, Ordering::Release);
    // SAFETY: the port was just made and is never taken down; the queue of ordinary quality (0) always exists.
    unsafe { IONotificationPortSetDispatchQueue(port, dispatch_get_global_queue(0, 0)) };
    Ok(())
}

unsafe extern "C" fn changed(_context: *mut c_void, _service: u32, message: u32, notification: *mut c_void) {
    let Some(tell) = TELL.get() else { return };
    match message {
        WILL_SLEEP => tell(Power::Sleeps),
        HAS_POWERED_ON => tell(Power::Woke),
        _ => {}
    }
    if matches!(message, CAN_SLEEP | WILL_SLEEP) {
        // SAFETY: these two messages want this answer, with the value that came along. Without it sleep waits 30 s.
        unsafe { IOAllowPowerChange(CONNECTION.load(Ordering::Acquire), notification as isize) };
    }
}
