//! See the module above.

use std::ffi::c_void;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::ERROR_SUCCESS;
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::Power::{DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS, PowerRegisterSuspendResumeNotification};
use windows_sys::Win32::UI::WindowsAndMessaging::{DEVICE_NOTIFY_CALLBACK, PBT_APMRESUMEAUTOMATIC, PBT_APMSUSPEND};

use super::Power;

/// Bytes this user may still write on the disk of a folder.
pub(crate) fn free_space(dir: &Path) -> Option<u64> {
    let name: Vec<u16> = dir.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the name ends with a zero, `free` is a place for a u64, and null is documented for what is not asked.
    let told = unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut()) };
    (told != 0).then_some(free)
}

static TELL: OnceLock<fn(Power)> = OnceLock::new();

/// Calls `tell`, on a thread of the system, when it sleeps and when it wakes; from now until the process ends.
pub(crate) fn on_power(tell: fn(Power)) -> io::Result<()> {
    if TELL.set(tell).is_err() {
        return Ok(());
    }
    let mut parameters = DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS { Callback: Some(changed), Context: ptr::null_mut() };
    let mut handle = ptr::null_mut();
    // SAFETY: with this flag the recipient is such a structure, which is read during the call; the callback is there as long as
    // the process, and is never unregistered.
    let result = unsafe {
        PowerRegisterSuspendResumeNotification(DEVICE_NOTIFY_CALLBACK, (&raw mut parameters).cast(), &raw mut handle)
    };
    if result == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(result.cast_signed())) }
}

unsafe extern "system" fn changed(_context: *const c_void, what: u32, _setting: *const c_void) -> u32 {
    match (TELL.get(), what) {
        (Some(tell), PBT_APMSUSPEND) => tell(Power::Sleeps),
        (Some(tell), PBT_APMRESUMEAUTOMATIC) => tell(Power::Woke),
        _ => {}
    }
    ERROR_SUCCESS
}
