use super::files::Shelf;
use super::*;

fn voice_note(seq: u64) -> Message {
    with(seq, "", &[("voice.ogg", "audio/ogg; codecs=opus", 9)])
}

async fn heard(bench: &Bench, hook: &[String], message: &Message) -> String {
    let shelf = Shelf::default().with("0", &[Ok("some opus")]);
    bench.courier.prepare(&shelf, hook, message).await.note
}

#[tokio::test]
async fn a_program_writes_down_what_is_said_and_gets_the_file_as_its_last_argument() {
    let bench = Bench::new();
    let hook = [bench.script("hear", r#"echo "$1: $(cat "$2")""#), "--lang".to_owned()];
    assert_eq!(heard(&bench, &hook, &voice_note(1)).await, "--lang: some opus");
}

#[tokio::test]
async fn without_a_program_or_without_words_a_mark_stands_in_its_place() {
    let bench = Bench::new();
    assert_eq!(heard(&bench, &[], &voice_note(1)).await, "[voice message]");
    let silent = [bench.script("silent", "exit 0")];
    assert_eq!(heard(&bench, &silent, &voice_note(1)).await, "[voice message — transcription failed]");
    let broken = [bench.script("broken", "echo 'no model' >&2; exit 2")];
    let note = heard(&bench, &broken, &voice_note(1)).await;
    assert!(
        note.starts_with("[voice message — transcription error: ") && note.ends_with("ended with code 2: no model]"),
        "{note}"
    );
}

#[tokio::test]
async fn what_fails_for_the_network_is_tried_three_times() {
    let bench = Bench::new();
    let tries = bench.path("tries");
    let hook = [bench.script("hear", &format!("echo x >> {0}; echo ECONNRESET >&2; exit 1", tries.display()))];
    let note = heard(&bench, &hook, &voice_note(1)).await;
    assert_eq!(note, "[attachment: voice transcription failed (network)]");
    assert_eq!(bench.read("tries"), "x\nx\nx\n");
    let shelf = Shelf::default().with("0", &[Err("fetch failed")]);
    let missing = bench.courier.prepare(&shelf, &hook, &voice_note(2)).await;
    assert_eq!((missing.files.len(), missing.note.as_str()), (0, "[attachment: voice transcription failed (network)]"));
}

#[tokio::test]
async fn one_voice_message_at_a_time_is_listened_to() {
    let bench = Bench::new();
    let log = bench.path("log");
    let hook =
        [bench.script("hear", &format!("echo in >> {0}; sleep 0.1; echo out >> {0}; echo heard", log.display()))];
    let (one, two) = (voice_note(1), voice_note(2));
    let notes = tokio::join!(heard(&bench, &hook, &one), heard(&bench, &hook, &two));
    assert_eq!((notes.0.as_str(), notes.1.as_str()), ("heard", "heard"));
    assert_eq!(bench.read("log"), "in\nout\nin\nout\n");
}
