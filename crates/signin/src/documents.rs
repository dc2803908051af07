//! The documents of clients, fetched when somebody signs in with one, and kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sinew_fetch::{AllowedHosts, HttpUrl};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::clients::{self, Client};
use crate::web::DocumentSource;

/// Bytes of a document; real ones have one thousand.
const MAX_DOCUMENT: usize = 64 << 10;
/// How long a document is good, and how long a failure counts, so that reloading a page sends no further request.
const FRESH_TIME: Duration = Duration::from_secs(3_600);
const FAILURE_TIME: Duration = Duration::from_secs(30);
/// Documents that are kept, and that are fetched at once.
const MAX_KEPT: usize = 200;
const MAX_FETCHES: usize = 4;

pub(crate) struct ClientDocuments {
    source: Arc<dyn DocumentSource>,
    /// Only addresses that begin with one of these; all where there is none.
    prefixes: Vec<String>,
    kept: Mutex<HashMap<String, KeptDocument>>,
    fetches: Semaphore,
}

struct KeptDocument {
    client: Result<Client, String>,
    until: Instant,
}

impl ClientDocuments {
    pub(crate) fn new(source: Arc<dyn DocumentSource>, prefixes: Vec<String>) -> ClientDocuments {
        ClientDocuments { source, prefixes, kept: Mutex::default(), fetches: Semaphore::new(MAX_FETCHES) }
    }

    /// The client with this id, which is the address of its document.
    pub(crate) async fn client(&self, id: &str, url: HttpUrl) -> Result<Client, String> {
        if !self.prefixes.is_empty() && !self.prefixes.iter().any(|prefix| id.starts_with(prefix.as_str())) {
            return Err("the client is not one of those that this gateway takes (`clients` in `[oauth]`)".to_owned());
        }
        if let Some(known) = self.find(id) {
            return known;
        }
        let _turn = self.fetches.acquire().await.map_err(|error| error.to_string())?;
        if let Some(known) = self.find(id) {
            return known;
        }
        // A stranger chose the address, so nothing inside this network may be asked.
        let fetched = self.source.fetch(url.clone(), AllowedHosts::Internet, MAX_DOCUMENT).await;
        let client = fetched
            .map_err(|why| format!("the document of the client cannot be read: {why}"))
            .and_then(|text| clients::parse_document(id, &url, &text));
        let time = if client.is_ok() { FRESH_TIME } else { FAILURE_TIME };
        self.keep(id, KeptDocument { client: client.clone(), until: Instant::now() + time });
        client
    }

    fn find(&self, id: &str) -> Option<Result<Client, String>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(id).filter(|one| one.until > Instant::now()).map(|one| one.client.clone())
    }

    fn keep(&self, id: &str, document: KeptDocument) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            let now = Instant::now();
            kept.retain(|_, one| one.until > now);
        }
        if kept.len() >= MAX_KEPT
            && let Some(oldest) = kept.iter().min_by_key(|(_, one)| one.until).map(|(id, _)| id.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(id.to_owned(), document);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use serde_json::json;
    use sinew_tool::BoxFuture;

    use super::*;
    use crate::web::Web;

    #[derive(Default)]
    struct OneClient(AtomicUsize);

    impl DocumentSource for OneClient {
        fn fetch(&self, url: HttpUrl, allowed: AllowedHosts, _: usize) -> BoxFuture<'_, Result<Bytes, String>> {
            assert_eq!(allowed, AllowedHosts::Internet);
            self.0.fetch_add(1, Ordering::Relaxed);
            let about = json!({"client_id": url.whole(), "redirect_uris": ["https://a.example/cb"]});
            Box::pin(
                async move { if url.path() == "/gone" { Err("404".to_owned()) } else { Ok(about.to_string().into()) } },
            )
        }
    }

    async fn client(documents: &ClientDocuments, id: &str) -> Result<Client, String> {
        documents.client(id, clients::document_address(id).expect("an address")?).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_fetched_once_an_hour_and_a_missing_one_twice_a_minute() {
        let source = Arc::new(OneClient::default());
        let documents = ClientDocuments::new(source.clone(), Vec::new());
        let asked = || source.0.load(Ordering::Relaxed);
        for _ in 0..10 {
            assert!(client(&documents, "https://a.example/me").await.is_ok());
            assert!(client(&documents, "https://a.example/gone").await.is_err());
        }
        assert_eq!(asked(), 2);
        tokio::time::advance(FAILURE_TIME).await;
        assert!(client(&documents, "https://a.example/gone").await.is_err());
        assert!(client(&documents, "https://a.example/me").await.is_ok());
        assert_eq!(asked(), 3);
        tokio::time::advance(FRESH_TIME).await;
        assert!(client(&documents, "https://a.example/me").await.is_ok());
        assert_eq!(asked(), 4);
        for number in 0..500 {
            let _ = client(&documents, &format!("https://a.example/{number}")).await;
        }
        assert!(documents.kept.lock().unwrap().len() <= MAX_KEPT);
    }

    #[tokio::test]
    async fn only_clients_that_are_named_are_asked_where_some_are() {
        let source = Arc::new(OneClient::default());
        let documents = ClientDocuments::new(source.clone(), vec!["https://a.example/".to_owned()]);
        assert!(client(&documents, "https://a.example/me").await.is_ok());
        assert!(client(&documents, "https://a.example.evil.example/me").await.is_err());
        assert_eq!(source.0.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn no_document_is_fetched_from_inside_this_network() {
        let documents = ClientDocuments::new(Arc::new(Web), Vec::new());
        for inward in ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]", "192.168.1.1", "[fd00::1]"] {
            let refused = client(&documents, &format!("https://{inward}:9/me")).await.expect_err(inward);
            // No certificates, and no addresses, are both fine reasons; an answer is not.
            let is_reason = refused.contains("not on the public internet") || refused.contains("no certificates");
            assert!(is_reason, "{inward}: {refused}");
        }
    }
}
