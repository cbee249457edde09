//! See the module above.

use std::ffi::c_void;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use windows_sys::Win32::Foundation::{CloseHandle, ERROR_SUCCESS, FILETIME, WAIT_TIMEOUT};
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::Power::{DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS, PowerRegisterSuspendResumeNotification};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject,
};
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

/// Time since the system started, sleep counted.
pub(crate) fn boot_clock() -> Duration {
    // SAFETY: it takes nothing and cannot fail.
    Duration::from_millis(unsafe { GetTickCount64() })
}

/// When a process that has not ended was made, in the system's units.
pub(crate) fn process_started(pid: u32) -> Option<u64> {
    let [mut made, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the call takes numbers; what it returns is null or ours to close.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, pid) };
    if process.is_null() {
        return None;
    }
    // SAFETY: the handle is open until the last line, and each pointer is a place for a time.
    let lives = unsafe {
        let told = GetProcessTimes(process, &raw mut made, &raw mut ended, &raw mut kernel, &raw mut user);
        let lives = told != 0 && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
        CloseHandle(process);
        lives
    };
    lives.then_some(u64::from(made.dwHighDateTime) << 32 | u64::from(made.dwLowDateTime))
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
