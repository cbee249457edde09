//! The status window's page for a browser: its files stand in this program.

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};

use super::routes::refuse;

/// Name and content of each file of `ui/dist`, as it was when this was built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/ui.rs"));

/// What a page of ours may load: its own files, and answers of this API.
const POLICY: &str = "default-src 'self'; connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; \
                      form-action 'none'";

const NOT_BUILT: &str = "<!doctype html><meta charset=utf-8><title>Holdfast</title><p>This build of Holdfast came without its \
                         window: <code>make ui</code>, then build again. Everything else works: <code>holdfast status</code>.";

/// A file of the page by its path. What is not there under `/api` is told as the API tells it.
pub(super) async fn file(method: Method, uri: Uri) -> Response {
    let path = uri.path();
    if path == "/api" || path.starts_with("/api/") {
        return refuse(StatusCode::NOT_FOUND, "not_found", "there is no such endpoint").into_response();
    }
    if method != Method::GET && method != Method::HEAD {
        let text = "a file is read with GET";
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "invalid_request", text).into_response();
    }
    found(FILES, path)
}

fn found(files: &[(&str, &'static [u8])], path: &str) -> Response {
    let name = match path.strip_prefix('/').unwrap_or(path) {
        "" => "index.html",
        name => name,
    };
    let content = files.iter().find(|(known, _)| *known == name).map(|(_, content)| *content);
    let (status, content) = match content {
        Some(content) => (StatusCode::OK, content),
        None if name == "index.html" => (StatusCode::NOT_FOUND, NOT_BUILT.as_bytes()),
        None => return refuse(StatusCode::NOT_FOUND, "not_found", "there is no such file").into_response(),
    };
    (status, [(header::CONTENT_TYPE, kind(name)), (header::CONTENT_SECURITY_POLICY, POLICY)], content).into_response()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "ftl" | "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[(&str, &[u8])] = &[("index.html", b"<p>"), ("app.js", b"1"), ("fonts/a.woff2", b"w")];

    #[test]
    fn a_file_is_found_by_its_exact_path_and_has_its_type() {
        for (path, kind) in [
            ("/", "text/html; charset=utf-8"),
            ("/index.html", "text/html; charset=utf-8"),
            ("/app.js", "text/javascript; charset=utf-8"),
            ("/fonts/a.woff2", "font/woff2"),
        ] {
            let response = found(SOME, path);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], kind, "{path}");
            assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], POLICY, "{path}");
        }
        for path in
            ["/app", "/APP.js", "/app.js/", "/fonts/", "/../Cargo.toml", "/fonts/../app.js", "/%61pp.js", "//app.js"]
        {
            assert_eq!(found(SOME, path).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn a_build_without_the_window_says_how_to_get_it() {
        let response = found(&[], "/");
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    }
}
