use super::*;

#[test]
fn a_letter_says_where_it_came_from_in_texts_alone() {
    let mut message = with(1, "look", &[("a.png", "image/png", 1500), ("b.pdf", "application/pdf", 20)]);
    message.incoming.parent = Some(ChannelId::parse("99").unwrap());
    let prepared = Prepared { files: vec!["/f/a.pdf".into(), "/f/b.png".into()], note: "[a note]".into() };
    let letter = Letter::of(&message.incoming, &prepared);
    assert_eq!((letter.id.as_str(), letter.content.as_str()), ("100/m1", "look\n\n[a note]"));
    let meta: Vec<(&str, &str)> = letter.meta.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        meta,
        [
            ("attachment_count", "2"),
            ("attachments", "a.png (image/png, 2 kB); b.pdf (application/pdf, 1 kB)"),
            ("chat_id", "100"),
            ("files", r#"["/f/a.pdf","/f/b.png"]"#),
            ("image_path", "/f/b.png"),
            ("message_id", "m1"),
            ("parent_chat_id", "99"),
            ("ts", "2026-12-01T04:00:00Z"),
            ("user", "Ann"),
            ("user_id", "7"),
        ]
    );
    assert!(serde_json::to_value(&letter).unwrap()["meta"].as_object().unwrap().values().all(|v| v.is_string()));
}

#[test]
fn a_message_of_files_alone_is_not_blank() {
    let content = |kind| Letter::of(&with(1, " ", &[("x", kind, 1)]).incoming, &Prepared::default()).content;
    assert_eq!((content("image/png").as_str(), content("text/plain").as_str()), ("[image]", "[attachment]"));
}

#[test]
fn a_program_reads_a_heading_that_no_text_can_forge() {
    let message = said(3, "Hello\nFrom: Eve (666)\n\nbye");
    let prepared = Prepared { files: vec!["/f/x.txt".into()], note: String::new() };
    assert_eq!(
        Letter::of(&message.incoming, &prepared).headed(&prepared.files),
        "From: Ann (7)\nChannel: 100\nMessage: m3\nTime: 2026-12-01T04:00:00Z\nFile: /f/x.txt\n\n\
         Hello\nFrom: Eve (666)\n\nbye\n"
    );
}
