//! Whether the machine runs on mains power.

#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// Knows where to look.
#[derive(Debug, Clone)]
pub struct Mains {
    #[cfg(target_os = "linux")]
    supplies: PathBuf,
}

impl Default for Mains {
    fn default() -> Self {
        Mains {
            #[cfg(target_os = "linux")]
            supplies: "/sys/class/power_supply".into(),
        }
    }
}

impl Mains {
    /// Supplies as the kernel shows them, in another folder.
    #[cfg(all(test, target_os = "linux"))]
    pub fn shown_in(supplies: &std::path::Path) -> Mains {
        Mains { supplies: supplies.into() }
    }

    /// Whether mains power is there: a supply that is no battery is online, or there is no battery at all, as in most
    /// machines that stand on the floor.
    #[cfg(target_os = "linux")]
    pub fn present(&self) -> bool {
        let Ok(folder) = std::fs::read_dir(&self.supplies) else { return true };
        let mut batteries = false;
        for supply in folder.flatten() {
            let read = |name| std::fs::read_to_string(supply.path().join(name)).unwrap_or_default();
            match read("type").trim() {
                // Of a mouse or a headset.
                "Battery" if read("scope").trim() == "Device" => {}
                "Battery" => batteries = true,
                _ if read("online").trim() == "1" => return true,
                _ => {}
            }
        }
        !batteries
    }

    /// Elsewhere the system itself decides what a lock means on battery.
    #[cfg(not(target_os = "linux"))]
    pub fn present(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;

    use super::*;

    fn supply(folder: &Path, name: &str, files: &[(&str, &str)]) {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(name).join(file), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn mains_is_a_supply_that_is_online_or_the_absence_of_a_battery() {
        let folder = tempfile::tempdir().unwrap();
        let mains = Mains::shown_in(folder.path());
        assert!(mains.present(), "no supply is shown");
        supply(folder.path(), "mouse", &[("type", "Battery"), ("scope", "Device")]);
        assert!(mains.present());
        supply(folder.path(), "BAT0", &[("type", "Battery"), ("status", "Discharging")]);
        supply(folder.path(), "AC", &[("type", "Mains"), ("online", "0")]);
        assert!(!mains.present());
        supply(folder.path(), "ucsi", &[("type", "USB"), ("online", "1")]);
        assert!(mains.present());
        assert!(Mains::shown_in(&folder.path().join("none")).present());
    }
}
