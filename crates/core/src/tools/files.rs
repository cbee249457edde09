//! Tools that read and change files.

use serde_json::json;

use super::schema::{max_bytes, object, path, path_required, sha256, switch, text, whole};
use super::{Effect, Place, Timing, Tool};
use crate::limits;
use crate::policy::Availability;

const FIXED: Timing = Timing::Fixed(limits::CALL_TIMEOUT_DEFAULT);

const fn reads(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> serde_json::Value,
) -> Tool {
    Tool {
        name,
        title,
        description,
        input,
        class: Availability::Always,
        effect: Effect::Reads,
        timing: FIXED,
        control: false,
        place: Place::Device,
    }
}

const fn writes(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> serde_json::Value,
) -> Tool {
    Tool { class: Availability::Write, effect: Effect::Writes, ..reads(name, title, description, input) }
}

pub(super) static TOOLS: &[Tool] = &[
    reads(
        "list_roots",
        "List roots",
        "The folders you may work in. Relative paths in all tools start at the first.",
        || object(&[], &[]),
    ),
    reads(
        "list_dir",
        "List a folder",
        "Names, kinds and sizes of the entries of one folder, sorted by name. For a whole tree use list_files.",
        || object(&[("path", path("The folder."))], &[]),
    ),
    reads(
        "list_files",
        "List files of a tree",
        "Files below a folder, as paths, skipping what .gitignore excludes and the .git folder itself.",
        || {
            object(
                &[
                    ("path", path("Folder to start at.")),
                    ("max_files", whole(1, limits::LIST_FILES_MAX as u64, Some(1000), "Files to return at most.")),
                ],
                &[],
            )
        },
    ),
    reads(
        "read_file",
        "Read a text file",
        "Text of a file, whole or by line range, with its SHA-256 for a later guarded change. Long files are cut at max_bytes: \
         go on with start_line.",
        || {
            object(
                &[
                    ("path", path_required("The file.")),
                    ("start_line", whole(1, u64::from(u32::MAX), None, "First line, counted from 1.")),
                    ("end_line", whole(1, u64::from(u32::MAX), None, "Last line, included.")),
                    ("max_bytes", max_bytes()),
                ],
                &["path"],
            )
        },
    ),
    reads("view_image", "View an image", "Shows a PNG, JPEG, GIF or WebP file.", || {
        object(&[("path", path_required("The image file."))], &["path"])
    }),
    reads(
        "search_text",
        "Search text",
        "Finds a literal text (no patterns) in the files below a folder, skipping ignored and binary files. Returns path, line \
         and column of each match.",
        || {
            object(
                &[
                    ("query", text(1, limits::SEARCH_QUERY_MAX, "The text, exactly as it stands in a line.")),
                    ("path", path("Folder or file to search.")),
                    (
                        "max_matches",
                        whole(1, limits::SEARCH_MATCHES_MAX as u64, Some(100), "Matches to return at most."),
                    ),
                    (
                        "max_files",
                        whole(1, limits::SEARCH_FILES_MAX as u64, Some(10_000), "Files to look into at most."),
                    ),
                ],
                &["query"],
            )
        },
    ),
    writes(
        "write_file",
        "Write a file",
        "Replaces a file with this content, or creates it and its folders. The change is atomic: readers see the old file or \
         the new one. For small changes prefer edit_file.",
        || {
            object(
                &[
                    ("path", path_required("The file.")),
                    ("content", text(0, limits::FILE_BYTES_MAX, "The whole new content.")),
                    ("create_only", switch(false, "Refuse if the file exists.")),
                    ("expected_sha256", sha256()),
                ],
                &["path", "content"],
            )
        },
    ),
    writes(
        "edit_file",
        "Edit a file",
        "Replaces one text of a file by another. old_text must occur exactly once, whitespace included, unless replace_all is set.",
        || {
            object(
                &[
                    ("path", path_required("The file.")),
                    ("old_text", text(1, limits::FILE_BYTES_MAX, "The text that is there now.")),
                    ("new_text", text(0, limits::FILE_BYTES_MAX, "What takes its place.")),
                    ("replace_all", switch(false, "Replace every occurrence.")),
                    ("expected_sha256", sha256()),
                ],
                &["path", "old_text", "new_text"],
            )
        },
    ),
    writes(
        "apply_patch",
        "Apply a patch",
        "Changes several files at once, all or none. Format:\n*** Begin Patch\n*** Update File: path\n*** Move to: new path (optional)\n\
         @@ a line above the change, to find the place (optional)\n context line\n-old line\n+new line\n*** Add File: path\n+line\n\
         *** Delete File: path\n*** End Patch\nContext and removed lines must match the file; three lines of context are enough.",
        || {
            object(
                &[(
                    "patch",
                    json!({"type": "string", "minLength": 1, "maxLength": limits::FILE_BYTES_MAX, "description": "The patch."}),
                )],
                &["patch"],
            )
        },
    ),
];
