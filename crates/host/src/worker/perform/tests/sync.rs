//! What is fetched, from where, and what of it counts.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use holdfast_core::limits;

use super::server::{Play, Server, ok, redirect, status};
use super::*;
use crate::worker::perform::again::{Broken, Tries};
use crate::worker::perform::fetch::in_time;

#[tokio::test]
async fn files_are_fetched_from_the_relay_with_the_credential_and_those_that_are_there_are_not() {
    let server = Server::new(|path, _| ok(if path == "/a" { "alpha" } else { "beta!" })).await;
    let stage = Stage::new(&server.url(""));
    let files = [file("a.txt", "alpha", &server.url("/a")), file("deep/er/b.txt", "beta!", &server.url("/b"))];
    assert_eq!(
        stage.sync(&files).await.unwrap(),
        json!({"fetched": 2, "present": 0, "bytes": 10, "unlisted": 0, "files": [
            {"filename": "a.txt", "state": "fetched"}, {"filename": "deep/er/b.txt", "state": "fetched"},
        ]})
    );
    assert_eq!((stage.read("out/a.txt"), stage.read("out/deep/er/b.txt")), ("alpha".into(), "beta!".into()));
    assert_eq!(
        (stage.names("out"), stage.names("out/deep/er")),
        (vec!["a.txt".into(), "deep".into()], vec!["b.txt".into()])
    );
    assert_eq!(server.header(0, "x-bridge-token").as_deref(), Some(TOKEN));
    std::fs::write(stage.path("out/a.txt"), "other").unwrap();
    let again = stage.sync(&files).await.unwrap();
    assert_eq!((&again["fetched"], &again["present"], &again["bytes"]), (&json!(1), &json!(1), &json!(5)));
    assert_eq!(stage.read("out/a.txt"), "alpha");
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_manifest_names_files_beside_itself() {
    let list = json!({"files": [file("a", "alpha", "files/a"), file("empty", "", "files/empty")]}).to_string();
    let server = Server::new(move |path, _| match path {
        "/lists/1.json" => ok(&list),
        "/lists/files/a" => ok("alpha"),
        "/bad.json" => ok("[]"),
        "/big.json" => ok(&" ".repeat(limits::SYNC_MANIFEST_MAX + 1)),
        _ => status("404 Not Found"),
    })
    .await;
    let stage = Stage::new(&server.url(""));
    let ask =
        |path: &str| stage.perform(json!({"type": "file_sync", "target": "out", "manifestUrl": server.url(path)}));
    assert_eq!(ask("/lists/1.json").await.unwrap()["fetched"], 2);
    assert_eq!((stage.read("out/a"), stage.read("out/empty")), ("alpha".into(), String::new()));
    assert_eq!(ask("/bad.json").await.unwrap_err().code, Code::InvalidRequest);
    assert_eq!(ask("/big.json").await.unwrap_err().code, Code::LimitExceeded);
    let missing = ask("/none.json").await.unwrap_err();
    assert_eq!((missing.code, &*missing.message), (Code::NotFound, "the manifest: the server answered 404"));
}

#[tokio::test]
async fn what_a_server_cannot_do_for_now_is_asked_for_again() {
    let server = Server::new(|_, nth| match nth {
        0 => status("503 Service Unavailable"),
        1 => Play::Say(String::new()),
        _ => ok("alpha"),
    })
    .await;
    let stage = Stage::new(&server.url(""));
    assert_eq!(stage.sync(&[file("a", "alpha", &server.url("/a"))]).await.unwrap()["fetched"], 1);
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_download_that_was_cut_off_goes_on_where_it_was() {
    let server = Server::new(|_, nth| match nth {
        0 => Play::Say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123".into()),
        1 => Play::Say(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n45".into(),
        ),
        _ => Play::Say(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 6-9/10\r\nContent-Length: 4\r\n\r\n6789".into(),
        ),
    })
    .await;
    let stage = Stage::new(&server.url(""));
    let done = stage.sync(&[file("a", "0123456789", &server.url("/a"))]).await.unwrap();
    assert_eq!((&done["bytes"], stage.read("out/a")), (&json!(10), "0123456789".into()));
    let ranges = [0, 1, 2].map(|request| server.header(request, "range"));
    assert_eq!(ranges, [None, Some("bytes=4-".into()), Some("bytes=6-".into())]);
}

#[tokio::test]
async fn what_changed_while_it_was_fetched_is_fetched_from_the_beginning() {
    let server = Server::new(|_, nth| match nth {
        // Nothing says where this answer ends.
        0 => Play::Say("HTTP/1.1 200 OK\r\n\r\nold-".into()),
        1 => Play::Say("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-8/9\r\n\r\n-file".into()),
        _ => ok("new--file"),
    })
    .await;
    let stage = Stage::new(&server.url(""));
    assert_eq!(stage.sync(&[file("a", "new--file", &server.url("/a"))]).await.unwrap()["bytes"], 18);
    assert_eq!((stage.read("out/a"), server.seen().len()), ("new--file".into(), 3));
}

#[tokio::test]
async fn what_is_not_as_announced_is_refused_and_leaves_what_stood_there() {
    for (answer, why) in [
        (ok("alphb"), "its SHA-256 is not the one that was announced"),
        (ok("alphabet"), "its size is not the one that was announced"),
        (
            Play::Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nalphabet\r\n0\r\n\r\n".into()),
            "it is longer than it was announced",
        ),
        (
            Play::Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nalp\r\n0\r\n\r\n".into()),
            "it is shorter than it was announced",
        ),
    ] {
        let answer = parking_lot::Mutex::new(Some(answer));
        let server = Server::new(move |_, _| answer.lock().take().unwrap()).await;
        let stage = Stage::new(&server.url(""));
        std::fs::create_dir(stage.path("out")).unwrap();
        std::fs::write(stage.path("out/a"), "before").unwrap();
        let failure = stage.sync(&[file("a", "alpha", &server.url("/a"))]).await.unwrap_err();
        assert_eq!(failure, Failure::new(Code::IntegrityError, format!("a: {why}")));
        assert_eq!((stage.read("out/a"), stage.names("out")), ("before".into(), vec!["a".into()]), "{why}");
    }
}

#[tokio::test]
async fn redirects_are_followed_within_the_rules_only() {
    let elsewhere = Server::new(|_, _| ok("alpha")).await;
    let foreign = elsewhere.url("/a");
    let server = Server::new(move |path, _| match path {
        "/near" => redirect("/a"),
        "/far" => redirect("https://files.example/a"),
        "/private" => redirect(&foreign),
        "/metadata" => redirect("http://169.254.169.254/latest"),
        "/local" => redirect("file:///etc/passwd"),
        "/round" => redirect("/round"),
        "/nowhere" => status("302 Found"),
        _ => ok("alpha"),
    })
    .await;
    let stage = Stage::new(&server.url(""));
    assert!(stage.sync(&[file("a", "alpha", &server.url("/near"))]).await.is_ok());
    assert_eq!(server.header(1, "x-bridge-token").as_deref(), Some(TOKEN));
    for path in ["/far", "/private", "/metadata", "/local"] {
        assert_eq!(stage.code(&[file("b", "alpha", &server.url(path))]).await, Code::PolicyDenied, "{path}");
    }
    assert_eq!(elsewhere.seen().len(), 0);
    for path in ["/round", "/nowhere"] {
        let failure = stage.sync(&[file("b", "alpha", &server.url(path))]).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (Code::NetworkError, false), "{path}");
    }
    assert_eq!(stage.names("out"), ["a"]);
}

/// An acceptor for names below `example`, and the authority that vouches for it.
fn certificate() -> (Vec<u8>, tokio_rustls::TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(vec!["files.example".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (made.cert.pem().into_bytes(), tokio_rustls::TlsAcceptor::from(Arc::new(config)))
}

/// Lets names lead to 127.0.0.1 at first and to 127.0.0.2 from then on, and takes only the first for public.
fn rebinding(stage: &mut Stage, authorities: Vec<u8>) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup = move |_: String, port| {
        let last = if count.fetch_add(1, Ordering::Relaxed) == 0 { 1 } else { 2 };
        async move { Ok(vec![([127, 0, 0, last], port).into()]) }.boxed()
    };
    let public = |ip: IpAddr| ip == IpAddr::from([127, 0, 0, 1]);
    stage.performer.network = Network { lookup: Arc::new(lookup), public, authorities: Some(authorities) };
    asked
}

#[tokio::test]
async fn a_listed_host_is_read_over_tls_without_the_credential_at_the_addresses_that_were_checked() {
    let (authorities, tls) = certificate();
    let server = Server::over(Some(tls), |_, _| ok("alpha")).await;
    let mut stage = Stage::new("https://relay.example");
    let asked = rebinding(&mut stage, authorities);
    let url = format!("https://files.example:{}/a", server.address.port());
    assert_eq!(stage.code(&[file("a", "alpha", &url)]).await, Code::PolicyDenied, "it is not listed");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    stage.allow(&format!("files.example:{}", server.address.port()));
    let done = stage.sync(&["a", "b", "c"].map(|name| file(name, "alpha", &url))).await;
    assert_eq!(done.unwrap()["fetched"], 3);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the name is looked up once, whatever it would say later");
    assert_eq!(server.header(0, "x-bridge-token"), None);
}

#[tokio::test]
async fn a_listed_host_that_redirects_to_the_relay_does_not_bring_the_credential_there() {
    let relay = Server::new(|_, _| ok("alpha")).await;
    let (authorities, tls) = certificate();
    let to = relay.url("/a");
    let server = Server::over(Some(tls), move |_, _| redirect(&to)).await;
    let mut stage = Stage::new(&relay.url(""));
    rebinding(&mut stage, authorities);
    stage.allow(&format!("files.example:{}", server.address.port()));
    let url = format!("https://files.example:{}/a", server.address.port());
    assert_eq!(stage.sync(&[file("a", "alpha", &url)]).await.unwrap()["fetched"], 1);
    assert_eq!((relay.seen().len(), relay.header(0, "x-bridge-token")), (1, None));
}

#[tokio::test]
async fn a_name_that_comes_to_lead_into_a_private_network_is_refused() {
    let (authorities, tls) = certificate();
    let server = Server::over(Some(tls), |_, _| Play::Say(String::new())).await;
    let mut stage = Stage::new("https://relay.example");
    let asked = rebinding(&mut stage, authorities);
    stage.allow(&format!("files.example:{}", server.address.port()));
    let url = format!("https://files.example:{}/a", server.address.port());
    assert_eq!(stage.code(&[file("a", "alpha", &url)]).await, Code::PolicyDenied);
    assert_eq!((asked.load(Ordering::Relaxed), server.seen().len()), (2, 1));
}

#[tokio::test]
async fn a_name_that_is_not_found_is_looked_up_again() {
    let (authorities, tls) = certificate();
    let server = Server::over(Some(tls), |_, _| ok("alpha")).await;
    let mut stage = Stage::new("https://relay.example");
    let asked = AtomicUsize::new(0);
    let lookup = move |_: String, port| {
        let found = asked.fetch_add(1, Ordering::Relaxed) > 0;
        async move {
            let known = ([127, 0, 0, 1], port).into();
            if found { Ok(vec![known]) } else { Err(std::io::ErrorKind::TimedOut.into()) }
        }
        .boxed()
    };
    stage.performer.network = Network { lookup: Arc::new(lookup), public: |_| true, authorities: Some(authorities) };
    stage.allow(&format!("files.example:{}", server.address.port()));
    let url = format!("https://files.example:{}/a", server.address.port());
    assert_eq!(stage.sync(&[file("a", "alpha", &url)]).await.unwrap()["fetched"], 1);
}

#[tokio::test]
async fn an_address_in_place_of_a_name_is_checked_too() {
    let stage = Stage::new("https://relay.example");
    for host in ["127.0.0.1", "10.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1]"] {
        stage.allow(host);
        let url = format!("https://{host}/a");
        assert_eq!(stage.code(&[file("a", "alpha", &url)]).await, Code::PolicyDenied, "{host}");
    }
}

#[tokio::test]
async fn what_a_crash_left_is_where_the_same_operation_goes_on() {
    let server = Server::new(|_, nth| match nth {
        0 => Play::Stall("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123".into()),
        _ => Play::Say(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789".into(),
        ),
    })
    .await;
    let stage = Stage::new(&server.url(""));
    let files = [file("a", "0123456789", &server.url("/a"))];
    let part = async {
        loop {
            let names = stage.names("out");
            if let [name] = &names[..]
                && std::fs::metadata(stage.path("out").join(name)).is_ok_and(|meta| meta.len() == 4)
            {
                break stage.path("out").join(name);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let part = tokio::select! {
        part = part => part,
        done = stage.sync(&files) => panic!("{done:?}"),
    };
    assert!(part.file_name().unwrap().to_str().unwrap().starts_with(".holdfast-"), "nothing under the final name");
    assert!(stage.names("out").is_empty(), "what is given up in peace leaves nothing");
    std::fs::write(&part, "0123").unwrap();
    assert_eq!(stage.sync(&files).await.unwrap()["bytes"], 6);
    assert_eq!(server.header(1, "range").as_deref(), Some("bytes=4-"));
    assert_eq!((stage.names("out"), stage.read("out/a")), (vec!["a".into()], "0123456789".into()));
}

#[tokio::test]
async fn an_operation_that_is_to_stop_stops_and_leaves_nothing() {
    let server = Server::new(|_, _| Play::Stall("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nal".into())).await;
    let stage = Stage::new(&server.url(""));
    let stop = async {
        while server.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stage.stop.cancel();
    };
    let files = [file("a", "alpha", &server.url("/a"))];
    let (done, ()) = tokio::join!(stage.sync(&files), stop);
    assert_eq!(done.unwrap_err().code, Code::Cancelled);
    assert!(stage.names("out").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_ends_a_try_in_its_time() {
    let start = tokio::time::Instant::now();
    let broken = in_time(std::future::pending::<reqwest::Result<()>>()).await.unwrap_err();
    assert!(matches!(broken, Broken::Network { progress: false, why } if why == "the server was silent"));
    assert_eq!(start.elapsed(), limits::SYNC_TRY);
}

async fn again<T>(stop: &CancellationToken, mut attempt: impl AsyncFnMut() -> Result<T, Broken>) -> Result<T, Failure> {
    let mut tries = Tries::new(stop);
    loop {
        if let Some(done) = tries.make(attempt()).await? {
            return Ok(done);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_keeps_failing_on_the_network_fails_for_good_and_may_be_asked_again() {
    let start = tokio::time::Instant::now();
    let stop = CancellationToken::new();
    let failure = again::<()>(&stop, async || Err(Broken::network("no route to host"))).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (Code::NetworkError, true));
    assert!(start.elapsed() >= limits::SYNC_RETRY_FOR && start.elapsed() < limits::SYNC_RETRY_FOR + limits::SYNC_TRY);
    // One that brings something each time is worth more than that.
    let mut tries = 0;
    let done = again(&stop, async || {
        tokio::time::sleep(limits::SYNC_RETRY_FOR).await;
        tries += 1;
        if tries < 5 { Err(Broken::Network { why: "reset".into(), progress: true }) } else { Ok(tries) }
    });
    assert_eq!(done.await, Ok(5));
    stop.cancel();
    let stopped = again::<()>(&stop, async || Err(Broken::network("no route to host"))).await.unwrap_err();
    assert_eq!(stopped.code, Code::Cancelled);
}
