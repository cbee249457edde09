mod discovery;
mod extraction;
mod follow;
mod samples;
mod shell;
mod survival;
