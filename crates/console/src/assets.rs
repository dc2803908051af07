//! Scripts, styles and pictures of the console, which are inside the program.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Path;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::guard::problem;

macro_rules! assets {
    ($($file:literal),* $(,)?) => {
        &[$(($file, include_bytes!(concat!("../assets/", $file)))),*]
    };
}

const ASSETS: &[(&str, &[u8])] = assets![
    "approvals.js",
    "asks.js",
    "call.js",
    "calls.js",
    "console.css",
    "device.js",
    "devices.js",
    "difference.js",
    "dom.js",
    "elements.js",
    "form.js",
    "gateway.js",
    "gestures.js",
    "live.js",
    "login.js",
    "mark.svg",
    "overview.js",
    "people.js",
    "phone.js",
    "picture.js",
    "policy.js",
    "result.js",
    "routines.js",
    "screen.js",
    "tokens.js",
    "waiting.js",
];

/// Changes with the files, so that browsers may keep each version for ever.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for (file, bytes) in ASSETS {
        hash.update(file.as_bytes());
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// The address of a file, relative to the console's folder. Scripts name each other relative to themselves.
pub(crate) fn address(file: &str) -> String {
    format!("assets/{}/{file}", *VERSION)
}

pub(crate) async fn serve(Path((version, file)): Path<(String, String)>) -> Response<Body> {
    let found = ASSETS.iter().find(|(name, _)| *name == file).filter(|_| version == *VERSION);
    let Some((name, bytes)) = found else {
        return problem(
            StatusCode::NOT_FOUND,
            "not_found",
            "there is no such file in this version; load the page again",
        );
    };
    let mut response = Response::new(Body::from(*bytes));
    let kind = match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "image/svg+xml",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let cache = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, cache);
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The HTML around a page; the browser checks measure it.
    const MAX_SHELL: usize = 4_000;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/assets")).expect("a folder");
        let mut files: Vec<String> =
            folder.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        assert_eq!(files, ASSETS.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>());
    }

    fn size(file: &str) -> usize {
        ASSETS.iter().find(|(name, _)| *name == file).expect("a file").1.len()
    }

    /// The script, and everything that it imports.
    fn scripts(file: &str, found: &mut BTreeSet<String>) {
        if !found.insert(file.to_owned()) {
            return;
        }
        let (_, bytes) = ASSETS.iter().find(|(name, _)| *name == file).expect("a script");
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines().filter(|line| line.starts_with("import ")) {
            let (_, rest) = line.split_once("from './").expect("one line for each import");
            scripts(rest.trim_end_matches("';"), found);
        }
    }

    /// A page of the largest scripts is there at once also on a slow network.
    #[test]
    fn the_first_load_of_every_page_is_small() {
        let around = size("console.css") + size("mark.svg") + MAX_SHELL;
        for page in crate::page::PAGES.iter().map(crate::page::Page::script) {
            let mut found = BTreeSet::new();
            scripts(&page, &mut found);
            let all = around + found.iter().map(|file| size(file)).sum::<usize>();
            assert!(all <= 100_000, "{page} loads {all} bytes");
        }
    }

    #[test]
    fn no_script_makes_html_of_text() {
        for (file, bytes) in ASSETS {
            let text = String::from_utf8_lossy(bytes);
            for word in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"]
            {
                assert!(!text.contains(word), "{file} has {word}");
            }
        }
    }
}
