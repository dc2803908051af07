//! Documents that issuers and clients publish, fetched within bounds.

use std::time::Duration;

use bytes::Bytes;
use sinew_fetch::{AllowedHosts, HeaderMap, HeaderValue, HttpClient, HttpUrl, Method, StatusCode, header};
use sinew_tool::BoxFuture;

/// How long a document may take, from the look-up of its host to its last byte. Somebody waits in front of a screen.
const FETCH_TIME: Duration = Duration::from_secs(5);

/// Where documents come from.
pub trait DocumentSource: Send + Sync {
    /// A document of at most `limit` bytes, from a host that may be asked. No redirect is followed.
    fn fetch(&self, url: HttpUrl, allowed: AllowedHosts, limit: usize) -> BoxFuture<'_, Result<Bytes, String>>;
}

/// The network.
pub struct Web;

impl DocumentSource for Web {
    fn fetch(&self, url: HttpUrl, allowed: AllowedHosts, limit: usize) -> BoxFuture<'_, Result<Bytes, String>> {
        Box::pin(async move {
            let fetching = tokio::time::timeout(FETCH_TIME, fetch(&url, allowed, limit));
            fetching.await.unwrap_or_else(|_| Err(format!("{url} took longer than {} s", FETCH_TIME.as_secs())))
        })
    }
}

async fn fetch(url: &HttpUrl, allowed: AllowedHosts, limit: usize) -> Result<Bytes, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let client = HttpClient::new(url.clone(), headers, allowed)?;
    let sent = client.send(Method::GET, None, HeaderMap::new(), Bytes::new(), false);
    let answer = sent.await.map_err(|error| error.to_string())?;
    match answer.status {
        StatusCode::OK => answer.whole(limit).await.map_err(|error| format!("{url}: {error}")),
        status if status.is_redirection() => {
            Err(format!("{url} answers with a redirect, and none is followed; name the address that it leads to"))
        }
        status => Err(format!("{url} answers with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What is fetched from a server that answers with these bytes and then says nothing more.
    async fn fetched(answer: String) -> Result<Bytes, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = HttpUrl::parse(&format!("http://{}/keys", listener.local_addr().unwrap())).unwrap();
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let _ = socket.read(&mut head).await;
            let _ = socket.write_all(answer.as_bytes()).await;
            std::future::pending::<()>().await;
        });
        let fetched = Web.fetch(url, AllowedHosts::Any, 100).await;
        serving.abort();
        fetched
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn redirects_large_and_compressed_documents_are_refused() {
        assert_eq!(fetched(ok("{}")).await.as_deref(), Ok(&b"{}"[..]));
        let redirect = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n";
        assert!(fetched(redirect.to_owned()).await.unwrap_err().contains("redirect"));
        assert!(fetched(ok(&"x".repeat(101))).await.unwrap_err().contains("100 bytes"));
        let chunks = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}",
            "40\r\n".to_owned() + &"x".repeat(64) + "\r\n"
        );
        assert!(fetched(chunks + "40\r\n" + &"x".repeat(64)).await.unwrap_err().contains("100 bytes"));
        let compressed = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx";
        assert!(fetched(compressed.to_owned()).await.is_err());
        assert!(fetched("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_that_does_not_end_is_given_up() {
        let began = tokio::time::Instant::now();
        let refused = fetched("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nxx".to_owned()).await.unwrap_err();
        assert!(refused.contains("5 s") && began.elapsed() >= FETCH_TIME, "{refused}");
    }
}
