//! The Begin/End Patch envelope: parsing, and applying one file's hunks to its text. Pure; the shell stages and commits.
