//! Memory that only the start of a process needed.
#![allow(unsafe_code, reason = "giving memory back is the caller's promise that nothing is lost with it")]

/// Gives back the pages of this program's file that stand in this process's memory: a start touches megabytes of it that
/// nothing needs again for hours, and the system reads around each. What is needed again comes from the page cache.
///
/// Only what is as it is in the file: a mapping with as much as one page of its own is left alone. Reads `/proc/self/smaps`,
/// which takes about a millisecond.
pub(crate) fn give_back() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    let Ok(program) = std::env::current_exe() else { return };
    for (start, end) in unchanged(&maps, &program.to_string_lossy()) {
        // SAFETY: a private mapping of a file without a changed page reads the same afterwards, because every page of it comes
        // from that file again. It cannot be written to, so that none is changed meanwhile.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED);
        }
    }
}

/// Where mappings of a file lie that cannot be written to and have no page of their own.
fn unchanged(maps: &str, file: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current: Option<(usize, usize)> = None;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "Anonymous:" || first == "Private_Dirty:" || first == "Shared_Dirty:" {
            // Its lines say whether it is as it is in the file; the last one of them decides.
            if words.next() != Some("0") {
                current = None;
            }
        } else if first == "VmFlags:" {
            found.extend(current.take());
        } else if let Some((start, end)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).ok();
            let ours = words.next().is_some_and(|rights| rights.ends_with('p') && !rights.contains('w'))
                && line.ends_with(file);
            current = number(start).zip(number(end)).filter(|_| ours);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mappings_of_the_program_that_are_as_in_its_file_are_given_back() {
        let one = |range: &str, rights: &str, dirty: u32, file: &str| {
            format!(
                "{range} {rights} 00000000 fe:00 12 {file}\nRss: 8 kB\nShared_Dirty: 0 kB\nPrivate_Dirty: {dirty} kB\n\
                 Anonymous: {dirty} kB\nVmFlags: rd mr mw me\n"
            )
        };
        let maps = [
            one("1000-3000", "r-xp", 0, "/bin/it"),
            one("3000-4000", "r--p", 4, "/bin/it"),
            one("4000-5000", "rw-p", 0, "/bin/it"),
            one("5000-6000", "r--p", 0, "/lib/other"),
            one("6000-a000", "r--p", 0, "/bin/it"),
        ];
        assert_eq!(unchanged(&maps.concat(), "/bin/it"), [(0x1000, 0x3000), (0x6000, 0xa000)]);
    }

    #[test]
    fn a_process_goes_on_after_it_gave_its_program_back() {
        give_back();
        assert_eq!(format!("{:?}", "it works".to_owned()), "\"it works\"");
    }
}
