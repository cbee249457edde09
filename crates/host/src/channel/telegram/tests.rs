use super::*;

const TOKEN: &str = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";

fn telegram(base: &str) -> Result<Telegram, BadChannel> {
    // The second caller of a process finds the first one's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Telegram::new(TOKEN.into(), Some(&base.parse().unwrap()))
}

#[test]
fn a_token_names_its_bot_and_anything_else_is_none() {
    assert_eq!(bot_of(TOKEN), Some("123456"));
    for bad in ["", "123456", "123456:", "x:ABCDEFGHIJ", "1:short", "1:ABC/../getMe?", "123456789012345678"] {
        assert_eq!(bot_of(bad), None, "{bad}");
    }
}

#[test]
fn a_token_goes_over_http_only_to_this_machine() {
    for good in ["https://telegram.example", "http://127.0.0.1:8081", "http://localhost/", "http://[::1]:1"] {
        assert!(telegram(good).is_ok(), "{good}");
    }
    for bad in [
        "http://telegram.example",
        "ftp://localhost",
        "https://user:pass@telegram.example",
        "https://telegram.example/?a=b",
        "https://telegram.example/#a",
    ] {
        assert_eq!(telegram(bad).unwrap_err(), BadChannel::Address, "{bad}");
    }
}

#[tokio::test]
async fn no_error_and_no_debug_output_names_the_token() {
    // Nothing listens there: every kind of error would like to name the address.
    let bot = telegram("http://127.0.0.1:9").unwrap();
    let why = bot.connect().await.unwrap_err();
    for text in [format!("{why:?}"), format!("{bot:?}")] {
        assert!(!text.contains("ABC-DEF") && !text.contains("getMe"), "{text}");
    }
}
